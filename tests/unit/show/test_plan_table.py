"""A plan's verdict, its numbers, and the commands to type next."""

from migrate.model import Decision, Grade, Scope
from migrate.plan.totals import totals
from migrate.show.next_steps import OPTIONS_TO_ADD, next_steps
from migrate.show.plan_table import identity, made_with, totals_lines, verdict
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
    for decision in (Decision.BLOCK, Decision.KEEP):
        nothing = make_plan([make_row(decision=decision)])
        assert next_steps(nothing, totals(nothing), "p", ())[1] == []
    assert writing == f"{dry} --approve {TWO.fingerprint} --execute"


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


def test_a_plan_of_an_earlier_time_says_so():
    told = dict(identity(make_plan([make_row()], settings={"commits-as-of": "2026-11-23T22:00:00.000Z"}), "c.plan"))
    assert "2026-11-23T22:00:00.000Z" in told["As of"] and "read again" in told["As of"]
    assert "As of" not in dict(identity(make_plan([make_row()]), "c.plan"))


def test_behind_another_replicator_no_checkpoints_are_counted_and_timestamps_are_read_not_compared():
    comparison = dict.fromkeys(
        (
            "partitions", "left_out", "source_bytes_estimated", "source_bytes_fetched", "source_records_estimated",
            "source_records_read", "target_bytes_estimated", "target_bytes_fetched", "target_records_estimated",
            "target_records_read",
        ),
        7,
    )  # fmt: skip
    plan = make_plan([make_row()], flow={"replicator": "any"}, settings={"by": "timestamp"}, comparison=comparison)
    told = dict(totals_lines(plan, totals(plan)))
    assert "MM2 itself" not in told and "read for their timestamps" in told["Records"]
    by_mm2 = make_plan([make_row()], comparison=comparison)
    told = dict(totals_lines(by_mm2, totals(by_mm2)))
    assert "MM2 itself" in told and "compared on 7 partitions" in told["Records"]


def test_an_estimate_behind_another_replicator_rests_on_no_syncs():
    row = make_row(grade=Grade.ESTIMATED)
    by_mm2, by_another = (
        dict(totals_lines(plan, totals(plan)))["Estimated"]
        for plan in (make_plan([row]), make_plan([row], flow={"replicator": "any"}))
    )
    assert "as long as MM2's own offset syncs tell the truth" in by_mm2
    assert "as long as copies keep their timestamps" in by_another and "MM2" not in by_another


def test_what_is_known_of_another_replicator_has_a_label_of_its_own():
    labels = [label for label, _ in made_with(make_plan([make_row()], flow={"replicator": "any"}))]
    assert "Replicator" in labels and "MM2" not in labels


def test_options_are_asked_for_only_where_they_are_not_known_and_the_only_flow_needs_none():
    plan = make_plan([make_row()])
    assert next_steps(plan, totals(plan), "p", None)[0] == (OPTIONS_TO_ADD,)
    sentences, commands = next_steps(plan, totals(plan), "p", ())
    assert sentences == () and commands[0][1] == "mm2-migrate apply p"
