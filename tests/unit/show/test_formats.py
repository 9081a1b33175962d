"""`show`: five formats of one plan that agree with each other, hide nothing, and obey no name."""

import csv
import json
import re
from io import StringIO

import pytest

from migrate.cli.main import cli
from migrate.errors import EXIT_USAGE, UsageError
from migrate.model import Decision, Grade, Level, Scope
from migrate.plan.plan import PlannedGroupState
from migrate.show.plan_export import FORMATS, kcg_companion, refuse_unprintable, select
from migrate.show.plan_table import Page, table
from tests.builders import make_check, make_plan, make_row
from tests.unit.goldenfiles import compare_with_golden
from tests.unit.goldenplan import golden_plan
from tests.unit.pages import render

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


def test_the_summary_is_the_table_without_the_rows():
    whole, short = text(golden_plan()), "\n".join(table(golden_plan(), None, Page("cutover.plan"))) + "\n"
    before, after = whole.split("GROUPS\n")[0], whole[whole.index("Passed: ") :]
    assert short == before + after


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "on 1 row they lie 40 records beyond this plan"),
        ({"grade": Grade.EXACT}, "on 1 row they would skip records that the group has not read"),
        ({"grade": Grade.EXACT, "target_log_end": 650}, "on 1 row they lie 40 records beyond this plan"),
    ],
)
def test_only_beside_a_proven_row_mm2_is_said_to_skip_and_not_at_the_logs_end(changes, said):
    row = make_row(checkpoint_target_offset=690, rereads_at_most=0, rereads_estimate=None, **changes)
    assert said in text(make_plan([row]), width=200)


@pytest.mark.parametrize(
    ("plan", "verdict"),
    [
        (make_plan([make_row()]), "READY TO APPLY: 1 offset of 1 group"),
        (
            make_plan([make_row(), make_row("x", decision=Decision.BLOCK, reason="rewind")]),
            "BLOCKED: 1 of 2 groups; 1 other can be applied with --allow-partial",
        ),
        (
            make_plan([make_row(decision=Decision.BLOCK)],
                      checks=(make_check("clusters-differ", "B", scope=Scope.CLUSTER),)),
            "BLOCKED: everything, by clusters-differ",
        ),
        (make_plan([make_row()], checks=(make_check("named-groups-exist", "x"),)), "BLOCKED: 1 check, see below; "
             "1 group can be applied with --allow-partial"),
        (make_plan([make_row()], checks=(make_check(level=Level.NOT_VISIBLE, counts_as=Level.BLOCK),)),
         "BLOCKED: 1 check, see below; 1 group can be applied with --allow-partial"),
        (make_plan([]), "NOTHING TO DO: no commit is inside the filters"),
        (make_plan([make_row(decision=Decision.KEEP, reason="already-there")]),
         "NOTHING TO DO: no row changes an offset"),
        (make_plan([make_row(target_prior=900, reason="rewound")]),
         "READY TO APPLY: 1 offset of 1 group; but 1 row rewinds, see below"),
        (make_plan([make_row(decision=Decision.REMOVE)], kind="undo"), "UNDO: READY TO APPLY: 1 offset of 1 group"),
    ],
)  # fmt: skip
def test_the_first_line_is_the_verdict(plan, verdict):
    assert lines(plan)[0] == verdict


def test_what_was_accepted_commits_that_are_nowhere_and_why_rows_are_estimated_is_said():
    accepted = make_plan([make_row()], checks=(make_check(level=Level.WARN, accepted=True),))
    assert text(accepted).startswith("READY") and "ACCEPTED  source-group-stopped" in text(accepted)
    assert "MISSING" not in text(golden_plan())
    assert "Do not apply" in " ".join(text(make_plan([make_row()], counts={"commits_read": 2})).split())
    assert "records were not compared" in text(make_plan([make_row()]))
    exact = make_row(grade=Grade.EXACT, rereads_at_most=0, rereads_estimate=None)
    assert "No records" not in text(make_plan([exact]))


def attention_of(checks, width=80):
    """What stands under NEEDS ATTENTION."""
    shown = text(make_plan([make_row()], checks=tuple(checks)), width=width)
    return shown.split("NEEDS ATTENTION\n")[1].split("\nGROUPS\n")[0]


def alike(count, **values):
    return [make_check(subject=f"group-{i:03}", seen="its groups and groups.exclude leave it out", **values)
            for i in range(count)]  # fmt: skip


def test_thirty_groups_with_the_same_warning_take_a_few_lines_and_all_are_named():
    told = attention_of(alike(30, level=Level.WARN))
    assert told.count("leave it out") == 1 and "    all: its groups and groups.exclude leave it out" in told
    assert all(f"group-{i:03}" in told for i in range(30)) and " more" not in told
    assert len(told.splitlines()) <= 9 and all(len(line) <= 80 for line in told.splitlines())

    checks = [*alike(3), make_check(subject="other", seen="another thing"), *alike(5)[3:]]
    told = attention_of(checks, 120)
    assert "    5 groups: its groups" in told and "    other: another thing" in told


def test_names_and_kinds_of_evidence_beyond_the_cap_are_counted_with_the_command_that_prints_them():
    told = " ".join(attention_of(alike(300)).split())
    assert told.count("BLOCK source-group-stopped, 300 groups") == 1
    assert "group-039" in told and "group-040" not in told
    assert "and 260 more: mm2-migrate show cutover.plan --format json" in told
    told = attention_of([make_check(subject=f"g{i}", seen=f"stable with {i} members") for i in range(300)], 120)
    assert " g19: " in told and " g20: " not in told
    assert "and 280 more: mm2-migrate show cutover.plan --format json" in told


def test_rows_that_skip_or_rewind_are_red():
    red = re.findall(r"\x1b\[1;31m([^\x1b]*)", text(golden_plan(), colour=True, width=200))
    for group in ("kept-ahead", "reset-to-latest", "left-alone"):
        assert any(line.startswith(group) and " A." in line for line in red), group
    assert any("rewound" in line and "payments" in line for line in red)


LONG = "a-very-long-group-name-that-somebody-generated-from-a-deployment-" + "x" * 150


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


@pytest.mark.parametrize("name", [HOSTILE.replace("\n", ""), "a\rb", "\r", " a ", "#a", "", "a,b", 'a"b'])
def test_a_name_is_one_field_of_the_kcg_form(name):
    (fields,) = csv.reader(StringIO(text(make_plan([make_row(name)]), "kcg"), newline=""))
    assert fields == [name, "A.orders", "0", "650"]


def companion(plan):
    return kcg_companion(plan, "cutover.plan", plan.rows)


def test_a_group_that_kafkas_tool_would_cut_in_two_is_left_out_of_the_kcg_form_and_named():
    plan = make_plan([make_row("a\nb"), make_row("c")])
    assert text(plan, "kcg").strip() == "c,A.orders,0,650"
    assert r"LEFT OUT: a\nb: that tool cannot read a line feed" in companion(plan)
    assert "1 row of 1 group" in companion(plan)
    assert companion(make_plan()) == "There is no row to set: the file is empty."


def test_the_kcg_form_is_not_for_a_terminal_where_a_name_holds_control_characters():
    refuse_unprintable(make_plan([make_row("名前 =1 [red]")]).rows)
    with pytest.raises(UsageError, match=r"group a\\x1b\[2J holds control characters"):
        refuse_unprintable(make_plan([make_row("a\x1b[2J")]).rows)


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


def test_the_command_line_offers_the_five_formats_and_the_golden_plan_has_every_decision_and_every_grade():
    assert set(golden_plan().decisions()) == set(Decision)
    assert {row.grade for row in golden_plan().rows} == {*Grade, None}
    (form,) = (option for option in cli.commands["show"].params if option.name == "form")
    assert list(form.type.choices) == list(FORMATS) == ["table", "json", "jsonl", "csv", "kcg"]
