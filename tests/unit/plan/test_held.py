"""A plan with positions outside Kafka: translated as commits are, apart from groups, blocked by checks of their own."""

from dataclasses import replace

import pytest

from migrate.checks.positions import state_would_count_twice
from migrate.errors import UsageError
from migrate.model import Decision, Grade, Level
from migrate.plan.file import read_plan, write_plan
from migrate.plan.held import partitions_without_place, with_open_batches
from migrate.plan.plan import Plan
from migrate.row_table import PlanRows
from migrate.show.positions import beside
from migrate.survey.filters import Filters
from migrate.survey.policies import Policies, Waiver
from migrate.survey.positions import HeldPosition, HeldPositions
from tests.builders import make_plan, make_position, make_row
from tests.unit.checkscene import surveyed
from tests.unit.heldscene import FakePositions, checkpoint, last, read
from tests.unit.planscene import checks_of, planned, rows_of, world


def plan_with(*reads, asked=None, source=None, later=None, remembering=frozenset(), **options) -> Plan:
    held = FakePositions(reads, later, remembering)
    clusters = world()
    if source is not None:
        source(clusters[0], clusters[1])
    return planned(*clusters, held=held, positions=held.asked(**(asked or {})), **options)


def positions_of(plan: Plan) -> dict:
    return {row.key: (row.decision, row.target_offset) for row in plan.positions}


def blocking(plan: Plan) -> set[tuple[str, str]]:
    return {(c.check, c.subject) for c in plan.blocks()}


def test_a_position_is_translated_as_a_commit_on_the_same_offset_is():
    plan = plan_with(read(("job", "t", 0, 55), ("job", "u", 0, 100)))
    as_commits = rows_of(plan)
    assert positions_of(plan) == {
        ("job", "t", 0): (Decision.MANUAL, as_commits["g", "t", 0][1]),
        ("job", "u", 0): (Decision.MANUAL, as_commits["h", "u", 0][1]),
    }


def test_the_groups_of_a_plan_are_the_same_with_positions_beside_them():
    assert tuple(plan_with(read(("job", "t", 0, 55))).rows) == tuple(planned(*world()).rows)


def test_a_last_record_done_is_translated_as_the_record_after_it():
    plan = plan_with(read(last("job", "t", 0, 54), ("other", "t", 0, 55)))
    mine, other = plan.positions
    assert (mine.source_committed, mine.target_offset) == (55, other.target_offset)
    assert (mine.position_meaning, other.position_meaning) == ("last", "next")


def test_a_holder_with_a_groups_name_has_rows_of_its_own_and_no_prior_of_the_groups():
    def at_target(source, target):
        target.commit("g", "A.t", 0, 99)

    plan = plan_with(read(("g", "t", 0, 55)), source=at_target)
    (row,) = plan.positions
    assert row.group == "g" and row.target_prior is None and row.decision is Decision.MANUAL
    assert rows_of(plan)["g", "t", 0][0] is Decision.BLOCK, "the group itself would rewind"
    assert plan.blocked_holders() == frozenset() and plan.blocked_groups() == {"g"}
    assert row.subject != plan.groups()["g"][0].subject


def test_a_holder_that_differs_from_the_group_of_its_name_is_blocked_and_one_that_agrees_is_not():
    differing = plan_with(read(("g", "t", 0, 54), ("g", "t", 1, 60)))
    assert blocking(differing) == {("positions-differ", "g")}
    assert differing.blocked_holders() == {"g"} and not differing.blocked_groups()
    assert not blocking(plan_with(read(("g", "t", 0, 55), ("g", "t", 1, 60))))


@pytest.mark.parametrize(
    "filters", [Filters(no_groups=True), Filters.from_options(exclude_groups=["g"]), Filters.from_options(topics=["u"])]
)
def test_a_holder_is_compared_with_the_group_of_its_name_also_where_filters_take_that(filters):
    differing = plan_with(read(("g", "t", 0, 54), ("g", "t", 1, 60)), filters=filters)
    assert blocking(differing) == {("positions-differ", "g")}
    (seen,) = (c.seen for c in differing.blocks())
    assert seen == "t-0: 54, the group has 55"


def test_a_file_that_is_the_same_twice_is_no_proof_that_its_job_stands():
    (moves,) = [c for c in plan_with(read(("job", "t", 0, 55))).header.checks if c.check == "position-moves"]
    assert moves.level is Level.NOT_VISIBLE and moves.counts_as is Level.PASS and "cannot be seen" in moves.seen


def test_a_blocked_holder_keeps_no_group_from_being_applied():
    plan = plan_with(read(("g", "t", 0, 54), ("g", "t", 1, 60)))
    assert plan.is_clean_to_apply() and not plan.is_clean() and not plan.blocks_without_rows()


def test_a_plan_without_groups_counts_all_commits_as_filtered():
    plan = plan_with(read(("job", "t", 0, 55)), filters=Filters(no_groups=True))
    assert not plan.rows and plan.header.counts["filtered:no-groups"] == 3
    assert not blocking(plan), "what is asked of topics is asked of a holder's too"
    assert {"not-drained", "producers-stopped"} <= {c.check for c in plan.header.checks if c.level is Level.PASS}


def test_a_topic_that_neither_cluster_has_is_a_row_and_its_check_blocks_the_rest_of_its_holder():
    plan = plan_with(read(("job", "gone", 0, 5), ("job", "t", 0, 55)))
    assert {(row.source_topic, row.decision, row.reason) for row in plan.positions} == {
        ("gone", Decision.BLOCK, "target-topic-missing"),
        ("t", Decision.BLOCK, "target-topic-exists"),
    }
    assert blocking(plan) == {("target-topic-exists", "gone")}
    assert plan.blocked_holders() == {"job"} and not plan.blocked_groups()


def test_a_position_beyond_the_sources_end_is_blocked_with_its_holder():
    plan = plan_with(read(("job", "t", 0, 101), ("job", "t", 1, 60), ("fine", "t", 0, 55)))
    reasons = {row.key: row.reason for row in plan.positions}
    assert reasons["job", "t", 0] == "commit-beyond-log-end" and reasons["job", "t", 1] == "holder-blocked"
    assert plan.blocked_holders() == {"job"}


def test_a_waiver_for_a_groups_row_does_not_cover_the_holder_of_its_name():
    plan = plan_with(read(("g", "t", 0, 101)))
    (check,) = [c for c in plan.blocks() if c.check == "commit-beyond-log-end"]
    assert check.subject == "g/t/0/position"


def test_two_looks_at_one_time_tell_nothing_of_producers_and_block_holders_too():
    plan = plan_with(read(("job", "t", 0, 55)), settle=0.0, filters=Filters(no_groups=True))
    assert ("producers-stopped", "A") in blocking(plan) and plan.blocked_holders() == {"job"}


def test_positions_that_change_between_two_looks_block_their_holders():
    before, after = read(("job", "t", 0, 55)), replace(read(("job", "t", 0, 56)), sha256="other")
    plan = plan_with(before, later=(after,))
    assert blocking(plan) == {("position-moves", "job")}
    gone = plan_with(before, later=())
    assert blocking(gone) == {("position-moves", "job")}
    assert "is gone" in next(c.seen for c in gone.blocks())


def test_an_open_batch_blocks_and_its_waiver_says_so_in_the_row():
    read_open = checkpoint(open_batch=8)
    plan = plan_with(read_open)
    assert blocking(plan) == {("spark-batch-open", "query")} and plan.blocked_holders() == {"query"}
    accepted = plan_with(read_open, policies=Policies(waivers=(Waiver("spark-batch-open", "query"),)))
    assert not accepted.blocked_holders()
    assert all("Batch 8 was begun and not finished" in row.sentence for row in accepted.positions)
    said = "\n".join(beside(accepted, "spark", accepted.positions))
    assert "WARNING: query: batch 8 was begun and not finished" in said and "is written twice" in said
    assert "WARNING" not in "\n".join(beside(plan_with(checkpoint()), "spark", plan.positions, ["query"]))


def test_an_open_batch_is_told_of_a_position_without_a_place_too():
    blocked = plan_with(checkpoint(offsets=(("gone", 0, 5),), open_batch=8)).positions
    assert [row.sentence.endswith("Batch 8 was begun and not finished.") for row in blocked] == [True]
    assert [row.target_offset for row in blocked] == [None]


def ended(*ends, **values):
    """A query that was killed in batch 8, which would have ended there."""
    return checkpoint(open_batch=8, open_ends=tuple(HeldPosition("query", *end) for end in ends), **values)


def test_both_ends_of_an_open_batch_are_translated_and_all_between_counts_as_read_twice():
    accepted = Policies(waivers=(Waiver("spark-batch-open", "query"),))
    made = plan_with(ended(("t", 0, 70), ("t", 1, 60)), policies=accepted)
    rows = {row.partition: row for row in made.positions}
    at = {row.partition: row for row in plan_with(checkpoint()).positions}
    end = next(row for row in plan_with(read(("job", "t", 0, 70))).positions)
    begun, idle = rows[0], rows[1]
    assert begun.target_offset == at[0].target_offset, "it begins where the finished batch ended"
    assert f"it begins here and ends before {end.target_offset}." in begun.sentence
    between = end.target_offset - begun.target_offset
    assert between > 0 and begun.rereads_estimate == between + end.rereads_estimate
    assert idle.rereads_estimate == at[1].rereads_estimate, "nothing of it is in the batch"


@pytest.mark.parametrize("ends", [(), (("t", 0, 70),), (("t", 0, 101), ("t", 1, 60))])
def test_an_end_that_has_no_place_leaves_no_bound_and_is_said(ends):
    plan = plan_with(ended(*ends), policies=Policies(waivers=(Waiver("spark-batch-open", "query"),)))
    assert not plan.blocked_holders(), "what is beyond the source's end is not the position"
    (row,) = [row for row in plan.positions if "ends before" not in row.sentence][:1]
    assert "What it has written is written twice" in row.sentence


@pytest.mark.parametrize(
    ("end", "twice", "grade"),
    [
        ({"target_offset": 130, "rereads_at_most": 4}, (34, None), Grade.BOUNDED),
        ({"target_offset": 100, "rereads_at_most": 0}, (0, None), Grade.EXACT),
        ({"target_offset": 130, "rereads_at_most": None, "rereads_estimate": 3}, (None, 33), Grade.BOUNDED),
        ({"target_offset": None, "rereads_at_most": None, "rereads_estimate": None}, (None, None), Grade.EXACT),
    ],
)
def test_what_is_read_twice_reaches_from_the_batchs_begin_to_what_is_read_twice_at_its_end(end, twice, grade):
    exact = {"grade": Grade.EXACT, "rereads_at_most": 0, "rereads_estimate": None, "holder_kind": "spark-checkpoint"}
    begin = make_position("query", "t", 0, target_offset=100, **exact)
    held = HeldPositions((ended(),))
    (row,) = with_open_batches(PlanRows.of([begin]), [make_position("query", "t", 0, **(exact | end))], held)
    assert (row.rereads_at_most, row.rereads_estimate) == twice and row.grade is grade


def test_a_state_and_a_row_that_is_not_exact_block_together():
    assert blocking(plan_with(checkpoint(is_stateful=True))) == {("state-would-count-twice", "query")}
    by_option = plan_with(checkpoint(), asked={"stateful": frozenset({"query"})})
    assert blocking(by_option) == {("state-would-count-twice", "query")}


@pytest.mark.parametrize(
    ("position", "level"),
    [
        ({"grade": Grade.EXACT, "rereads_at_most": 0}, Level.PASS),
        ({"grade": Grade.EXACT, "rereads_at_most": 1}, Level.BLOCK),
        ({"grade": Grade.BOUNDED, "rereads_at_most": 0}, Level.BLOCK),
        ({"grade": Grade.ESTIMATED, "decision": Decision.SKIP}, Level.PASS),
    ],
)
def test_a_state_is_safe_only_where_nothing_can_be_read_twice(position, level):
    rows = PlanRows.of([make_position("query", "t", 0, **position)])
    stateful = surveyed(held=HeldPositions(stateful=frozenset({"query"})))
    (result,) = state_would_count_twice.judge(stateful, rows)
    assert (result.level, result.subject) == (level, "1 holder" if level is Level.PASS else "query")


def test_a_sink_that_remembers_batches_blocks_and_one_that_was_not_named_warns():
    asked = {"sinks": {"query": "file:///out"}}
    assert blocking(plan_with(checkpoint(), asked=asked, remembering=frozenset({"file:///out"}))) == {
        ("sink-remembers-batches", "query")
    }
    fine = plan_with(checkpoint(), asked=asked)
    assert not blocking(fine) and [c.level for c in fine.header.checks if c.check == "sink-remembers-batches"] == [
        Level.PASS
    ]
    unknown = plan_with(checkpoint())
    (said,) = [c for c in unknown.header.checks if c.check == "sink-remembers-batches"]
    assert said.level is Level.NOT_VISIBLE and said.counts_as is Level.WARN and not blocking(unknown)


def test_partitions_without_a_position_are_named():
    assert checks_of(plan_with(read(("job", "t", 0, 55))), "holder-partitions") == ["job"]
    assert not checks_of(plan_with(checkpoint()), "holder-partitions")


def test_the_plan_keeps_how_many_partitions_the_copies_of_a_holders_topics_have():
    plan = plan_with(read(("job", "t", 0, 55)))
    assert {name: n for name, n in plan.header.counts.items() if "target-partitions" in name} == {
        "target-partitions:A.t": 2
    }
    assert partitions_without_place(plan, "job") == (("A.t", 1),)
    assert not partitions_without_place(plan_with(checkpoint()), "query")
    assert "target-partitions" not in str(planned(*world()).header.counts)


def test_one_holder_in_two_places_is_wrong_use():
    with pytest.raises(UsageError, match=r"Holder job is in two\.csv and in jobs\.csv"):
        plan_with(read(("job", "t", 0, 55)), read(("job", "t", 1, 55), origin="two.csv"))


@pytest.mark.parametrize("asked", [{"sinks": {"jop": "x"}}, {"stateful": frozenset({"jop"})}])
def test_an_option_for_a_holder_that_is_not_there_is_wrong_use(asked):
    with pytest.raises(UsageError, match="jop: no holder of that name"):
        plan_with(read(("job", "t", 0, 55)), asked=asked)


def test_the_header_says_where_positions_were_read_and_the_fingerprint_covers_it(tmp_path):
    plan = plan_with(read(("job", "t", 0, 55)), checkpoint())
    file, folder = plan.header.positions
    assert (file.origin, file.kind, file.batch, file.rows) == ("jobs.csv", "file", None, 1)
    assert (folder.holder, folder.kind, folder.batch, folder.rows) == ("query", "spark-checkpoint", 7, 2)
    other = replace(plan.header, positions=(replace(file, sha256="x"), folder))
    assert Plan(other, plan.rows, plan.positions).fingerprint != plan.fingerprint
    moved = [row._replace(target_offset=1) for row in plan.positions]
    assert Plan(plan.header, plan.rows, PlanRows.of(moved)).fingerprint != plan.fingerprint
    write_plan(plan, tmp_path / "c.plan")
    assert read_plan(tmp_path / "c.plan") == plan


@pytest.mark.parametrize(
    "rows",
    [
        [make_row(holder_kind="file")],
        [make_row(decision=Decision.MANUAL)],
    ],
)
def test_no_plan_has_a_position_among_the_rows_of_groups(rows):
    with pytest.raises(ValueError, match="among the rows of groups"):
        Plan(make_plan().header, PlanRows.of(rows))


@pytest.mark.parametrize("values", [{"decision": Decision.SET}, {"holder_kind": "group"}, {"holder_kind": "lake"}])
def test_no_plan_has_a_row_to_write_among_its_positions(values):
    with pytest.raises(ValueError, match="among the positions"):
        Plan(make_plan().header, PlanRows(()), PlanRows.of([make_position(**values)]))
