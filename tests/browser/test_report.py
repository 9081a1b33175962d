"""The report in a real browser, from a file, offline; CONTRIBUTING.md says how its pictures are kept and rewritten."""

import os
from pathlib import Path
from typing import Any

import axe_playwright_python
import pytest

from migrate.cli.report import run_report
from migrate.model import Decision, Grade, Method
from migrate.plan.file import write_plan
from migrate.plan.plan import Plan
from migrate.plan.totals import totals
from tests.browser.reading import CHROMIUM, NONE, Opened, Reader
from tests.builders import make_check, make_plan, make_row
from tests.unit.applyscene import Scene
from tests.unit.goldenplan import golden_plan
from tests.unit.plans import plan as small_plan
from tests.unit.plans import row

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=NONE)

PICTURE = Path(__file__).parents[2] / "docs/report.png"
WIDTH, HEIGHT = 1300, 900
COMPARED = {
    "partitions": 8, "left_out": 0, "source_records_read": 4812, "target_records_read": 9536,
    "source_bytes_estimated": 1_000_000, "source_bytes_fetched": 425_000,
    "target_bytes_estimated": 978_000, "target_bytes_fetched": 536_000,
}  # fmt: skip
AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js")
HOSTILE = "<img src=x onerror=document.title='owned'><script>document.title='owned'</script>&lt;b&gt;"
OPTIONS = ("--mm2-config", "mm2.properties", "--source", "A", "--target", "B")


def written(made: Plan, folder: Path) -> Path:
    write_plan(made, folder / "cutover.plan")
    run_report(folder / "cutover.plan", folder / "report.html", None, OPTIONS)
    return folder / "report.html"


@pytest.fixture(scope="session")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(golden_plan(), tmp_path_factory.mktemp("golden"))


@pytest.fixture(scope="session")
def applied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("applied")
    scene = Scene(small_plan(row("billing"), row("fraud", partition=1), row("shipping", "bills")), folder)
    assert scene.apply().exit_code == 0
    return written(scene.plan, folder)


def compared_row(group: str, topic: str, partition: int, at: int, end: int, on_b: int, **values: Any) -> Any:
    """A row whose records were compared; `on_b` is where its group is planned to be on B."""
    more = {"rereads_at_most": 0, "grade": Grade.EXACT, "reason": "proven", **values}
    return make_row(
        group, topic, partition, source_committed=at, source_log_end=end, target_offset=on_b, method=Method.MATCH,
        target_log_end=on_b + end - at, rereads_estimate=None, checkpoint_source_offset=at - 40,
        checkpoint_target_offset=on_b - 319, missing_on_target=0, equality="all", lower_kind="proven-sync",
        lower_source_offset=at - 13, lower_target_offset=on_b - 13, upper_source_offset=at + 20,
        upper_target_offset=on_b + 20, **more,
    )  # fmt: skip


@pytest.fixture(scope="session")
def partitions(pytestconfig: pytest.Config) -> int:
    """Of each of the 1,000 groups of the large report: 100,000 rows take a dozen seconds."""
    return 100 if pytestconfig.getoption("--long") else 10


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory, partitions: int) -> Path:
    """Rows with numbers of eight digits, each its own."""
    rows = [
        compared_row(
            f"team-{group % 37:02}.service-{group:04}", f"events.{group % 40:02}", p,
            at := 10_000_000 + 7919 * group + 104_729 * p, at + 37 * p + group, at - 1000,
            decision=Decision.BLOCK if group == 7 else Decision.SET, rereads_at_most=p, grade=Grade.BOUNDED,
            sentence=f"The records were compared. At most {p} records are read twice, from {at - 1000} on.",
        )
        for group in range(1000) for p in range(partitions)
    ]  # fmt: skip
    checks = [make_check("source-group-stopped", f"team-{i % 37:02}.service-{i:04}") for i in range(400)]
    return written(make_plan(rows, checks=tuple(checks)), tmp_path_factory.mktemp("large"))


def picture(opened: Opened, name: str) -> None:
    folder = os.environ.get("MM2_MIGRATE_SCREENSHOTS")
    if folder:
        opened.page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


def unfold(opened: Opened) -> None:
    """Open the first group, and its first row's evidence."""
    opened.page.locator("#list > tbody > tr[data-group] .fold").first.click()
    opened.page.locator(".inside .fold").first.click()


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1440, "light")])
@pytest.mark.parametrize("which", ["golden", "applied"])
def test_it_opens_offline_without_a_complaint_fits_and_is_accessible(request, reader, which, width, scheme):
    opened = reader.open(request.getfixturevalue(which), width, scheme)
    unfold(opened)
    picture(opened, f"{which}-{width}-{scheme}")
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    assert violations(opened) == []
    assert opened.complaints == []


def test_the_picture_in_the_readme_is_a_small_one_of_this_report(reader, tmp_path, monkeypatch):
    rows = (
        compared_row("analytics", "clicks", 0, 400, 4000, 1760, rereads_at_most=600, grade=Grade.BOUNDED),
        *(compared_row("billing", "orders", p, 1200 + 2600 * p, 8000, 3840 + 2600 * p) for p in range(3)),
        compared_row("crm", "customers", 0, 2400, 4000, 1640),
        *(compared_row("fraud", "payments", p, 2050 + 1025 * p, 4100, 2720 + 800 * p) for p in range(2)),
        *(compared_row("shipping", "orders", p, 8000, 8000, 10640) for p in range(3)),
    )
    monkeypatch.chdir(tmp_path)  # the page names the plan as it was typed
    write_plan(make_plan(rows, comparison=COMPARED), Path("cutover.plan"))
    run_report(Path("cutover.plan"), Path("report.html"), None, OPTIONS)
    opened = reader.open(tmp_path / "report.html", WIDTH)
    if os.environ.get("MM2_MIGRATE_REWRITE_PICTURE"):
        opened.page.screenshot(path=PICTURE, clip={"x": 0, "y": 0, "width": WIDTH, "height": HEIGHT}, full_page=True)
    assert opened.page.get_by_text("Records read twice, per group").bounding_box()["y"] < HEIGHT
    assert PICTURE.stat().st_size < 200_000


def violations(opened: Opened) -> list[str]:
    """Return what axe-core finds that is serious or worse, with the first element each."""
    # through the debugger: the page's own policy forbids to add a script
    session = opened.page.context.new_cdp_session(opened.page)
    session.send("Runtime.evaluate", {"expression": AXE.read_text()})
    run = "axe.run(document, {resultTypes: ['violations']}).then((r) => JSON.stringify(r.violations.map((v) => " \
          "[v.impact, v.id, v.nodes.length, v.nodes[0].html.slice(0, 200)])))"  # fmt: skip
    asked = {"expression": f"{run}.then(JSON.parse)", "awaitPromise": True, "returnByValue": True}
    found = session.send("Runtime.evaluate", asked)
    assert "exceptionDetails" not in found, found["exceptionDetails"]
    return [str(v) for v in found["result"]["value"] if v[0] in ("serious", "critical")]


def test_what_is_on_the_page_is_in_the_plan(reader: Reader, golden: Path):
    opened, made = reader.open(golden), golden_plan()
    assert opened.names() == sorted(made.groups())
    groups = totals(made).groups
    assert opened.page.locator("#found").inner_text() == f"{groups} groups of {groups}, {len(made.rows)} rows"
    for index, rows in enumerate(made.groups().values()):
        opened.page.locator(f"tr[data-group='{index}'] .fold").click()
        shown = opened.page.locator(f"tr[data-group='{index}'] + tr.inside table tbody > tr").all_inner_texts()
        assert len(shown) == len(rows)
        for text, one in zip(shown, rows, strict=True):
            cells = [cell.strip() for cell in text.split("\t")]
            assert cells[:2] == [one.source_topic, str(one.partition)]
            assert cells[5] == ("-" if one.target_offset is None else str(one.target_offset))
            assert cells[9] == str(one.decision)


def test_groups_are_found_by_their_name_or_their_topic_or_a_link(reader: Reader, golden: Path):
    opened = reader.open(golden, fragment="#group=streams-app")
    assert opened.names() == ["streams-app"] and opened.page.locator("tr.inside").count() == 1
    opened.page.evaluate("location.hash = 'group=refunds'")
    opened.page.wait_for_function("document.querySelector('#list > tbody .fold').textContent === 'billing'")
    assert opened.names() == ["billing"]
    opened.page.fill("#search", "REFUNDS")
    assert opened.names() == ["billing"]
    opened.page.fill("#search", "left")
    assert opened.names() == ["left-alone"]
    opened.page.fill("#search", "nowhere")
    assert opened.names() == [] and opened.page.locator("#found").inner_text().startswith("0 groups")
    opened.page.fill("#search", "")
    opened.page.select_option("#which", "BLOCK")
    assert set(opened.names()) == golden_plan().blocked_groups()


def test_groups_are_sorted_both_ways_and_what_is_unknown_stands_last(reader: Reader, golden: Path):
    opened = reader.open(golden)
    by_name = opened.names()
    heading = opened.page.locator("th[data-key=name]")
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "ascending" and opened.names() == by_name
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "descending" and opened.names() == by_name[::-1]
    lag = opened.page.locator("th[data-key=lag] button")
    lag.click()
    assert opened.names()[0] == "billing"
    last = opened.page.locator("#list > tbody > tr[data-group] > td:nth-child(4)").all_inner_texts()[-1]
    assert last == "unknown"
    lag.click()
    assert opened.names()[-1] in ("new-partitions", "undone")


def test_a_group_folds_open_to_its_rows_and_a_row_to_its_evidence(reader: Reader, golden: Path):
    opened = reader.open(golden)
    fold = opened.page.locator("tr[data-group='0'] .fold")
    fold.press("Enter")
    assert fold.get_attribute("aria-expanded") == "true"
    rows = opened.page.locator("tr.inside table tbody > tr")
    assert rows.count() == 7
    rows.nth(6).locator(".fold").click()
    said = opened.page.locator("tr.evidence").inner_text()
    assert "The records of both sides were compared." in said and "without-headers" in said
    assert "source 687 at target 649 (proven-sync)" in said
    rows.nth(6).locator(".fold").click()
    assert opened.page.locator("tr.evidence").count() == 0
    fold.click()
    assert fold.get_attribute("aria-expanded") == "false" and opened.page.locator("tr.inside").count() == 0


def test_the_fingerprint_and_the_next_command_are_copied_whole(reader: Reader, tmp_path: Path):
    made = small_plan(row("billing"), row("shipping", "bills"))
    opened = reader.open(written(made, tmp_path))
    read = "navigator.clipboard.readText()"
    opened.page.locator(".fingerprint button").click()
    opened.page.wait_for_selector("text=Copied")
    assert opened.page.evaluate(read) == made.fingerprint
    opened.page.locator("#next button").last.click()
    opened.page.wait_for_function(f"{read}.then((text) => text.startsWith('mm2-migrate'))")
    command = opened.page.evaluate(read)
    assert command.endswith(f" --approve {made.fingerprint} --execute")
    assert "--mm2-config mm2.properties" in command


def test_without_a_clipboard_the_text_is_copied_as_of_old(reader: Reader, golden: Path):
    opened = reader.open(golden)
    opened.page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    opened.page.locator(".fingerprint button").click()
    opened.page.wait_for_function("document.querySelector('.fingerprint button').textContent !== 'Copy'")
    assert opened.page.evaluate("getSelection().toString()").strip() == golden_plan().fingerprint


def test_the_logs_of_the_chosen_partition_are_drawn(reader: Reader, golden: Path):
    opened = reader.open(golden)
    opened.page.select_option("#topic", label="refunds")
    opened.page.select_option("#partition", label="3")
    told = opened.page.locator("#standing").inner_text()
    assert "billing" in told and "700 of 0 to 1000" in told and "650 of 0 to 960" in told
    drawn = opened.page.locator("#standing svg").nth(0).locator("rect.read")
    assert drawn.get_attribute("width") == "70%"


def test_names_with_html_in_them_stay_text(reader: Reader, tmp_path: Path):
    rows = [make_row(HOSTILE, HOSTILE, sentence=HOSTILE, reason=HOSTILE, source_metadata=HOSTILE),
            make_row(HOSTILE, HOSTILE, 1, decision=Decision.BLOCK, reason=HOSTILE, sentence=HOSTILE)]  # fmt: skip
    checks = (make_check(subject=HOSTILE, seen=HOSTILE, expected=HOSTILE, todo=HOSTILE),)
    opened = reader.open(written(make_plan(rows, checks=checks, source_alias=HOSTILE), tmp_path))
    unfold(opened)
    assert opened.names() == [HOSTILE]
    assert opened.page.title().startswith("Cutover <img")
    assert opened.page.locator("img").count() == 0 and opened.page.locator("script:not([type])").count() == 1
    assert HOSTILE in opened.page.locator("tr.evidence").inner_text()
    assert opened.complaints == []


def test_after_an_apply_the_page_shows_results(reader: Reader, applied: Path):
    opened = reader.open(applied)
    assert opened.page.locator(".verdict").first.inner_text().startswith("APPLIED AT ")
    unfold(opened)
    assert "Read back\n60" in opened.page.locator("tr.evidence").inner_text()


def test_a_page_of_100_000_rows_is_usable_and_printed_lists_every_group(reader: Reader, large: Path, partitions: int):
    opened = reader.open(large, width=390)
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert large.stat().st_size < 250 * 1000 * partitions
    assert opened.page.locator("#found").inner_text() == f"1,000 groups of 1,000, {1000 * partitions:,} rows"
    assert len(opened.names()) == 100
    opened.page.click("#more")
    assert len(opened.names()) == 600
    opened.page.fill("#search", "service-0999")
    assert opened.names() == ["team-00.service-0999"]
    opened.page.locator("#list .fold").first.click()
    assert opened.page.locator("tr.inside table tbody > tr").count() == partitions
    opened.page.select_option("#partition", label=str(partitions - 1))
    opened.page.wait_for_selector("#standing .label:has-text('service')")
    assert opened.page.locator("#standing svg").count() == 2 * 25
    opened.page.fill("#search", "")
    opened.page.emulate_media(media="print")
    opened.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert len(opened.names()) == 1000
    assert not opened.page.locator("#filters").is_visible()
    assert opened.complaints == []
