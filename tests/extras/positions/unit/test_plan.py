"""Positions outside Kafka, planned: translated as commits are, checked, and kept in a file under a fingerprint."""

from dataclasses import replace

import pytest

from migrate.errors import Refused, UnreadablePlan, UsageError
from migrate.extras.positions.checks import OF_ROWS, state_would_count_twice
from migrate.extras.positions.forms import beside
from migrate.extras.positions.held import HeldPosition, Meaning, held
from migrate.extras.positions.plan import FORMAT_KEY, PositionPlan, is_clean, read, with_open_batches, write
from migrate.model import Decision, Failure, Grade, Level, Scope
from migrate.row_table import PlanRows
from migrate.survey.policies import Policies, Waiver
from tests.extras.positions.unit.heldscene import FakePositions, checkpoint, last
from tests.extras.positions.unit.heldscene import read as read_of
from tests.extras.positions.unit.positionplans import make_position, make_positions, planned
from tests.fakes import Script
from tests.unit import planscene
from tests.unit.planscene import rows_of, world


def plan_with(*reads, asked=None, source=None, later=None, remembering=frozenset(), **options) -> PositionPlan:
    reader = FakePositions(reads, later, remembering)
    clusters = world()
    if source is not None:
        source(clusters[0], clusters[1])
    return planned(reader, reader.asked(**(asked or {})), clusters=clusters, **options)


def positions_of(plan: PositionPlan) -> dict:
    return {row.key: (row.decision, row.target_offset) for row in plan.rows}


def blocking(plan: PositionPlan) -> set[tuple[str, str]]:
    return {(c.check, c.subject) for c in blocks(plan)}


def blocks(plan: PositionPlan) -> list:
    return [c for c in plan.header.checks if c.counts_as is Level.BLOCK and not c.accepted]


def checks_of(plan: PositionPlan, name: str) -> list[str]:
    return [c.subject for c in plan.header.checks if c.check == name]


def test_a_position_is_translated_as_a_commit_on_the_same_offset_is():
    plan = plan_with(read_of(("job", "t", 0, 55), ("job", "u", 0, 100)))
    as_commits = rows_of(planscene.planned(*world()))
    assert positions_of(plan) == {
        ("job", "t", 0): (Decision.SET, as_commits["g", "t", 0][1]),
        ("job", "u", 0): (Decision.SET, as_commits["h", "u", 0][1]),
    }


def test_a_last_record_done_is_translated_as_the_record_after_it():
    plan = plan_with(read_of(last("job", "t", 0, 54), ("other", "t", 0, 55)))
    mine, other = plan.rows
    assert (mine.source_committed, mine.target_offset) == (55, other.target_offset)
    assert (plan.meaning(mine), plan.meaning(other)) == (Meaning.LAST, Meaning.NEXT)


def test_a_holder_with_a_groups_name_has_nothing_of_what_the_group_has_on_the_target():
    def at_target(source, target):
        target.commit("g", "A.t", 0, 99)

    plan = plan_with(read_of(("g", "t", 0, 55), ("g", "t", 1, 60)), source=at_target)
    row = next(iter(plan.rows))
    assert row.group == "g" and row.target_prior is None and row.decision is Decision.SET and is_clean(plan)


def test_a_holder_that_differs_from_the_group_of_its_name_is_blocked_and_one_that_agrees_is_not():
    differing = plan_with(read_of(("g", "t", 0, 54), ("g", "t", 1, 60)))
    assert blocking(differing) == {("positions-differ", "g")} and differing.blocked() == ["g"]
    (seen,) = (c.seen for c in blocks(differing))
    assert seen == "t-0: 54, the group has 55"
    assert not blocking(plan_with(read_of(("g", "t", 0, 55), ("g", "t", 1, 60))))


def test_a_group_whose_commits_are_not_shown_is_said_not_to_be_compared():
    def hidden(source, target):
        source.script("commits", "g", Script(Failure("GROUP_AUTHORIZATION_FAILED", "no")))

    plan = plan_with(read_of(("g", "t", 0, 54), ("g", "t", 1, 60)), source=hidden)
    (told,) = [c for c in plan.header.checks if c.check == "positions-differ"]
    assert (told.level, told.counts_as, told.subject) == (Level.NOT_VISIBLE, Level.WARN, "g")


@pytest.mark.parametrize("reading", [read_of(("job", "t", 0, 55)), checkpoint()], ids=["file", "checkpoint"])
def test_what_is_the_same_twice_is_no_proof_that_its_job_is_stopped(reading):
    (moves,) = [c for c in plan_with(reading).header.checks if c.check == "position-moves"]
    assert moves.level is Level.NOT_VISIBLE and moves.counts_as is Level.PASS and "cannot be seen" in moves.seen


def test_a_topic_that_neither_cluster_has_is_a_row_and_its_check_blocks_the_rest_of_its_holder():
    plan = plan_with(read_of(("job", "gone", 0, 5), ("job", "t", 0, 55)))
    assert {(row.source_topic, row.decision, row.reason) for row in plan.rows} == {
        ("gone", Decision.BLOCK, "target-topic-missing"),
        ("t", Decision.BLOCK, "target-topic-exists"),
    }
    assert blocking(plan) == {("target-topic-exists", "gone")} and plan.blocked() == ["job"]


def test_a_position_beyond_the_sources_end_is_blocked_with_its_holder():
    plan = plan_with(read_of(("job", "t", 0, 101), ("job", "t", 1, 60), ("fine", "t", 0, 55)))
    reasons = {row.key: row.reason for row in plan.rows}
    assert reasons["job", "t", 0] == "commit-beyond-log-end" and reasons["job", "t", 1] == "holder-blocked"
    assert plan.blocked() == ["job"]


def test_two_looks_at_one_time_tell_nothing_of_producers_and_block_holders_too():
    plan = plan_with(read_of(("job", "t", 0, 55)), settle=0.0)
    assert ("producers-stopped", "A") in blocking(plan) and plan.blocked() == ["job"]


def test_positions_that_change_between_two_looks_block_their_holders():
    before, after = read_of(("job", "t", 0, 55)), replace(read_of(("job", "t", 0, 56)), sha256="other")
    plan = plan_with(before, later=(after,))
    assert blocking(plan) == {("position-moves", "job")}
    gone = plan_with(before, later=())
    assert blocking(gone) == {("position-moves", "job")}
    assert "is gone" in next(c.seen for c in blocks(gone))


def test_an_open_batch_blocks_and_its_waiver_says_so_in_the_row():
    read_open = checkpoint(open_batch=8)
    plan = plan_with(read_open)
    assert blocking(plan) == {("spark-batch-open", "query")} and plan.blocked() == ["query"]
    accepted = plan_with(read_open, policies=Policies(waivers=(Waiver("spark-batch-open", "query"),)))
    assert not accepted.blocked()
    assert all("Batch 8 was begun and not finished" in row.sentence for row in accepted.rows)
    said = "\n".join(beside(accepted, "spark", ["query"]))
    assert "WARNING: query: batch 8 was begun and not finished" in said and "is written twice" in said
    assert "WARNING" not in "\n".join(beside(plan_with(checkpoint()), "spark", ["query"]))
    (blocked,) = plan_with(checkpoint(offsets=(("gone", 0, 5),), open_batch=8)).rows
    assert blocked.sentence.endswith("Batch 8 was begun and not finished.") and blocked.target_offset is None


def ended(*ends, **values):
    """A query that was killed in batch 8, which would have ended there."""
    return checkpoint(open_batch=8, open_ends=tuple(HeldPosition("query", *end) for end in ends), **values)


def test_both_ends_of_an_open_batch_are_translated_and_all_between_counts_as_read_twice():
    accepted = Policies(waivers=(Waiver("spark-batch-open", "query"),))
    made = plan_with(ended(("t", 0, 70), ("t", 1, 60)), policies=accepted)
    rows = {row.partition: row for row in made.rows}
    at = {row.partition: row for row in plan_with(checkpoint()).rows}
    end = next(row for row in plan_with(read_of(("job", "t", 0, 70))).rows)
    begun, idle = rows[0], rows[1]
    assert begun.target_offset == at[0].target_offset, "it begins where the finished batch ended"
    assert f"it begins here and ends before {end.target_offset}." in begun.sentence
    between = end.target_offset - begun.target_offset
    assert between > 0 and begun.rereads_estimate == between + end.rereads_estimate
    assert idle.rereads_estimate == at[1].rereads_estimate, "nothing of it is in the batch"


@pytest.mark.parametrize("ends", [(), (("t", 0, 70),), (("t", 0, 101), ("t", 1, 60))])
def test_an_end_that_has_no_place_leaves_no_bound_and_is_said(ends):
    plan = plan_with(ended(*ends), policies=Policies(waivers=(Waiver("spark-batch-open", "query"),)))
    assert not plan.blocked(), "what is beyond the source's end is not the position"
    (row,) = [row for row in plan.rows if "ends before" not in row.sentence][:1]
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
    exact = {"grade": Grade.EXACT, "rereads_at_most": 0, "rereads_estimate": None}
    begin = make_position("query", "t", 0, target_offset=100, **exact)
    found = held([ended()], FakePositions.of(ended()).asked(), {})
    (row,) = with_open_batches(PlanRows.of([begin]), [make_position("query", "t", 0, **(exact | end))], found)
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
    reading = checkpoint(is_stateful=True)
    (result,) = state_would_count_twice.judge(held([reading], FakePositions.of(reading).asked(), {}), None, rows)
    assert (result.level, result.subject) == (level, "1 holder" if level is Level.PASS else "query")


def test_a_sink_that_remembers_batches_blocks_and_one_that_was_not_named_warns():
    asked = {"sinks": {"query": "file:///out"}}
    remembers = plan_with(checkpoint(), asked=asked, remembering=frozenset({"file:///out"}))
    assert blocking(remembers) == {("sink-remembers-batches", "query")}
    for named, level in (asked, (Level.PASS, Level.PASS)), (None, (Level.NOT_VISIBLE, Level.WARN)):
        plan = plan_with(checkpoint(), asked=named)
        (said,) = [c for c in plan.header.checks if c.check == "sink-remembers-batches"]
        assert (said.level, said.counts_as) == level and not blocking(plan)


def test_partitions_without_a_position_are_named_and_how_many_the_copies_have_is_kept():
    plan, whole = plan_with(read_of(("job", "t", 0, 55))), plan_with(checkpoint())
    assert checks_of(plan, "holder-partitions") == ["job"] and not checks_of(whole, "holder-partitions")
    assert plan.header.copies == {"A.t": 2}
    assert plan.without_place("job") == [("A.t", 1)] and not whole.without_place("query")


def test_one_holder_in_two_places_and_an_option_for_one_that_is_not_there_are_wrong_use():
    with pytest.raises(UsageError, match=r"Holder job is in two\.csv and in jobs\.csv"):
        plan_with(read_of(("job", "t", 0, 55)), read_of(("job", "t", 1, 55), origin="two.csv"))
    for asked in {"sinks": {"jop": "x"}}, {"stateful": frozenset({"jop"})}:
        with pytest.raises(UsageError, match="jop: no holder of that name"):
            plan_with(read_of(("job", "t", 0, 55)), asked=asked)


def test_the_header_says_where_positions_were_read_and_the_fingerprint_covers_all_of_it(tmp_path):
    plan = plan_with(read_of(("job", "t", 0, 55), last("job", "t", 1, 59)), checkpoint())
    file, folder = plan.header.origins
    assert (file.origin, file.kind, file.batch) == ("jobs.csv", "file", None)
    assert (folder.holder, folder.kind, folder.batch) == ("query", "spark-checkpoint", 7)
    others = (
        replace(plan, header=replace(plan.header, origins=(replace(file, sha256="x"), folder))),
        replace(plan, rows=PlanRows.of([row._replace(target_offset=1) for row in plan.rows])),
        replace(plan, last_meant=frozenset()),
    )
    assert plan.fingerprint not in {other.fingerprint for other in others}
    write(plan, tmp_path / "c.json")
    assert read(tmp_path / "c.json") == plan
    assert (tmp_path / "c.json").stat().st_mode & 0o777 == 0o600


def test_a_file_that_was_edited_or_cut_short_is_refused_and_so_is_another_one(tmp_path):
    path, plan = tmp_path / "c.json", make_positions([make_position(target_offset=4711)])
    write(plan, path)
    whole = path.read_text()
    path.write_text(whole.replace("4711", "4712"))
    with pytest.raises(Refused, match="was edited or damaged"):
        read(path)
    for damaged in (whole[:-20], whole.replace(f'"{FORMAT_KEY}": 1', f'"{FORMAT_KEY}": 2'), "{}", ""):
        path.write_text(damaged)
        with pytest.raises(UnreadablePlan):
            read(path)


def test_only_a_whole_file_of_positions_is_replaced(tmp_path):
    path, plan = tmp_path / "c.json", make_positions([make_position()])
    write(plan, path)
    write(make_positions([make_position("other")]), path)
    assert list(read(path).holders()) == ["other"]
    path.write_text("notes of mine")
    with pytest.raises(Refused, match="not overwritten"):
        write(plan, path)
    assert path.read_text() == "notes of mine"


def test_the_core_s_checks_on_clusters_topics_and_rows_judge_positions_and_none_on_groups_does():
    names = {check.name for check in OF_ROWS}
    assert {"clusters-differ", "not-drained", "producers-stopped", "missing-on-target", "estimated-rows"} <= names
    assert not {"source-group-stopped", "connect-internal-topics"} & names
    plan = plan_with(read_of(("job", "t", 0, 55)))
    assert {"not-drained", "producers-stopped"} <= {c.check for c in plan.header.checks if c.level is Level.PASS}
    assert all(c.subject == "job" for c in plan.header.checks if c.scope is Scope.GROUP and c.level is not Level.PASS
               if not c.says_nothing)  # fmt: skip
