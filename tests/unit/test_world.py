"""The simulated world itself: that it is what it says, and that its judge sees what is wrong."""

from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random

import pytest

from migrate.match.equality import Content
from migrate.match.protocol import Matched, Needs, OffsetRange, PartitionAnswer, Tail, Unmatched, Why
from tests.integration import oracle
from tests.world.broken import MATCHERS
from tests.world.judge import judge
from tests.world.kinds import EXCUSED, KINDS
from tests.world.mirror import SyncTopic, SyncWriter
from tests.world.model import World
from tests.world.notation import hand
from tests.world.runner import answer
from tests.world.simulation import simulate
from tests.world.tally import Asked, Draw, tally
from tests.world.troubles import TROUBLES, crossed


@cache
def worlds(count: int, *troubles: str) -> list[World]:
    return [simulate(seed, frozenset(troubles)) for seed in range(count)]


def identities(world: World) -> Counter[str]:
    return Counter(entry.identity for entry in world.target_seen)


def replays(world: World) -> bool:
    return any(many > 1 for many in identities(world).values())


def hidden(world: World, on_source: bool) -> int:
    """Records below the pin that no read_committed reader sees: aborted ones."""
    entries, end = (world.source, world.source_log.end) if on_source else (world.target, world.target_log.end)
    return sum(1 for e in entries if e.identity and not e.visible and e.offset < end)


def equal_records(world: World) -> bool:
    return len(set(world.alike.values())) < len(world.alike)


def foreign(world: World) -> bool:
    return bool(identities(world).keys() - {w.identity for w in world.written})


def times_fall(world: World) -> bool:
    times = [entry.content.timestamp for entry in world.source_seen]
    return times != sorted(times)


def never_copied(world: World) -> bool:
    there = {e.identity for e in world.target}
    return any(e.identity not in there for e in world.source_seen if e.offset < world.reached)


def contents(world: World) -> list[tuple[Content, Content]]:
    source = {e.identity: e.content for e in world.source_seen}
    return [(source[e.identity], e.content) for e in world.target_seen if e.identity in source]


SIGNS: dict[str, Callable[[World], bool]] = {
    "restarts": replays,
    "paused-writer": replays,
    "syncs-compacted": lambda w: bool(w.syncs) and w.syncs[0].source_offset > 0,
    "no-syncs": lambda w: not w.syncs,
    "transactions": lambda w: hidden(w, on_source=True) > 0,
    "open-source": lambda w: w.source_open,
    "open-target": lambda w: w.target_open,
    "source-compaction": lambda w: len(w.source_seen) < len(w.written),
    "target-compaction": lambda w: len(w.target_seen) < len(w.source_seen) and not w.target_log.start,
    "source-retention": lambda w: w.source_log.start > 0,
    "target-retention": lambda w: w.target_log.start > 0,
    "source-recreated": foreign,
    "target-recreated": never_copied,
    "source-truncated": foreign,
    "target-truncated": never_copied,
    "drops": never_copied,
    "changes": lambda w: any(e.altered for e in w.target_seen),
    "headers": lambda w: any(a.headers != b.headers and a.value == b.value for a, b in contents(w)),
    "local-writers": foreign,
    "append-time": lambda w: any(a.timestamp != b.timestamp for a, b in contents(w)),
    "jitter": times_fall,
    "far-future": times_fall,
    "look-alikes": equal_records,
    "neighbours": equal_records,
    "retries": equal_records,
    "stopped-mid-replay": lambda w: replays(w) and w.reached < w.source_log.end,
    "not-drained": lambda w: w.reached < w.source_log.end,
    "running": lambda w: any(e.offset >= w.target_log.end for e in w.target),
    "retention-while-reading": lambda w: bool(w.retention),
    "lone-partition": lambda w: not w.elsewhere,
    "reloaded beside source-recreated": equal_records,
}


@pytest.mark.parametrize("troubles", SIGNS)
def test_a_trouble_shows_and_worlds_without_it_have_no_such_sign(troubles):
    trouble, *others = troubles.split(" beside ")
    assert any(SIGNS[troubles](world) for world in worlds(60, trouble, *others))
    assert not any(SIGNS[troubles](world) for world in worlds(60, *others))


def test_every_trouble_is_drawn():
    draws = [crossed(Random(seed)) for seed in range(2_000)]
    assert {name for troubles in draws for name in troubles} == set(TROUBLES)


def test_with_exactly_once_nothing_is_copied_twice_and_syncs_name_only_copies_that_readers_see():
    made = worlds(60, "exactly-once", "restarts")
    for world in made:
        seen = {e.offset for e in world.target_seen}
        assert not replays(world) and all(s.target_offset in seen for s in world.syncs)
    assert any(hidden(world, on_source=False) for world in made)


def test_read_committed_copies_no_aborted_record_and_read_uncommitted_does():
    def copies_aborted(world: World) -> bool:
        return not identities(world).keys().isdisjoint(w.identity for w in world.written if not w.committed)

    assert not any(copies_aborted(w) for w in worlds(40, "transactions", "read-committed"))
    assert any(copies_aborted(w) for w in worlds(40, "transactions"))


def test_a_world_is_made_again_from_its_seed_and_its_truth_does_not_contradict_itself():
    for seed in range(400):
        world = Draw().world(seed)
        assert oracle.contradictions(world.truth, "source-compaction" in world.troubles) == []
        assert seed > 20 or world == Draw().world(seed) != Draw().world(seed + 1)


# When MM2 writes syncs (MirrorSourceTaskTest.testOffsetSync, offset.lag.max 50; T: a sync is due)
VECTORS = "0,100T 2,102T 3,152F 4,153T 5,154F 6,203F 7,204T 2,206T 3,207F 4,3T 5,4F 7,6T"


def test_syncs_are_due_as_mm2s_own_test_has_it():
    writer = SyncWriter(SyncTopic(), Random(0), "3.7", 50, fires=1.0, loses=0.0)
    for vector in VECTORS.split():
        u, d = map(int, vector[:-1].split(","))
        before = len(writer.topic.pairs)
        writer.acknowledged(u, d)
        assert (len(writer.topic.pairs) > before) == vector.endswith("T"), vector


# The judge


def verdicts(name: str, rows: int = 1_500) -> Counter[str]:
    """Violations by kind that the judge finds in a matcher that is deliberately right or wrong."""
    return tally(Asked(MATCHERS[name]), Draw(), 7, rows).broken


def test_the_brute_force_breaks_no_law():
    assert not {kind: many for kind, many in verdicts("brute-force").items() if kind not in EXCUSED}


# Losses that docs/translation.md names: few enough, even of a matcher that loses at every row.
NAMED = [kind for kind in EXCUSED if kind.startswith("lost-")]


def test_a_matcher_that_goes_one_too_far_is_caught_wherever_that_loses():
    losing = caught = excused = 0
    ask = Asked(MATCHERS["one-too-far"])
    for seed in range(200):
        world = Draw().world(seed)
        judged, _ = ask(world)
        found = {(v.source_committed, v.kind) for v in judged.violations}
        for row in judged.rows:
            if isinstance(row.place, Unmatched):
                continue
            loses = bool(oracle.lost(world.truth, row.source_committed, row.place.target_offset))
            losing += loses
            caught += loses and (row.source_committed, "lost") in found
            excused += loses and any((row.source_committed, kind) in found for kind in NAMED)
    assert losing > 1_000
    assert caught + excused >= losing * 0.99  # what retention deletes while it is read is lost to everybody
    assert excused <= losing * 0.03


@pytest.mark.parametrize(
    ("matcher", "kind", "more_than"),
    [
        ("from-the-start", "bound-exceeded", 500),
        ("from-the-start-exactly", "exact-not-best", 500),
        ("blind-to-what-is-missing", "missing-hidden", 50),
        ("chain-alone", "lost", 5),
    ],
)
def test_a_matcher_that_is_wrong_is_caught(matcher, kind, more_than):
    assert verdicts(matcher)[kind] > more_than


def test_a_tail_that_is_said_to_have_come_over_is_caught_where_it_has_not():
    ask = Asked(MATCHERS["always-drained"])
    for trouble in ("stopped-mid-replay", "not-drained"):
        undrained = [w for w in worlds(40, trouble) if SIGNS[trouble](w) and w.source_seen and w.target_seen]
        assert len(undrained) > 10
        for world in undrained:
            assert "not-drained" in {v.kind for v in ask(world)[0].violations}
    assert not any(ask(world)[0].violations for world in worlds(40))


def scripted(*needs: Needs, places: dict[int, Matched | Unmatched] | None = None, error: Exception | None = None):
    """A matcher that asks for these and then answers; `supplies` collects what it was sent."""
    supplies = []

    def matcher(question):
        for wanted in needs:
            supplies.append((yield wanted))
        if error:
            raise error
        return PartitionAnswer(places or {}, Tail(None), 0, 0)

    matcher.supplies = supplies
    return matcher


SMALL = hand(source="0..3", target="0..1@0..1 L@2 2..3@3..4", syncs=[(0, 0), (3, 4)], commits=[1])


def kinds(world: World, place: Matched) -> set[str]:
    return {v.kind for v in judge(world, answer(world, scripted(places={1: place}))).violations}


def test_rows_are_judged_one_by_one():
    assert kinds(SMALL, Matched(1, Why.PROVEN, 0)) == set()
    assert kinds(SMALL, Matched(0, Why.LOOK_ALIKES, 1)) == set()
    assert kinds(SMALL, Matched(0, Why.LOOK_ALIKES, 0)) == {"bound-exceeded"}
    assert kinds(SMALL, Matched(0, Why.PROVEN, 1)) == {"exact-not-best"}
    assert kinds(SMALL, Matched(2, Why.LOOK_ALIKES, 0)) == {"lost"}
    assert kinds(SMALL, Matched(9, Why.LOOK_ALIKES, 0)) == {"lost", "outside-log"}
    assert kinds(SMALL, Matched(1, Why.PROVEN, 0, missing_on_target=1)) == {"missing-invented"}


def test_a_loss_among_equal_records_is_told_apart_from_a_real_one():
    world = hand(source="0..2", target="0..2@0..2 0@3", commits=[1], like={"1": "0"}, reached=1)
    # Identity says that 1 is lost at 2; but the copy of 0 at 3 is all that any consumer can tell of it.
    assert kinds(world, Matched(2, Why.PROVEN, 0)) == {"lost-alike", "exact-not-best-alike", "bound-exceeded-alike"}
    assert "lost" in kinds(world, Matched(3, Why.PROVEN, 0))


@pytest.mark.parametrize(
    "matcher",
    [
        scripted(Needs(source=(OffsetRange(0, 5),))),
        scripted(Needs(target=(OffsetRange(0, 3), OffsetRange(2, 4)))),
        scripted(error=ValueError("no")),
        scripted(*[Needs(source_times=(0,))] * 1_000),
    ],
    ids=["beyond-the-end", "overlapping", "an error", "a talk without end"],
)
def test_what_no_reader_can_serve_an_error_and_no_answer_are_violations(matcher):
    judged, run = Asked(lambda world: matcher)(SMALL)
    assert run is None and [v.kind for v in judged.violations] == ["raised"]
    assert [v.kind for v in judge(SMALL, answer(SMALL, scripted())).violations] == ["no-answer"]


@pytest.mark.parametrize("kind", EXCUSED)
def test_every_kind_that_is_excused_is_named_by_a_sentence_of_the_page_on_translation(kind):
    assert kind in KINDS
    page = (Path(__file__).parents[2] / "docs/translation.md").read_text(encoding="utf-8")
    assert EXCUSED[kind] in " ".join(page.split())
