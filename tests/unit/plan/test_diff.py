"""`show --diff`: what a rehearsal said and tonight's plan says otherwise."""

import json
from pathlib import Path

import pytest
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st

from migrate.errors import UsageError
from migrate.model import Decision, Grade, Level, Method, Row
from migrate.plan.diff import KEY, TOLD, diff
from migrate.plan.file import write_plan
from migrate.row_table import row_document
from migrate.show.diff import diff_document, diff_lines
from tests.builders import make_check, make_plan, make_row
from tests.unit.commands import run
from tests.unit.goldenplan import golden_plan


def said(before, now, width=200) -> str:
    return "\n".join(diff_lines(diff(before, now), ("rehearsal.plan", "cutover.plan"), width))


def document(before, now):
    return json.loads("\n".join(diff_document(diff(before, now))))


@pytest.mark.parametrize(
    "settings",
    [{"groups-file": "wave1.txt"}, {"group": "wave-.*"}, {"group": "'wave-.{1, 2}' ''"}, {"exclude-group": "other"}],
)
def test_groups_outside_of_this_plans_filters_are_a_count_and_what_moved_stands_before_what_is_gone(settings):
    stopped = [make_check("source-group-stopped", group) for group in ("wave-1", "other")]
    rehearsal = make_plan([make_row("wave-1"), make_row("other")], checks=tuple(stopped))
    tonight = make_plan([make_row("wave-1", source_committed=701)], settings=settings)
    told = said(rehearsal, tonight)
    moved, mended, outside = (told.index(w) for w in ("OFFSETS THAT MOVED", "NO LONGER THERE", "OUTSIDE THIS PLAN'S"))
    assert moved < mended < outside and "1 row of 1 group of the earlier plan" in told
    assert "other" not in told.replace("exclude-group: (none) -> other", "") and "GONE" not in told
    assert (
        document(rehearsal, tonight)["outside"] == {"rows": 1, "groups": 1} and not document(rehearsal, tonight)["gone"]
    )


def test_a_group_that_the_filters_ask_for_and_that_is_gone_is_named():
    missing = make_check("groups-unknown", "other")
    rehearsal = make_plan([make_row("wave-1"), make_row("other")])
    for tonight in (
        make_plan([make_row("wave-1")], settings={"group": "wave-.* oth.*"}),
        make_plan([make_row("wave-1")], settings={"groups-file": "wave1.txt"}, checks=(missing,)),
        make_plan([make_row("wave-1")]),
    ):
        assert "ROWS THAT ARE GONE" in said(rehearsal, tonight) and "other" in said(rehearsal, tonight)


def test_a_plan_and_itself_have_no_difference_and_a_block_that_was_accepted_since_is_no_new_one():
    found = diff(golden_plan(), golden_plan())
    assert found.is_empty and found.same_rows == len(golden_plan().rows)
    assert said(golden_plan(), golden_plan()).startswith("NOTHING CHANGED")
    accepted = make_check(level=Level.BLOCK, accepted=True, counts_as=Level.WARN)
    found = diff(make_plan([make_row()], checks=(make_check(),)), make_plan([make_row()], checks=(accepted,)))
    assert not found.found and [c.subject for c in found.mended] == ["billing"]


@pytest.mark.parametrize(
    "other",
    [
        make_plan([make_row(), make_row("young")]),
        make_plan([make_row(grade=Grade.EXACT)]),
        make_plan([make_row(source_committed=900, target_offset=850)]),
        make_plan([make_row()], settings={"rewind": "set"}),
        make_plan([make_row()], checks=(make_check("not-drained", "orders"),)),
    ],
    ids=["a row", "a grade", "an offset", "a setting", "a check"],
)
def test_one_difference_of_any_kind_is_a_change(other):
    one = make_plan([make_row()])
    assert said(one, other).startswith("CHANGED") and said(other, one).startswith("CHANGED")


def test_a_row_that_is_now_blocked_is_told_from_one_that_merely_moved():
    before = make_plan([make_row(partition=0), make_row(partition=1)])
    now = make_plan(
        [
            make_row(partition=0, source_committed=900, target_offset=850),
            make_row(partition=1, decision=Decision.BLOCK, reason="rewind"),
        ]
    )
    shown = said(before, now)
    assert shown.startswith("CHANGED: 1 decided otherwise, 1 only moved")
    assert "billing orders:1  set 650 -> block 650; reason translated -> rewind" in shown
    assert "billing  1 row: committed +200, planned +200" in shown


def test_grades_settings_checks_and_groups_that_came_and_went_are_told():
    before = make_plan([make_row("old"), make_row("stays")], checks=(make_check(subject="stays"),))
    now = make_plan(
        [make_row("stays", grade=Grade.EXACT), make_row("young")],
        settings={"rewind": "set"}, checks=(make_check("not-drained", "orders"),),
    )  # fmt: skip
    shown = said(before, now)
    assert shown.startswith("CHANGED")
    for text in (
        "rewind: block -> set",
        "BLOCK  not-drained, orders",
        "BLOCK  source-group-stopped, stays",
        "stays orders:0  set 650 -> set 650; estimated -> exact",
        "NEW ROWS\n  young  all 1 row: 1 set",
        "ROWS THAT ARE GONE\n  old  all 1 row: 1 set",
    ):
        assert text in shown, (text, shown)
    assert shown.index("NEW BLOCKS") < shown.index("not-drained") < shown.index("NO LONGER THERE")


keys = st.lists(
    st.builds(
        make_row, st.sampled_from("abc"), st.sampled_from("tu"), st.integers(0, 2),
        target_offset=st.integers(600, 603), decision=st.sampled_from([Decision.SET, Decision.BLOCK]),
    ),
    max_size=8, unique_by=lambda row: row.key,
)  # fmt: skip


@pytest.mark.parametrize("name", [name for name in Row._fields if name not in (*KEY, *TOLD)])
def test_no_field_of_a_row_changes_unseen(name):
    row = make_row()
    value = getattr(row, name)
    others = {"decision": Decision.KEEP, "method": Method.END, "grade": Grade.EXACT}
    other = others.get(name, "other" if isinstance(value, str) else 7)
    found = diff(make_plan([row]), make_plan([row._replace(**{name: other})]))
    assert len(found.judged) + len(found.moved) == 1 and found.same_rows == 0
    assert found.of([row]).same_rows == 0


@given(keys, keys)
def test_the_later_plan_is_the_earlier_one_with_the_differences_laid_over_it(before, now):
    told = document(make_plan(before), make_plan(now))
    rows = {row.key: row_document(row) for row in before}
    for row in told["gone"]:
        del rows[row["group"], row["source_topic"], row["partition"]]
    for change in told["changed"]:
        row = rows[change["group"], change["source_topic"], change["partition"]]
        for field, values in change["fields"].items():
            assert row[field] == values["before"]
            row[field] = values["now"]
    rows |= {(row["group"], row["source_topic"], row["partition"]): row for row in told["new"]}
    assert rows == {row.key: row_document(row) for row in now}
    assert diff(make_plan(before), make_plan(now)).same_rows == len(now) - len(told["new"]) - len(told["changed"])


def test_plans_of_different_clusters_are_not_compared():
    with pytest.raises(UsageError, match="do not have the same target"):
        diff(make_plan(), make_plan(target_cluster_id="another"))


def test_a_hostile_name_reaches_no_terminal_in_a_difference():
    bad = "\x1b[2J\u202e\n"
    before, now = make_plan([make_row(bad)], settings={bad: bad}), make_plan([make_row(bad + "2")])
    for width in (60, 200):
        for line in diff_lines(diff(before, now), (bad, bad), width):
            assert line.isprintable(), line


# The command.


def show(*words: object) -> Result:
    return run("show", *map(str, words))


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    rehearsal, tonight = tmp_path / "rehearsal.plan", tmp_path / "cutover.plan"
    write_plan(make_plan([make_row("billing"), make_row("gone"), make_row("crm")]), rehearsal)
    write_plan(make_plan([make_row("billing", target_offset=700), make_row("crm", grade=Grade.EXACT)]), tonight)
    return rehearsal, tonight


def test_diff_names_both_files_and_takes_group_and_only(files):
    rehearsal, tonight = files
    shown = show(tonight, "--diff", rehearsal)
    assert shown.exit_code == 0, shown.stderr
    assert str(rehearsal) in shown.stdout and "planned +50" in shown.stdout
    one = show(tonight, "--diff", rehearsal, "--group", "gone")
    assert "gone  all 1 row: 1 set" in one.stdout and "billing" not in one.stdout
    exact = show(tonight, "--diff", rehearsal, "--only", "exact")
    assert "crm orders:0" in exact.stdout and "billing" not in exact.stdout
    wrong = show(tonight, "--diff", rehearsal, "--group", "nobody")
    assert wrong.exit_code == 2 and "matches none" in wrong.stderr


def test_diff_has_a_json_form_and_no_other(files):
    rehearsal, tonight = files
    told = json.loads(show(tonight, "--diff", rehearsal, "--format", "json").stdout)
    assert [row["group"] for row in told["gone"]] == ["gone"]
    for form in ("csv", "jsonl", "kcg"):
        assert show(tonight, "--diff", rehearsal, "--format", form).exit_code == 2
