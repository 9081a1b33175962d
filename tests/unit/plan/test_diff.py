"""`show --diff`: what a rehearsal said and tonight's plan says otherwise."""

import json
from pathlib import Path

import pytest
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
    stopped = tuple(make_check("source-group-stopped", group) for group in ("wave-1", "other"))
    rehearsal = make_plan([make_row("wave-1"), make_row("other")], checks=stopped)
    tonight = make_plan([make_row("wave-1", source_committed=701)], settings=settings)
    told, listed = said(rehearsal, tonight), document(rehearsal, tonight)
    moved, mended, outside = (told.index(w) for w in ("OFFSETS THAT MOVED", "NO LONGER THERE", "OUTSIDE THIS PLAN'S"))
    assert moved < mended < outside and "1 row of 1 group of the earlier plan" in told
    assert "other" not in told.replace("exclude-group: (none) -> other", "") and "GONE" not in told
    assert listed["outside"] == {"rows": 1, "groups": 1} and not listed["gone"]


def test_a_group_that_the_filters_ask_for_and_that_is_gone_is_named():
    missing = make_check("groups-unknown", "other")
    rehearsal = make_plan([make_row("wave-1"), make_row("other")])
    for header in ({"settings": {"group": "wave-.* oth.*"}}, {"settings": {"groups-file": "w"}, "checks": (missing,)}):
        told = said(rehearsal, make_plan([make_row("wave-1")], **header))
        assert "ROWS THAT ARE GONE" in told and "other" in told


def test_a_plan_and_itself_have_no_difference_and_a_block_that_was_accepted_since_is_no_new_one():
    found = diff(golden_plan(), golden_plan())
    assert found.is_empty and found.same_rows == len(golden_plan().rows)
    assert said(golden_plan(), golden_plan()).startswith("NOTHING CHANGED")
    accepted = make_check(level=Level.BLOCK, accepted=True, counts_as=Level.WARN)
    found = diff(make_plan([make_row()], checks=(make_check(),)), make_plan([make_row()], checks=(accepted,)))
    assert not found.found and [c.subject for c in found.mended] == ["billing"]


def test_one_difference_of_any_kind_is_a_change():
    one = make_plan([make_row()])
    for other in (
        make_plan([make_row(), make_row("young")]),
        make_plan([make_row(grade=Grade.EXACT)]),
        make_plan([make_row(source_committed=900, target_offset=850)]),
        make_plan([make_row()], settings={"rewind": "set"}),
        make_plan([make_row()], checks=(make_check("not-drained", "orders"),)),
    ):
        assert said(one, other).startswith("CHANGED") and said(other, one).startswith("CHANGED")


def test_rows_decided_otherwise_and_those_that_merely_moved_settings_checks_and_groups_that_came_and_went_are_told():
    before = make_plan(
        [make_row("old"), make_row("b"), make_row("b", partition=1), make_row("c")], checks=(make_check(),)
    )
    blocked = make_row("b", partition=1, decision=Decision.BLOCK, reason="rewind")
    moved = make_row("b", source_committed=900, target_offset=850)
    now = make_plan(
        [make_row("c", grade=Grade.EXACT), make_row("young"), moved, blocked],
        settings={"rewind": "set"}, checks=(make_check("not-drained", "orders"),),
    )  # fmt: skip
    shown = said(before, now)
    for text in (
        "CHANGED: 2 decided otherwise, 1 only moved",
        "rewind: block -> set",
        "BLOCK  not-drained, orders",
        "BLOCK  source-group-stopped, billing",
        "b orders:1  set 650 -> block 650; reason translated -> rewind",
        "b  1 row: committed +200, planned +200",
        "c orders:0  set 650 -> set 650; estimated -> exact",
        "NEW ROWS\n  young  all 1 row: 1 set",
        "ROWS THAT ARE GONE\n  old  all 1 row: 1 set",
    ):
        assert text in shown, (text, shown)
    assert shown.index("NEW BLOCKS") < shown.index("not-drained") < shown.index("NO LONGER THERE")


@pytest.mark.parametrize("name", [name for name in Row._fields if name not in (*KEY, *TOLD)])
def test_no_field_of_a_row_changes_unseen(name):
    row = make_row()
    others = {"decision": Decision.KEEP, "method": Method.END, "grade": Grade.EXACT}
    other = others.get(name, "other" if isinstance(getattr(row, name), str) else 7)
    found = diff(make_plan([row]), make_plan([row._replace(**{name: other})]))
    assert len(found.judged) + len(found.moved) == 1 and found.same_rows == 0


keys = st.lists(
    st.builds(
        make_row, st.sampled_from("abc"), st.sampled_from("tu"), st.integers(0, 2),
        target_offset=st.integers(600, 603), decision=st.sampled_from([Decision.SET, Decision.BLOCK]),
    ),
    max_size=8, unique_by=lambda row: row.key,
)  # fmt: skip


@given(keys, keys)
def test_the_later_plan_is_the_earlier_one_with_the_differences_laid_over_it(before, now):
    def key(row):
        return row["group"], row["source_topic"], row["partition"]

    told = document(make_plan(before), make_plan(now))
    rows = {row.key: row_document(row) for row in before}
    for row in told["gone"]:
        del rows[key(row)]
    for change in told["changed"]:
        for field, values in change["fields"].items():
            assert rows[key(change)][field] == values["before"]
            rows[key(change)][field] = values["now"]
    rows |= {key(row): row for row in told["new"]}
    assert rows == {row.key: row_document(row) for row in now}
    found = diff(make_plan(before), make_plan(now))
    assert found.same_rows == len(now) - len(told["new"]) - len(told["changed"])
    of_a = [[row for row in rows if row.group == "a"] for rows in (before, now)]
    part, alone = found.of([*of_a[0], *of_a[1]]), diff(*map(make_plan, of_a))
    assert (part.judged, part.moved, part.new) == (alone.judged, alone.moved, alone.new)
    assert (part.gone, part.outside, part.same_rows) == (alone.gone, alone.outside, alone.same_rows)


def test_plans_of_different_clusters_are_not_compared():
    with pytest.raises(UsageError, match="do not have the same target"):
        diff(make_plan(), make_plan(target_cluster_id="another"))


def test_the_command_names_both_files_takes_only_and_refuses_a_group_that_neither_plan_has(tmp_path):
    rehearsal, tonight = str(tmp_path / "rehearsal.plan"), str(tmp_path / "cutover.plan")
    write_plan(make_plan([make_row("billing"), make_row("crm")]), Path(rehearsal))
    write_plan(make_plan([make_row("billing", target_offset=700), make_row("crm", grade=Grade.EXACT)]), Path(tonight))
    exact = run("show", tonight, "--diff", rehearsal, "--only", "exact").stdout
    assert rehearsal in exact and "crm orders:0" in exact and "billing" not in exact
    wrong = run("show", tonight, "--diff", rehearsal, "--group", "nobody")
    assert wrong.exit_code == 2 and "matches none" in wrong.stderr
