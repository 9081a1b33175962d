"""Positions outside Kafka, planned: translated as commits are, checked, and kept in a file under a fingerprint."""

from dataclasses import replace

import pytest

from migrate.errors import Refused, UnreadablePlan, UsageError
from migrate.extras.positions.checks import OF_ROWS, state_would_count_twice
from migrate.extras.positions.forms import beside
from migrate.extras.positions.held import Meaning, PositionsAsked, held
from migrate.extras.positions.plan import FORMAT_KEY, PositionPlan, is_clean, read, with_open_batches, write
from migrate.model import CheckResult, Decision, Failure, Grade, Level, Scope
from migrate.row_table import PlanRows
from migrate.survey.policies import Policies, Waiver
from tests.builders import make_row
from tests.extras.positions.unit.positionplans import checkpoint, file_of, make_positions, planned, positions
from tests.fakes import Script
from tests.unit import planscene
from tests.unit.planscene import rows_of, world

OF_G = ("g", "t", 0, 55), ("g", "t", 1, 60)
OPEN_ACCEPTED = Policies(waivers=(Waiver("spark-batch-open", "query"),))


def blocks(plan: PositionPlan) -> dict[tuple[str, str], str]:
    checks = plan.header.checks
    return {(c.check, c.subject): c.seen for c in checks if c.counts_as is Level.BLOCK and not c.accepted}


def told(plan: PositionPlan, check: str) -> list[CheckResult]:
    return [c for c in plan.header.checks if c.check == check]


def test_a_position_is_translated_as_a_commit_on_the_same_offset_is_and_a_last_record_as_the_one_after_it():
    plan = planned(file_of(("job", "t", 0, 55), ("job", "u", 0, 100), ("other", "t", 0, 55, Meaning.LAST)))
    as_commits = rows_of(planscene.planned(*world()))
    assert {row.key: (row.decision, row.target_offset) for row in plan.rows} == {
        ("job", "t", 0): (Decision.SET, as_commits["g", "t", 0][1]),
        ("job", "u", 0): (Decision.SET, as_commits["h", "u", 0][1]),
        ("other", "t", 0): (Decision.SET, as_commits["g", "t", 0][1]),
    }
    assert list(map(plan.meaning, plan.rows)) == [Meaning.NEXT, Meaning.NEXT, Meaning.LAST]


def test_a_holder_with_a_groups_name_has_nothing_of_what_the_group_has_on_the_target():
    clusters = world()
    clusters[1].commit("g", "A.t", 0, 99)
    plan = planned(file_of(*OF_G), clusters=clusters)
    row = plan.rows[0]
    assert (row.group, row.target_prior, row.decision) == ("g", None, Decision.SET) and is_clean(plan)


def test_a_holder_that_differs_from_the_group_of_its_name_is_blocked_and_one_whose_group_is_hidden_named():
    clusters, differing = world(), file_of(("g", "t", 0, 54), ("g", "t", 1, 60))
    plan = planned(differing)
    assert blocks(plan) == {("positions-differ", "g"): "t-0: 54, the group has 55"} and plan.blocked() == ["g"]
    clusters[0].script("commits", "g", Script(Failure("GROUP_AUTHORIZATION_FAILED", "no")))
    (hidden,) = told(planned(differing, clusters=clusters), "positions-differ")
    assert (hidden.level, hidden.counts_as, hidden.subject) == (Level.NOT_VISIBLE, Level.WARN, "g")


def test_what_is_the_same_twice_is_no_proof_that_its_job_is_stopped():
    (moves,) = told(planned(file_of(("job", "t", 0, 55)), checkpoint()), "position-moves")
    assert (moves.level, moves.counts_as, moves.subject) == (Level.NOT_VISIBLE, Level.PASS, "2 holders")
    assert "cannot be seen" in moves.seen


def test_positions_that_change_between_two_looks_block_their_holders():
    before, after = file_of(("job", "t", 0, 55)), replace(file_of(("job", "t", 0, 56)), sha256="other")
    assert set(blocks(planned(before, later=(after,)))) == {("position-moves", "job")}
    gone = blocks(planned(before, later=()))
    assert set(gone) == {("position-moves", "job")} and "is gone" in gone["position-moves", "job"]


def test_two_looks_at_one_time_tell_nothing_of_producers_and_block_holders_too():
    plan = planned(file_of(("job", "t", 0, 55)), settle=0.0)
    assert ("producers-stopped", "A") in blocks(plan) and plan.blocked() == ["job"]


@pytest.mark.parametrize(("given", "reasons", "checks"), [
    ((("job", "gone", 0, 5), ("job", "t", 0, 55)), ["target-topic-missing", "target-topic-exists"],
     {("target-topic-exists", "gone")}),
    ((("fine", "t", 0, 55), ("job", "t", 0, 101), ("job", "t", 1, 60)),
     ["translated", "commit-beyond-log-end", "holder-blocked"], {("commit-beyond-log-end", "job/t/0")}),
])  # fmt: skip
def test_a_position_without_a_place_is_a_row_and_blocks_the_rest_of_its_holder(given, reasons, checks):
    plan = planned(file_of(*given))
    assert [row.reason if row.decision is Decision.BLOCK else "translated" for row in plan.rows] == reasons
    assert set(blocks(plan)) == checks and plan.blocked() == ["job"]


def ended(*ends, **values):
    """A query that was killed in batch 8, which would have ended there."""
    return checkpoint(open_batch=8, open_ends=positions("query", ends), **values)


def test_an_open_batch_blocks_and_its_waiver_says_so_in_the_row():
    plan = planned(ended())
    assert set(blocks(plan)) == {("spark-batch-open", "query")} and plan.blocked() == ["query"]
    accepted = planned(ended(), policies=OPEN_ACCEPTED)
    assert not accepted.blocked()
    assert all("Batch 8 was begun and not finished" in row.sentence for row in accepted.rows)
    said = "\n".join(beside(accepted, "spark", ["query"]))
    assert "WARNING: query: batch 8 was begun and not finished" in said and "is written twice" in said
    assert "WARNING" not in "\n".join(beside(planned(checkpoint()), "spark", ["query"]))
    (blocked,) = planned(ended(offsets=(("gone", 0, 5),))).rows
    assert blocked.sentence.endswith("Batch 8 was begun and not finished.") and blocked.target_offset is None


def test_both_ends_of_an_open_batch_are_translated_and_all_between_counts_as_read_twice():
    begun, idle = planned(ended(("t", 0, 70), ("t", 1, 60)), policies=OPEN_ACCEPTED).rows
    end, unopened = planned(file_of(("job", "t", 0, 70))).rows[0], planned(checkpoint()).rows[1]
    assert f"it begins here and ends before {end.target_offset}." in begun.sentence
    between = end.target_offset - begun.target_offset
    assert between > 0 and begun.rereads_estimate == between + end.rereads_estimate
    assert idle.rereads_estimate == unopened.rereads_estimate, "nothing of it is in the batch"


@pytest.mark.parametrize("ends", [(), (("t", 0, 101), ("t", 1, 60))], ids=["not named", "beyond the source's end"])
def test_an_end_that_has_no_place_leaves_no_bound_and_is_said(ends):
    plan = planned(ended(*ends), policies=OPEN_ACCEPTED)
    assert not plan.blocked(), "what is beyond the source's end is not the position"
    assert "What it has written is written twice" in plan.rows[0].sentence


@pytest.mark.parametrize(("end", "twice", "grade"), [
    ({"target_offset": 130, "rereads_at_most": 4}, (34, None), Grade.BOUNDED),
    ({"target_offset": 100, "rereads_at_most": 0}, (0, None), Grade.EXACT),
    ({"target_offset": 130, "rereads_at_most": None, "rereads_estimate": 3}, (None, 33), Grade.BOUNDED),
    ({"target_offset": None, "rereads_at_most": None, "rereads_estimate": None}, (None, None), Grade.EXACT),
])  # fmt: skip
def test_what_is_read_twice_reaches_from_the_batchs_begin_to_what_is_read_twice_at_its_end(end, twice, grade):
    exact = {"grade": Grade.EXACT, "rereads_at_most": 0, "rereads_estimate": None}
    begin = make_row("query", "t", 0, target_offset=100, **exact)
    found = held([ended()], PositionsAsked(), {})
    (row,) = with_open_batches(PlanRows.of([begin]), [make_row("query", "t", 0, **(exact | end))], found)
    assert (row.rereads_at_most, row.rereads_estimate) == twice and row.grade is grade


@pytest.mark.parametrize("asked", [{}, {"stateful": frozenset({"query"})}], ids=["by its folder", "by option"])
def test_a_state_and_a_row_that_is_not_exact_block_together(asked):
    assert set(blocks(planned(checkpoint(is_stateful=not asked), asked=asked))) == {
        ("state-would-count-twice", "query")
    }


@pytest.mark.parametrize(("position", "level"), [
    ({"grade": Grade.EXACT, "rereads_at_most": 0}, Level.PASS),
    ({"grade": Grade.EXACT, "rereads_at_most": 1}, Level.BLOCK),
    ({"grade": Grade.BOUNDED, "rereads_at_most": 0}, Level.BLOCK),
    ({"grade": Grade.ESTIMATED, "decision": Decision.SKIP}, Level.PASS),
])  # fmt: skip
def test_a_state_is_safe_only_where_nothing_can_be_read_twice(position, level):
    rows = PlanRows.of([make_row("query", "t", 0, **position)])
    found = held([checkpoint(is_stateful=True)], PositionsAsked(), {})
    (result,) = state_would_count_twice.judge(found, None, rows)
    assert (result.level, result.subject) == (level, "1 holder" if level is Level.PASS else "query")


@pytest.mark.parametrize(("sinks", "remembering", "level", "counts_as"), [
    ({"query": "file:///out"}, ["file:///out"], Level.BLOCK, Level.BLOCK),
    ({"query": "file:///out"}, [], Level.PASS, Level.PASS),
    ({}, [], Level.NOT_VISIBLE, Level.WARN),
])  # fmt: skip
def test_a_sink_that_remembers_batches_blocks_and_one_that_was_not_named_warns(sinks, remembering, level, counts_as):
    (said,) = told(planned(checkpoint(), asked={"sinks": sinks}, remembering=remembering), "sink-remembers-batches")
    assert (said.level, said.counts_as) == (level, counts_as)


def test_partitions_without_a_position_are_named_and_how_many_the_copies_have_is_kept():
    plan, whole = planned(file_of(("job", "t", 0, 55))), planned(checkpoint())
    assert [c.subject for c in told(plan, "holder-partitions")] == ["job"] and not told(whole, "holder-partitions")
    assert plan.header.copies == {"A.t": 2}
    assert plan.without_place("job") == [("A.t", 1)] and not whole.without_place("query")


def test_one_holder_in_two_places_and_an_option_for_one_that_is_not_there_are_wrong_use():
    one = file_of(("job", "t", 0, 55))
    with pytest.raises(UsageError, match=r"Holder job is in two\.csv and in jobs\.csv"):
        planned(one, file_of(("job", "t", 1, 55), origin="two.csv"))
    for asked in {"sinks": {"jop": "x"}}, {"stateful": frozenset({"jop"})}:
        with pytest.raises(UsageError, match="jop: no holder of that name"):
            planned(one, asked=asked)


def test_the_header_says_where_positions_were_read_and_the_fingerprint_covers_all_of_it(tmp_path):
    plan = planned(file_of(("job", "t", 0, 55), ("job", "t", 1, 60, Meaning.LAST)), checkpoint())
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


def test_a_file_that_was_edited_or_cut_short_is_refused_and_so_is_another_one_which_is_never_replaced(tmp_path):
    path, plan = tmp_path / "c.json", make_positions([make_row(target_offset=4711)])
    write(plan, path)
    whole = path.read_text()
    path.write_text(whole.replace("4711", "4712"))
    with pytest.raises(Refused, match="was edited or damaged"):
        read(path)
    for damaged in (whole[:-20], whole.replace(f'"{FORMAT_KEY}": 1', f'"{FORMAT_KEY}": 2'), "{}", ""):
        path.write_text(damaged)
        with pytest.raises(UnreadablePlan):
            read(path)
    path.write_text("notes of mine")
    with pytest.raises(Refused, match="not overwritten"):
        write(plan, path)
    assert path.read_text() == "notes of mine"
    path.write_text(whole)
    write(make_positions([make_row("other")]), path)
    assert list(read(path).holders()) == ["other"]


def test_the_core_s_checks_on_clusters_topics_and_rows_judge_positions_and_none_on_groups_does():
    names = {check.name for check in OF_ROWS}
    assert {"clusters-differ", "not-drained", "producers-stopped", "missing-on-target", "estimated-rows"} <= names
    assert not {"source-group-stopped", "connect-internal-topics"} & names
    checks = planned(file_of(("job", "t", 0, 55))).header.checks
    assert {"not-drained", "producers-stopped"} <= {c.check for c in checks if c.level is Level.PASS}
    of_groups = [c for c in checks if c.scope is Scope.GROUP and c.level is not Level.PASS and not c.says_nothing]
    assert all(c.subject == "job" for c in of_groups)
