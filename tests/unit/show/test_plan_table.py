"""A plan as a table and for other programs: its verdict, its numbers, its groups by both names, what comes next."""

import csv
import json

import pytest

from migrate.errors import UsageError
from migrate.model import Decision, Scope
from migrate.plan.diff import diff
from migrate.plan.plan import PlannedActivity, PlannedGroupState
from migrate.plan.totals import totals
from migrate.show import review
from migrate.show.aftermath import Aftermath
from migrate.show.diff import diff_lines
from migrate.show.explain import explanation
from migrate.show.group_table import activity_texts, group_lines, state_texts
from migrate.show.next_steps import OPTIONS_TO_ADD, next_steps
from migrate.show.plan_export import (
    FORMATS,
    csv_lines,
    kcg_companion,
    kcg_lines,
    refuse_unprintable,
    select,
)
from migrate.show.plan_table import Page, identity, made_with, totals_lines, verdict
from migrate.show.report_data import report_data
from tests.builders import make_check, make_plan, make_row

TWO = make_plan([make_row("a"), make_row("b", decision=Decision.BLOCK)], checks=(make_check("re-read-limit", "b"),))


def test_a_block_of_a_cluster_leaves_nothing_to_apply():
    plan = make_plan([make_row()], checks=(make_check("clusters-differ", "A", scope=Scope.CLUSTER),))
    assert verdict(plan, totals(plan))[0] == "BLOCKED: everything, by clusters-differ"
    assert next_steps(plan, totals(plan), "p", None)[1] == []


def test_the_next_command_quotes_the_path_and_carries_the_options():
    _, commands = next_steps(TWO, totals(TWO), "my plan", ("--target", "b:1"))
    (_, dry), (_, writing) = commands
    assert dry == "mm2-migrate apply 'my plan' --target b:1 --allow-partial"
    assert writing == f"{dry} --approve {TWO.fingerprint} --execute"
    plan = make_plan([make_row()])
    sentences, commands = next_steps(plan, totals(plan), "p", ())
    assert sentences == () and commands[0][1] == "mm2-migrate apply p", "the only flow needs no options"
    assert next_steps(plan, totals(plan), "p", None)[0] == (OPTIONS_TO_ADD,)
    for decision in (Decision.BLOCK, Decision.KEEP):
        nothing = make_plan([make_row(decision=decision)])
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


def test_the_states_of_both_sides_are_told_by_the_clusters_names():
    states = PlannedGroupState("source", "g", "Stable", 2, "consumer"), PlannedGroupState("target", "g", "Empty", 0, "")
    plan = make_plan([make_row("g")], group_states=states, source_alias="A", target_alias="B")
    assert state_texts(plan) == {"g": "Stable (2 members) on A, Empty on B"}


def test_a_plan_of_an_earlier_time_shows_what_is_committed_now_beside_it():
    rows = [make_row("g", source_committed=12, live_source_offset=99)]
    for width in (200, 70):
        plain, as_of = (
            list(group_lines(make_plan(rows, settings=settings), rows, width, False))
            for settings in ({}, {"commits-as-of": "2026-11-23T22:00:00.000Z"})
        )
        assert "LIVE" not in " ".join(plain)
        assert "LIVE-OFFSET" in " ".join(as_of) and any(" 99 " in f"{line} " for line in as_of)


@pytest.mark.parametrize("header", [{"flow": {"replicator": "any"}}, {"failback": True}])
@pytest.mark.parametrize("width", [80, 200])
def test_without_checkpoints_there_is_no_column_for_them(header, width):
    row = make_row(checkpoint_target_offset=None, target_topic="orders")
    with_them, without = (
        "\n".join(group_lines(plan, plan.rows, width, False)) for plan in (make_plan([row]), make_plan([row], **header))
    )
    assert "MM2-OFFSET" in with_them and "MM2" not in without
    assert "TARGET-TOPIC" not in with_them, "no topic is renamed"
    assert "TARGET-OFFSET" in without and "RE-READS" in without and str(row.target_offset) in without


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


def cells(row):
    (read,) = csv.DictReader(csv_lines(make_plan([row]), [row]))
    return read


def test_what_a_file_for_kafkas_tool_cannot_remove_is_said_beside_it():
    rows = [make_row("a"), make_row("b", decision=Decision.REMOVE, target_offset=None)]
    assert list(kcg_lines(rows)) == ["a,A.orders,0,650"]
    undo = make_plan(rows, kind="undo")
    for chosen in (rows, rows[1:]):
        assert "LEFT OUT: 1 offset to be removed" in kcg_companion(undo, "undo.plan", chosen)
    assert "LEFT OUT" not in kcg_companion(undo, "undo.plan", rows[:1])


def test_other_tools_are_given_the_targets_name_of_a_group_whose_control_characters_are_looked_for_and_csv_both():
    row = make_row("orders", target_group="orders-eu")
    assert list(kcg_lines([row])) == ["orders-eu,A.orders,0,650"]
    assert (cells(row)["GROUP"], cells(row)["TARGET GROUP"]) == ("orders", "orders-eu")
    assert (cells(make_row("orders"))["TARGET GROUP"], cells(make_row("=1+1"))["GROUP"]) == ("orders", "'=1+1")
    assert " --group orders-eu --dry-run" in kcg_companion(make_plan([row]), "cutover.plan", [row])
    refuse_unprintable([make_row("a\x1b", target_group="a")])
    with pytest.raises(UsageError, match="control characters"):
        refuse_unprintable([make_row("a", target_group="a\x1b")])
    assert list(kcg_lines([make_row("a\n", target_group="b")])) == ["b,A.orders,0,650"]
