"""`show`: formats of one plan that agree with each other, hide nothing, obey no name, and say what comes next."""

import csv
import json
import re

import pytest

from migrate.errors import EXIT_USAGE, UsageError
from migrate.model import Decision, Grade, Level, Scope
from migrate.plan.diff import diff
from migrate.plan.plan import PlannedActivity, PlannedGroupState
from migrate.plan.totals import totals
from migrate.show import review
from migrate.show.aftermath import Aftermath
from migrate.show.diff import diff_lines
from migrate.show.explain import explanation
from migrate.show.group_table import activity_texts, group_lines
from migrate.show.next_steps import OPTIONS_TO_ADD, next_steps
from migrate.show.plan_export import FORMATS, csv_lines, kcg_companion, kcg_lines, refuse_unprintable, select
from migrate.show.plan_table import Page, identity, made_with, totals_lines
from migrate.show.report_data import report_data
from tests.builders import make_check, make_plan, make_row
from tests.unit.goldenfiles import compare_with_golden
from tests.unit.goldenplan import golden_plan
from tests.unit.pages import render

LONG = "a-very-long-group-name-that-somebody-generated-from-a-deployment-" + "x" * 150
HOSTILE = "=cmd|' /C calc'!A0\x1b[2J\r\n\"quo,te\"\u202e注文"


def lines(plan, form="table", **options):
    return list(render(plan, form, "cutover.plan", **options))


def text(plan, form="table", **options):
    return "\n".join(lines(plan, form, **options)) + "\n"


@pytest.mark.parametrize("width", [80, 200])
def test_the_table_looks_as_it_was_agreed_and_differs_in_nothing_but_colour_where_it_is_coloured(width):
    plain, coloured = (text(golden_plan(), width=width, colour=colour) for colour in (False, True))
    compare_with_golden(f"table-{width}.txt", plain)
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain != coloured


@pytest.mark.parametrize("form", ["json", "jsonl", "csv", "kcg"])
def test_the_other_formats_look_as_they_were_agreed(form):
    compare_with_golden(f"plan.{form}", text(golden_plan(), form))


ONE, BLOCKED, KEPT, REMOVED = (
    make_row(decision=each) for each in (Decision.SET, Decision.BLOCK, Decision.KEEP, Decision.REMOVE)
)
WHOLE, MISNAMED = make_check("clusters-differ", "B", scope=Scope.CLUSTER), make_check("named-groups-exist", "x")


@pytest.mark.parametrize(
    ("rows", "header", "verdict"),
    [
        ([ONE], {}, "READY TO APPLY: 1 offset of 1 group"),
        ([BLOCKED, make_row("x")], {}, "BLOCKED: 1 of 2 groups; 1 other can be applied with --allow-partial"),
        ([BLOCKED], {"checks": (WHOLE,)}, "BLOCKED: everything, by clusters-differ"),
        ([ONE], {"checks": (MISNAMED,)}, "BLOCKED: 1 check, see below; 1 group can be applied with --allow-partial"),
        ([], {}, "NOTHING TO DO: no commit is inside the filters"),
        ([KEPT], {}, "NOTHING TO DO: no row changes an offset"),
        ([make_row(target_prior=900)], {}, "READY TO APPLY: 1 offset of 1 group; but 1 row rewinds, see below"),
        ([REMOVED], {"kind": "undo"}, "UNDO: READY TO APPLY: 1 offset of 1 group"),
    ],
)
def test_the_first_line_is_the_verdict(rows, header, verdict):
    assert lines(make_plan(rows, **header))[0] == verdict


def test_what_was_accepted_commits_that_are_nowhere_and_why_rows_are_estimated_is_said():
    accepted = make_plan([make_row()], checks=(make_check(level=Level.WARN, accepted=True),))
    assert text(accepted).startswith("READY") and "ACCEPTED  source-group-stopped" in text(accepted)
    assert "Do not apply" in " ".join(text(make_plan([make_row()], counts={"commits_read": 2})).split())
    assert "records were not compared" in text(make_plan([make_row()]))
    assert "records were not compared" not in text(make_plan([make_row(grade=Grade.EXACT)]))


def attention_of(checks, width=80):
    """What stands under NEEDS ATTENTION."""
    shown = text(make_plan([make_row()], checks=tuple(checks)), width=width)
    return shown.split("NEEDS ATTENTION\n")[1].split("\nGROUPS\n")[0]


def alike(count, **values):
    return [make_check(subject=f"group-{i:03}", seen="its groups and groups.exclude leave it out", **values)
            for i in range(count)]  # fmt: skip


def test_names_and_kinds_of_evidence_beyond_the_cap_are_counted_with_the_command_that_prints_them():
    told = " ".join(attention_of(alike(300)).split())
    assert told.count("BLOCK source-group-stopped, 300 groups") == told.count("all: its groups and") == 1
    assert "group-039" in told and "group-040" not in told
    assert "and 260 more: mm2-migrate show cutover.plan --format json" in told
    told = attention_of([make_check(subject=f"g{i}", seen=f"stable with {i} members") for i in range(300)], 120)
    assert " g19: " in told and " g20: " not in told
    assert "and 280 more: mm2-migrate show cutover.plan --format json" in told
    mixed = attention_of([*alike(3), make_check(subject="other", seen="another thing")], 120)
    assert "    3 groups: its groups" in mixed and "    other: another thing" in mixed


def test_rows_that_skip_or_rewind_are_red():
    red = re.findall(r"\x1b\[1;31m([^\x1b]*)", text(golden_plan(), colour=True, width=200))
    for group in ("kept-ahead", "reset-to-latest", "left-alone"):
        assert any(line.startswith(group) and " A." in line for line in red), group
    assert any("rewound" in line and "payments" in line for line in red)


@pytest.mark.parametrize(("width", "size"), [(40, 10**18), (80, 10**18), (200, 10**3)])
def test_no_name_and_no_number_is_ever_cut(width, size):
    row = make_row(LONG, f"{LONG}-topic", source_committed=size, source_log_end=size + 1, target_offset=size)
    shown = text(make_plan([row]), width=width)
    assert LONG in shown and f"A.{LONG}-topic" in shown and f" {size} " in shown


def hostile_plan():
    return make_plan(
        [make_row(HOSTILE, f"{HOSTILE}.t", source_metadata=HOSTILE)],
        checks=(
            make_check(subject=HOSTILE, seen=f"members: {HOSTILE}", level=Level.WARN),
            make_check(HOSTILE, scope=Scope.CLUSTER),  # what stands in the first line, which reviewers compare
        ),
        settings={"group": HOSTILE},
        group_states=(PlannedGroupState("source", HOSTILE, HOSTILE, 1, "classic"),),
        counts={"commits_read": 1, "rows": 1, f"filtered:{HOSTILE}": 0},
        waivers=(HOSTILE,),
        source_alias=HOSTILE,
    )


@pytest.mark.parametrize("form", ["table", "json", "jsonl", "csv"])
@pytest.mark.parametrize("width", [80, 400])
def test_a_hostile_name_reaches_no_terminal_and_is_exact_in_json(form, width):
    for line in lines(hostile_plan(), form, width=width):
        assert line.isprintable(), line
    assert json.loads(text(hostile_plan(), "json"))["rows"][0]["group"] == HOSTILE


def companion(plan):
    return kcg_companion(plan, "cutover.plan", plan.rows)


def test_what_a_file_for_kafkas_tool_cannot_hold_is_left_out_of_it_and_said_beside_it():
    """A group whose name that tool would cut in two, and an offset that is to be removed."""
    plan = make_plan([make_row("a\nb"), make_row("c")])
    assert text(plan, "kcg").strip() == "c,A.orders,0,650"
    assert r"LEFT OUT: a\nb: that tool cannot read a line feed" in companion(plan)
    assert "1 row of 1 group" in companion(plan)
    assert companion(make_plan()) == "There is no row to set: the file is empty."
    rows = [make_row("a"), make_row("b", decision=Decision.REMOVE, target_offset=None)]
    assert list(kcg_lines(rows)) == ["a,A.orders,0,650"]
    undo = make_plan(rows, kind="undo")
    for chosen, is_left_out in ((rows, True), (rows[1:], True), (rows[:1], False)):
        assert ("LEFT OUT: 1 offset to be removed" in kcg_companion(undo, "undo.plan", chosen)) is is_left_out


def test_the_companion_text_says_what_is_lost_and_gives_the_dry_run():
    told = companion(make_plan([make_row("a b"), make_row("c", target_metadata="x"), make_row("\x1b[2J")]))
    assert "drops commit metadata (1 of the rows have" in " ".join(told.split())
    assert all(line.isprintable() for line in told.splitlines())
    assert (
        "kafka-consumer-groups --bootstrap-server b1:9092 --reset-offsets --from-file cutover.plan.csv "
        r"--group $'\x1b[2J' --group 'a b' --group c --dry-run"
    ) in told


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"groups": ["bill"]}, "bill matches none"),
        ({"groups": ["("]}, "not a regular expression"),
        ({"only": ["nonsense"]}, "nonsense.*set, remove, keep, skip, block.*estimated.*group-blocked.*rewound"),
    ],
)
def test_what_selects_nothing_by_a_slip_is_wrong_use_and_names_what_there_is(options, said):
    with pytest.raises(UsageError, match=said) as error:
        select(golden_plan().rows, **options)
    assert error.value.exit_code == EXIT_USAGE


def test_only_widens_within_a_kind_and_narrows_across_kinds():
    plan = golden_plan()
    assert {row.group for row in select(plan.rows, ["bill.*", "undone"])} == {"billing", "undone"}
    both = select(plan.rows, only=["set", "keep"])
    assert {row.decision for row in both} == {Decision.SET, Decision.KEEP}
    exact = select(plan.rows, only=["set", "keep", "exact"])
    assert [row.grade for row in exact] == [Grade.EXACT]
    assert {row.reason for row in select(plan.rows, only=["rewound"])} == {"rewound"}


def test_a_selection_is_the_same_in_every_format_and_the_verdict_stays_the_plans():
    plan = golden_plan()
    options = {"groups": ["billing", "payments"], "only": ["set"]}
    wanted = select(plan.rows, **options)
    assert len(json.loads(text(plan, "json", **options))["rows"]) == len(wanted)
    counted = [len(lines(plan, form, **options)) for form in ("jsonl", "csv", "kcg")]
    assert counted == [len(wanted) + 1, len(wanted) + 1, len(wanted)]
    shown = text(plan, width=200, **options)
    assert len(re.findall(r"^\w\S+  .* set  ", shown, re.M)) == len(wanted)
    assert f"{len(wanted)} of {len(plan.rows)} rows are shown" in shown
    assert shown.splitlines()[0] == lines(plan)[0]
    assert select([make_row()], only=["remove"]) == () and "No rows." in text(make_plan([make_row()]), only=["exact"])


TWO = make_plan([make_row("a"), make_row("b", decision=Decision.BLOCK)], checks=(make_check("re-read-limit", "b"),))


def test_the_next_command_quotes_the_path_and_carries_the_options():
    _, commands = next_steps(TWO, totals(TWO), "my plan", ("--target", "b:1"))
    (_, dry), (_, writing) = commands
    assert dry == "mm2-migrate apply 'my plan' --target b:1 --allow-partial"
    assert writing == f"{dry} --approve {TWO.fingerprint} --execute"
    plan = make_plan([make_row()])
    sentences, commands = next_steps(plan, totals(plan), "p", ())
    assert sentences == () and commands[0][1] == "mm2-migrate apply p", "the only flow needs no options"
    assert next_steps(plan, totals(plan), "p", None)[0] == (OPTIONS_TO_ADD,)
    whole = make_check("clusters-differ", "A", scope=Scope.CLUSTER)
    for decision, checks in ((Decision.BLOCK, ()), (Decision.KEEP, ()), (Decision.SET, (whole,))):
        nothing = make_plan([make_row(decision=decision)], checks=checks)
        assert next_steps(nothing, totals(nothing), "p", ())[1] == []


def test_a_plan_made_while_groups_were_alive_offers_the_dry_run_alone():
    plan = make_plan(TWO.rows, checks=(make_check("source-group-stopped", "b"),))
    sentences, commands = next_steps(plan, totals(plan), "p", ())
    assert "then make a new plan" in sentences[0]
    assert [command for _, command in commands] == ["mm2-migrate apply p --allow-partial"]


def test_what_the_plan_is_of_comes_in_order_and_without_what_it_lacks():
    plan = make_plan([make_row()], undoes="f" * 64, failback=True)
    labels = [label for label, _ in identity(plan, "p")]
    assert labels[:5] == ["Plan", "Undoes", "Failback", "Source", "Target"]
    assert [label for label, _ in made_with(plan)][-1] == "Waivers"
    told = dict(identity(make_plan([make_row()], settings={"commits-as-of": "2026-11-23T22:00:00.000Z"}), "c.plan"))
    assert "2026-11-23T22:00:00.000Z" in told["As of"] and "read again" in told["As of"]
    assert "As of" not in dict(identity(make_plan([make_row()]), "c.plan"))


def test_behind_another_replicator_nothing_is_said_of_mm2_and_timestamps_are_read_not_compared():
    counted = [f"{side}_{of}" for side in ("source", "target")
               for of in ("bytes_estimated", "bytes_fetched", "records_estimated", "records_read")]  # fmt: skip
    comparison = dict.fromkeys(["partitions", "left_out", *counted], 7)
    another = {"flow": {"replicator": "any"}, "settings": {"by": "timestamp"}}
    plans = [make_plan([make_row()], comparison=comparison, **header) for header in ({}, another)]
    by_mm2, by_another = (dict(totals_lines(plan, totals(plan))) for plan in plans)
    assert "MM2 itself" in by_mm2 and "compared on 7 partitions" in by_mm2["Records"]
    assert "as long as MM2's own offset syncs tell the truth" in by_mm2["Estimated"]
    assert "MM2 itself" not in by_another and "read for their timestamps" in by_another["Records"]
    assert "as long as copies keep their timestamps" in by_another["Estimated"] and "MM2" not in by_another["Estimated"]
    labels = [label for label, _ in made_with(plans[1])]
    assert "Replicator" in labels and "MM2" not in labels


def test_a_plan_of_an_earlier_time_shows_what_is_committed_now_beside_it():
    rows = [make_row("g", source_committed=12, live_source_offset=99)]
    for width in (200, 70):
        plain, as_of = (
            list(group_lines(make_plan(rows, settings=settings), rows, width, False))
            for settings in ({}, {"commits-as-of": "2026-11-23T22:00:00.000Z"})
        )
        assert "LIVE" not in " ".join(plain)
        assert "LIVE-OFFSET" in " ".join(as_of) and any(" 99 " in f"{line} " for line in as_of)


def test_what_a_groups_own_records_told_of_its_commits_is_said_as_far_as_they_told_it():
    activity = (
        PlannedActivity("g", 1_700_000_000_000, 5_000, 12), PlannedActivity("once", 1_700_000_240_000, None, None),
        PlannedActivity("by-a-faster-clock", 1_700_000_300_000, None, None),
    )  # fmt: skip
    told = activity_texts(make_plan([make_row("g")], activity=activity, created_at_ms=1_700_000_240_000))
    assert told == {
        "g": "last commit 2023-11-14T22:13:20.000Z, 4 min before the plan was made; commits about every 5 s, each time "
        "12 records of a partition: a hard stop reads them twice",
        "once": "last commit 2023-11-14T22:17:20.000Z, 0 s before the plan was made",
        "by-a-faster-clock": "last commit 2023-11-14T22:18:20.000Z, 0 s before the plan was made",
    }


PLAN = make_plan([make_row("orders", target_group="orders-eu"), make_row("plain")])


@pytest.mark.parametrize("name", ["orders", "orders-eu"])
def test_a_group_is_selected_and_explained_by_either_name(name):
    assert [row.group for row in select(PLAN.rows, [name])] == ["orders"]
    text = "\n".join(explanation(PLAN, name, width=200))
    assert text.startswith("orders -> orders-eu, in plan") and "On B it is called orders-eu, by --group-map." in text


def test_table_difference_report_and_notebooks_have_both_names():
    table = "\n".join(FORMATS["table"](PLAN, PLAN.rows, Page("cutover.plan", 200)))
    assert "1 group with another name on B" in table
    assert "orders -> orders-eu  SET" in table and "\nplain  SET" in table
    other = make_plan([make_row("orders", target_group="orders-us"), make_row("plain")])
    text = "\n".join(diff_lines(diff(PLAN, other), ("a", "b"), 200))
    assert "DECIDED OTHERWISE" in text and "target group orders-eu -> orders-us" in text
    assert "orders -> orders-eu" in json.dumps(report_data(PLAN, Aftermath(), "p", 10).page)
    assert list(review.groups_table(PLAN)["target_group"]) == ["orders-eu", "plain"]
    assert list(review.rows_table(PLAN)["target_group"]) == ["orders-eu", ""]


def test_other_tools_are_given_the_targets_name_of_a_group_whose_control_characters_are_looked_for_and_csv_both():
    row = make_row("orders", target_group="orders-eu")
    assert list(kcg_lines([row])) == ["orders-eu,A.orders,0,650"]
    read = csv.DictReader(csv_lines(PLAN, [row, make_row("=1+1")]))
    assert [(cells["GROUP"], cells["TARGET GROUP"]) for cells in read] == [("orders", "orders-eu"), ("'=1+1", "'=1+1")]
    assert " --group orders-eu --dry-run" in kcg_companion(make_plan([row]), "cutover.plan", [row])
    refuse_unprintable([make_row("a\x1b", target_group="名前 =1 [red]")])
    with pytest.raises(UsageError, match=r"group a\\x1b holds control characters"):
        refuse_unprintable([make_row("a", target_group="a\x1b")])
    assert list(kcg_lines([make_row("a\n", target_group="b")])) == ["b,A.orders,0,650"]
