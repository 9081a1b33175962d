"""The report: the same words and numbers as `show`, nothing loaded, no name obeyed, nothing silently absent."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.cli.report import run_report
from migrate.cli.sign import run_sign
from migrate.errors import Refused
from migrate.model import Decision, lag
from migrate.plan.file import write_plan
from migrate.plan.plan import Plan, PlannedActivity
from migrate.plan.totals import totals
from migrate.row_table import row_document
from migrate.show.aftermath import Aftermath
from migrate.show.next_steps import next_steps
from migrate.show.plan_table import identity, totals_lines, verdict
from migrate.show.report_data import GAP, as_json, report_data, split_sentence
from migrate.show.report_page import ROWS_EMBEDDED, report
from migrate.text import safe
from tests.builders import make_plan, make_row
from tests.unit.goldenplan import golden_plan
from tests.unit.pages import squeezed

NOTHING = Aftermath()
HOSTILE = "</script><img src=x onerror=alert(1)>&amp;\"'`\x1b[2J\u202e{{7*7}}<!--"


class Elements(HTMLParser):
    """Every element with its attributes, and the text inside `script` and `style`."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inside: dict[int, str] = {}
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.cdata_elem is not None:  # inside a script or a style
            at = len(self.tags) - 1
            self.inside[at] = self.inside.get(at, "") + data


def page(plan: Plan, **options: Any) -> str:
    return report(plan, "cutover.plan", NOTHING, **options)[0]


def texts_in(made: str) -> dict[str | None, str]:
    """The texts of the page's scripts and styles, by id."""
    found = Elements(made)
    return {found.tags[i][1].get("id"): text for i, text in found.inside.items()}


def data_of(made: str) -> Any:
    return json.loads(texts_in(made)["data"])


def rows_in(made: str) -> list[dict[str, Any]]:
    """Decode the embedded rows as the page's own script does."""
    texts, data, rows = texts_in(made), data_of(made), []
    for index, group in enumerate(data["groups"]):
        if group["show"]:
            continue
        columns = dict(zip(data["columns"], json.loads(texts[f"g{index}"]), strict=True))
        for i in range(group["rows"]):
            row = {name: column[i if len(column) > 1 else 0] for name, column in columns.items()}
            wording = data["words"][row["sentence"]].split(GAP)
            numbers = [str(n) for n in row["sentence_numbers"]]
            row["sentence"] = "".join(a + b for a, b in zip(wording, [*numbers, ""], strict=True))
            rows.append(row | {"group": group["name"], "words": data["words"]})
    return rows


def test_the_page_says_what_show_says():
    plan = golden_plan()
    told = squeezed(page(plan))
    counted = totals(plan)
    assert verdict(plan, counted)[0] in told
    for label, text in [*[*identity(plan, "cutover.plan")][:3], *totals_lines(plan, counted)]:
        assert squeezed(f"{label}{text}") in told.replace("\n", ""), label
    sentences, commands = next_steps(plan, counted, "cutover.plan", None)
    for line in (*sentences, *(text for command in commands for text in command), plan.fingerprint):
        assert line in told
    made, _ = report(make_plan([make_row()]), "my plan", NOTHING, ("--mm2-config", "a b.properties"))
    assert "mm2-migrate apply 'my plan' --mm2-config 'a b.properties' --approve" in squeezed(made)
    missing = make_plan([make_row()], counts={"commits_read": 5, "rows": 1, "uncommitted_added": 0})
    assert 'class="missing"' in page(missing) and "Do not apply it" in page(missing)
    assert 'class="missing"' not in page(plan) and "NOTHING TO DO" in page(make_plan())


def test_every_field_of_every_row_is_in_the_page_as_it_is_in_the_plan():
    plan = golden_plan()
    shown = rows_in(page(plan))
    assert len(shown) == len(plan.rows)
    for row, seen in zip(plan.rows, shown, strict=True):
        document = row_document(row)
        for field in document.keys() - {"target_group"}:
            value = document[field]
            told = seen[field]
            if field not in ("group", "sentence") and isinstance(value, str):
                told = seen["words"][told]
            elif value is None and isinstance(told, int):
                told = seen["words"][told] or None  # an absent method or grade
            assert told == (safe(value) if isinstance(value, str) else value), (row.key, field)
        assert seen["lag"] == lag(row)


def hostile_plan(name: str) -> Plan:
    rows = [make_row(name, name, 0, sentence=name, reason=name, source_metadata=name)]
    rows.append(make_row("plain", name, 1, decision=Decision.BLOCK, reason=name))
    return make_plan(rows, settings={name: name}, waivers=(name,), source_alias=name, flow={name: name})


def test_names_with_html_in_them_stay_text():
    plan = hostile_plan(HOSTILE)
    made = page(plan)
    hostile, harmless = ([tag for tag, _ in Elements(text).tags] for text in (made, page(hostile_plan("harmless"))))
    assert hostile == harmless
    footer = made.split("<footer>")[1][:200].replace(plan.short_fingerprint, "")
    assert "\x1b" not in made and "\u202e" not in made and "49" not in footer


def test_the_page_loads_nothing_and_runs_its_own_script_only():
    found = Elements(page(golden_plan()))
    policy = next(a["content"] for t, a in found.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy and policy.startswith("default-src 'none';") and "unsafe" not in policy
    for kind in ("script", "style"):
        texts = [found.inside[i] for i, (tag, a) in enumerate(found.tags) if tag == kind and "type" not in a]
        hashed = base64.b64encode(hashlib.sha256(texts[0].encode()).digest()).decode()
        assert len(texts) == 1 and f"{kind}-src 'sha256-{hashed}'" in policy
    for tag, attributes in found.tags:
        assert tag not in ("link", "img", "iframe", "object", "base")
        assert "src" not in attributes and "style" not in attributes and "onclick" not in attributes
        assert (attributes.get("href") or "#").startswith("#")


def test_rows_beyond_the_cap_are_counted_and_blocked_groups_are_listed_first():
    rows = [make_row(f"g{i}", partition=p) for i in range(5) for p in range(4)]
    rows += [make_row("zz", decision=Decision.BLOCK, reason="x")]
    plan = make_plan(rows)
    made, data = report(plan, "cutover.plan", NOTHING, cap=9)
    assert (data.rows_left_out, data.groups_left_out) == (12, 3)
    assert "12 rows of 3 groups are not in this page" in squeezed(made)
    assert {row["group"] for row in rows_in(made)} == {"zz", "g0", "g1"}
    assert data == report_data(plan, NOTHING, "cutover.plan", 9)
    shown = [g["show"] for g in data.page["groups"] if g["show"]]
    assert shown == [f"mm2-migrate show cutover.plan --group g{i}" for i in (2, 3, 4)]
    assert report(plan, "p", NOTHING, cap=len(rows))[1].rows_left_out == 0
    assert ROWS_EMBEDDED >= 1000 * 100


def test_a_report_is_replaced_and_nothing_else_is_overwritten(tmp_path):
    plan_file, out = tmp_path / "cutover.plan", tmp_path / "report.html"
    write_plan(golden_plan(), plan_file)
    assert run_report(plan_file, out, None, ()) == run_report(plan_file, out, None, ())
    assert not list(tmp_path.glob(".*"))
    before = plan_file.read_bytes()
    with pytest.raises(Refused, match="is not a report"):
        run_report(plan_file, plan_file, None, ())
    assert plan_file.read_bytes() == before


def test_who_has_signed_stands_in_the_page_and_how_many_are_still_asked_for(tmp_path):
    plan = make_plan([make_row()], settings={"require-signatures": "2"})
    file, out = tmp_path / "cutover.plan", tmp_path / "report.html"
    write_plan(plan, file)
    run_report(file, out, None, ())
    assert "0 of 2. Names are claims" in squeezed(out.read_text())
    run_sign(file, f"Ada {safe(HOSTILE)}", "read row by row")
    run_report(file, out, None, ())
    made = out.read_text()
    assert f"1 of 2 (Ada {safe(HOSTILE)})" in squeezed(made) and "read row by row" in made
    assert not [tag for tag, _ in Elements(made).tags if tag == "img"]
    assert 'id="signatures"' not in page(make_plan([make_row()])), "nobody has to sign"


def test_behind_another_replicator_the_page_says_nothing_of_mm2():
    plan = make_plan([make_row(checkpoint_target_offset=None)], flow={"replicator": "any"}, mm2_counts={})
    made = page(plan)
    told = made[: made.index('id="data"')]  # what follows is data and script
    told = re.sub("<style>.*?</style>", "", told, flags=re.DOTALL).replace("MM2_MIGRATE_", "")
    assert "replicator" in told and "MM2" not in told and "MirrorMaker" not in told
    assert [data_of(made)["checkpoints"], data_of(page(golden_plan()))["checkpoints"]] == [False, True]


@given(st.text(alphabet=st.characters(exclude_characters=GAP)))
def test_a_sentence_is_its_wording_and_its_numbers(text):
    wording, numbers = split_sentence(text)
    gaps = [*map(str, numbers), ""]
    assert "".join(a + b for a, b in zip(wording.split(GAP), gaps, strict=True)) == text


@given(st.text())
def test_json_in_a_script_can_not_end_it_and_is_the_same_value(text):
    made = as_json({"x": text})
    assert not set(made) & set("<>&") and made.isascii() and json.loads(made) == {"x": text}


def test_offsets_that_javascript_would_round_are_text():
    plan = make_plan([make_row(source_committed=2**53 + 1, source_log_end=2**60)])
    assert f'"{2**53 + 1}"' in report_data(plan, NOTHING, "p", 10).groups[0]


def test_how_long_a_group_was_idle_is_in_the_page_where_its_records_told_it():
    activity = (PlannedActivity("g", 1_700_000_000_000, None, None),)
    plan = make_plan([make_row("g"), make_row("h")], activity=activity, created_at_ms=1_700_000_061_500)
    page = report_data(plan, Aftermath(), "c.plan", 10).page
    g, h = page["groups"]
    assert page["activity"] and (g["idle"], h["idle"], h["activity"]) == (62, None, "")
    assert g["activity"].startswith("last commit 2023-11-14T22:13:20.000Z, 62 s before")
    assert not report_data(make_plan([make_row("g")]), Aftermath(), "c.plan", 10).page["activity"]
