"""Values over the channel between two processes: they arrive as they were."""

import socket

import pytest

from migrate.commit_table import CommitTable
from migrate.described_group import ListedGroup
from migrate.kafka.frames import receive, send
from migrate.model import Commit, Failure, GroupState, TopicPartition
from tests.unit.describedgroups import group, member


def test_values_come_over_the_channel_as_they_were_sent() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        odd = b"g\xff".decode("utf-8", "surrogateescape")
        value = {
            odd: {TopicPartition("t\n,\x00", 1): Commit(7, "m\x00é", None)},
            "b": Failure("X", "y", True, True),
            "c": GroupState("Stable", 1, ("a@b",)),
            "d": group(member(orders=(0, 1))),
            "e": ListedGroup.unseen(Failure("X", "y")),
            "f": {TopicPartition("t", 1): None, TopicPartition("u", 0): Failure("X", "y", True, True)},
        }
        send(ours, value)
        assert receive(theirs) == value
        ours.close()
        with pytest.raises(EOFError):
            receive(theirs)


PLACES = [TopicPartition("t\n,\x00", 1), TopicPartition("u", 0)]
FAILED = Failure("X", "y", True, True)


def test_tables_of_commits_arrive_as_they_were_and_share_their_partitions_again() -> None:
    some = {PLACES[0]: Commit(7, "m\x00é", None), PLACES[1]: Commit(0, "", 3)}
    answers = {"a": CommitTable.of(some), "b": FAILED, "c": CommitTable.of({}), "d": CommitTable.of(some)}
    ours, theirs = socket.socketpair()
    with ours, theirs:
        send(ours, ("done", answers))
        _, arrived = receive(theirs)
    assert arrived == answers == {"a": some, "b": FAILED, "c": {}, "d": some}
    assert [*map(id, arrived["a"])] == [*map(id, arrived["d"])]
