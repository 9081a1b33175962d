"""Law 1 and the windows in Spark SQL agree with the plain functions of `migrate.mm2.chain`."""

import random

import pytest

from migrate.mm2.chain import Window, chain, window
from migrate.mm2.topics import WindowQuestion
from migrate.mm2.wire import SyncRecord, WireCheckpoint
from migrate.model import LogRange, OffsetSync
from migrate.spark.dataframes import read_topic
from tests.spark.records import FLOW, frame, windows_of
from tests.wirebytes import encode_checkpoint, encode_sync

# Topic names in Kafka are tamer than this; nothing here may depend on it.
TOPICS = ["t", "t-1", 'it\'s "quoted"', "two\nlines", "名前", "back\\slash"]
UNBOUNDED = 2**62


def history(rnd, count, wildness):
    """Syncs as MM2 leaves them: rising, with restarts (back in both), re-creations (back in one) and noise."""
    source = target = 0
    for _ in range(count):
        if rnd.random() < wildness:
            source = rnd.choice([source, 0, max(0, source - rnd.randrange(20))])
            target = rnd.choice([target, 0, target + rnd.randrange(20)])
        source += rnd.randrange(4)
        target += rnd.randrange(4)
        yield source, target


def scene(seed, wildness, partitions=6, count=60):
    rnd = random.Random(seed)
    places = [(rnd.choice(TOPICS), number) for number in range(partitions)]
    queues = {place: list(history(rnd, count, wildness)) for place in places}
    pairs, syncs = [], {place: [] for place in places}
    while any(queues.values()):
        place = rnd.choice([p for p in places if queues[p]])
        sync = queues[place].pop(0)
        syncs[place].append(OffsetSync(len(pairs), *sync))
        pairs.append(encode_sync(SyncRecord(*place, *sync)))
        if rnd.random() < 0.05:
            pairs.append((pairs[-1][0], rnd.choice([None, b"", b"0123456789"])))
    questions = []
    for place in [*places, ("never-synced", 0)]:
        ends = (rnd.choice([None, rnd.randrange(1, 150), UNBOUNDED]), rnd.choice([rnd.randrange(1, 150), UNBOUNDED]))
        questions += [WindowQuestion(*place, g, *ends) for g in range(0, 150, rnd.choice([1, 7]))]
    return pairs, syncs, questions


@pytest.mark.parametrize("wildness", [0.0, 0.1, 0.9])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_windows_are_those_of_the_plain_functions(spark, seed, wildness):
    pairs, syncs, questions = scene(seed, wildness)
    reading = windows_of(frame(spark, pairs), questions)
    for question in questions:
        source_end = UNBOUNDED if question.source_end is None else question.source_end
        mine = syncs.get((question.source_topic, question.partition), [])
        kept = chain(mine, source_end, question.target_end)
        assert reading.windows[question] == window(kept, question.source_committed), question
    assert set(reading.windows) == set(questions)


@pytest.mark.parametrize("seed", [3, 4])
def test_for_a_failback_every_sync_is_read_the_other_way_round(spark, seed):
    pairs, syncs, questions = scene(seed, 0.1)
    reading = windows_of(frame(spark, pairs), questions, flow=FLOW.reversed())
    for question in questions:
        source_end = UNBOUNDED if question.source_end is None else question.source_end
        mine = syncs.get((question.source_topic, question.partition), [])
        swapped = [OffsetSync(s.position, s.target_offset, s.source_offset) for s in mine]
        kept = chain(swapped, source_end, question.target_end)
        assert reading.windows[question] == window(kept, question.source_committed), question


def test_where_no_end_contradicts_it_the_newest_sync_is_the_last_of_its_chain(spark):
    pairs = [encode_sync(SyncRecord("t", 0, *sync)) for sync in ((90, 90), (190, 190), (60, 20))]
    asked = WindowQuestion("t", 0, 2**63 - 1, None, 2**63 - 1)
    assert windows_of(frame(spark, pairs), [asked]).windows[asked] == Window(OffsetSync(2, 60, 20), None)


def test_many_questions_travel_in_several_documents(spark):
    pairs = [encode_sync(SyncRecord("t", 0, u, 2 * u)) for u in range(0, 30_000, 100)]
    questions = [WindowQuestion("t", 0, g, None, UNBOUNDED) for g in range(25_000)]
    reading = windows_of(frame(spark, pairs), questions)
    for g in (0, 99, 100, 24_999):
        below = OffsetSync(g // 100, g - g % 100, 2 * (g - g % 100))
        above = OffsetSync(g // 100 + 1, below.source_offset + 100, 2 * below.source_offset + 200)
        assert reading.windows[questions[g]] == Window(below, above)


def test_a_topic_of_checkpoints_is_recognised_and_answers_nothing(spark):
    question = WindowQuestion("A.t", 0, 5, 10, 10)
    reading = windows_of(frame(spark, [encode_checkpoint(WireCheckpoint("g", "A.t", 0, 1, 1))] * 3), [question])
    assert reading.counts == {"checkpoint": 3}
    assert reading.windows == {question: Window(None, None)}


def test_every_question_is_answered_where_nothing_is_to_be_read(spark):
    question = WindowQuestion("t", 0, 5, 10, 10)
    reading = windows_of(read_topic(spark, {}, "no-such-topic", LogRange(0, 0)), [question])
    assert (reading.windows, reading.counts) == ({question: Window(None, None)}, {})
