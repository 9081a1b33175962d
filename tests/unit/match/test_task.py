"""A task drives many matchings together: one reading of each cluster per round; its table of places."""

import pickle
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.errors import ClusterError, EnvironmentLacks
from migrate.match.equality import Equality
from migrate.match.place_table import PlaceTable
from migrate.match.protocol import (
    Matched,
    Needs,
    OffsetRange,
    PartitionAnswer,
    PartitionQuestion,
    Supply,
    Tail,
    Unmatched,
    Unreadable,
    Why,
    WhyUnmatched,
)
from migrate.match.task import OFFSETS_AT_ONCE, PARTITIONS_AT_ONCE, Fetched, answers_or_error, match_partitions
from migrate.model import LogRange, TopicPartition
from tests.memorylogs import MemoryReader, record

LENGTH = 100


def question(number: int, width: int = LENGTH) -> PartitionQuestion:
    log = LogRange(0, width)
    places = (TopicPartition("t", number), TopicPartition("A.t", number))
    return PartitionQuestion(*places, log, log, (number,), sync_pairs=(), equality=Equality.ALL)


def unread(read: int) -> PartitionAnswer:
    return PartitionAnswer({}, Tail(None), read, read)


class Rounds(MemoryReader):
    """Counts what each reading asked for, as (partitions, offsets)."""

    def __init__(self, logs, **rest):
        super().__init__(logs, **rest)
        object.__setattr__(self, "rounds", [])

    def read(self, wanted):
        offsets = sum(piece.end - piece.start for asked in wanted.values() for piece in asked.ranges)
        self.rounds.append((len(wanted), offsets))
        return super().read(wanted)


def whole_log(asked: PartitionQuestion) -> Generator[Needs, Supply | Unreadable, PartitionAnswer]:
    """Reads both logs whole, then asks the target once more; tells what it was given."""
    whole = (OffsetRange(0, asked.source_log.end),)
    first = yield Needs(source=whole, target=whole)
    if isinstance(first, Unreadable):
        return unread(0)
    second = yield Needs(target=(OffsetRange(5, 7), OffsetRange(9, 10)), source_times=(1010, 9999), target_times=(0,))
    assert isinstance(second, Supply)
    assert [list(stretch.offsets) for stretch in second.target] == [[5, 6], [9]]
    assert second.source == ()
    # Beyond the last record there is the pinned end.
    assert second.source_first == {1010: 10, 9999: asked.source_log.end}
    assert second.target_first == {0: 0}
    assert len(first.source[0].offsets) == len(first.target[0].offsets)
    return unread(len(first.source[0].offsets))


def run(questions, **source):
    logs = {q.source: {n: record(n) for n in range(LENGTH)} for q in questions}
    copies = {q.target: logs[q.source] for q in questions}
    readers, task = (Rounds(logs, **source), Rounds(copies)), partial(match_partitions, law=whole_log)
    *answers, fetched = answers_or_error(lambda: nullcontext(readers), task, questions)
    assert fetched == Fetched(*(reader.fetched_bytes for reader in readers))
    return dict(answers), readers


def test_all_partitions_share_each_round():
    questions = [question(n) for n in range(30)]
    answers, readers = run(questions)
    assert answers == {q.source: unread(LENGTH) for q in questions}
    assert readers[0].rounds == [(30, 30 * LENGTH), (0, 0)]
    assert readers[1].rounds == [(30, 30 * LENGTH), (30, 90)]


def test_at_most_so_many_partitions_and_offsets_are_held_at_once():
    answers, readers = run([question(n) for n in range(3 * PARTITIONS_AT_ONCE)])
    assert len(answers) == 3 * PARTITIONS_AT_ONCE
    assert max(count for count, _ in readers[1].rounds) <= PARTITIONS_AT_ONCE
    width = OFFSETS_AT_ONCE // 5
    _, readers = run([question(n, width) for n in range(20)])
    assert all(offsets <= OFFSETS_AT_ONCE / 2 for _, offsets in readers[0].rounds)


def test_what_can_not_be_read_on_either_side_is_told_to_the_matching():
    unreadable = {TopicPartition("t", 1): "TOPIC_AUTHORIZATION_FAILED"}
    answers, _ = run([question(n) for n in range(3)], unreadable=unreadable)
    assert [answers[TopicPartition("t", n)].source_read for n in range(3)] == [LENGTH, 0, LENGTH]


@pytest.mark.parametrize(
    "error", [ClusterError("B is down.", "Start it."), EnvironmentLacks("No client.", "Install it.")]
)
def test_what_ends_a_command_ends_a_task_as_a_value(error):
    @contextmanager
    def opened():
        raise error
        yield

    (failed,) = answers_or_error(opened, match_partitions, [question(1)])
    again = pickle.loads(pickle.dumps(failed))  # as it comes back from an executor
    assert (type(again), again.problem, again.todo) == (type(error), error.problem, error.todo)


ANY_OFFSET = st.integers(0, 2**63 - 1)
PAIRS = st.none() | st.tuples(ANY_OFFSET, ANY_OFFSET)
MATCHED = st.builds(Matched, ANY_OFFSET, st.sampled_from(Why), ANY_OFFSET, ANY_OFFSET, PAIRS, PAIRS)
UNMATCHED = st.builds(Unmatched, st.sampled_from(WhyUnmatched), st.none() | ANY_OFFSET, PAIRS, error_code=st.text())


@given(st.dictionaries(st.integers(0, 50), MATCHED | UNMATCHED), st.integers(0, 50))
def test_a_table_holds_what_the_dictionary_held(places: dict[int, Matched | Unmatched], asked: int) -> None:
    table = PlaceTable.of(places)
    assert table == places and list(table.items()) == sorted(places.items()) and PlaceTable.of(table) is table
    assert pickle.loads(pickle.dumps(table)) == places
    assert table.get(asked) == places.get(asked) and (asked in table) == (asked in places)
