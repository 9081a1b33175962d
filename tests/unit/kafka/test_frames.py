"""Values over the channel between two processes: they arrive as they were."""

import socket

import pytest

from migrate.kafka.frames import ByGroup, receive, send
from migrate.model import Commit, Failure, GroupState, TopicPartition


def test_values_come_over_the_channel_as_they_were_sent() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        odd = b"g\xff".decode("utf-8", "surrogateescape")
        value = {
            odd: {TopicPartition("t\n,\x00", 1): Commit(7, "m\x00é", None)},
            "b": Failure("X", "y", True, True),
            "c": GroupState("Stable", 1, ("a@b",)),
        }
        send(ours, value)
        assert receive(theirs) == value
        ours.close()
        with pytest.raises(EOFError):
            receive(theirs)


PLACES = [TopicPartition("t\n,\x00", 1), TopicPartition("u", 0)]
FAILED = Failure("X", "y", True, True)


@pytest.mark.parametrize(
    "answers",
    [
        {},
        {"a": {}},
        {"a": FAILED},
        {"a": {PLACES[0]: Commit(7, "m\x00é", None), PLACES[1]: Commit(0, "", 3)}, "b": FAILED, "c": {}},
        {b"g\xff".decode("utf-8", "surrogateescape"): dict.fromkeys(PLACES), "b": {PLACES[1]: FAILED}},
    ],
    ids=["none", "a group without offsets", "a group that failed", "commits", "outcomes"],
)
def test_columns_arrive_as_the_dictionaries_that_they_were(answers: dict[str, dict[TopicPartition, object]]) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        send(ours, ("done", ByGroup(answers)))
        assert receive(theirs) == ("done", answers)
