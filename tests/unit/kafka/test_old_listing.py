"""What the older listing says of groups: all of a classic group, or nothing where it does not know."""

import struct
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.described_group import AssignedTopic, Coordinator, GroupDescription, GroupMember, ListedGroup
from migrate.kafka.group_facts import assignment_of, classic_group

assignments = st.lists(
    st.tuples(st.text(min_size=1, max_size=8), st.lists(st.integers(0, 2**31 - 1), max_size=4).map(tuple)), max_size=4
)


def written(topics, version=0, user_data=b"") -> bytes:
    """An assignment as Kafka's clients write it."""
    parts = [struct.pack(">hi", version, len(topics))]
    for topic, partitions in topics:
        name = topic.encode()
        parts.append(struct.pack(f">h{len(name)}si{len(partitions)}i", len(name), name, len(partitions), *partitions))
    return b"".join([*parts, struct.pack(">i", len(user_data)), user_data])


def listed(**changes):
    usual = {
        "error": None, "state": "Stable", "protocol_type": "consumer", "protocol": "range", "members": (),
        "broker": SimpleNamespace(id=3, host="kafka-3", port=9093),
    }  # fmt: skip
    return classic_group(SimpleNamespace(**usual | changes))


def one(assignment: bytes):
    return SimpleNamespace(id="c-1", client_id="app", client_host="/10.0.0.7", assignment=assignment)


@given(assignments, st.integers(0, 3), st.binary(max_size=4))
def test_an_assignment_is_read_as_it_was_written(topics, version, user_data):
    assert assignment_of(written(topics, version, user_data)) == tuple(AssignedTopic(*topic) for topic in topics)


@given(assignments, st.data())
def test_any_other_bytes_are_an_assignment_or_none_and_nothing_worse(topics, data):
    raw = bytearray(written(topics))
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = assignment_of(bytes(raw))
    except ValueError:
        return
    assert tuple(AssignedTopic(str(topic.topic), tuple(map(int, topic.partitions))) for topic in found) == found


def test_an_assignment_that_is_cut_off_is_none():
    whole = written([("orders", (0, 1))])
    for end in range(1, len(whole) - 4):
        with pytest.raises(ValueError, match="requires a buffer of|goes beyond the assignment"):
            assignment_of(whole[:end])


def test_a_classic_group_is_described_in_full():
    coordinator = Coordinator(3, "kafka-3", 9093)
    member = GroupMember("c-1", "app", "/10.0.0.7", (AssignedTopic("orders", (0, 1)),))
    assert listed(members=(one(written([("orders", (0, 1))])),)) == ListedGroup(
        "classic", "consumer", GroupDescription("Stable", (member,), "range", coordinator)
    )
    worker = listed(protocol_type="connect", protocol="sessioned", members=(one(b"\x00\x01"),))
    assert (worker.protocol_type, worker.description.members[0].assigned) == ("connect", ())
    simple = listed(state="Empty", protocol_type="", protocol="")
    assert (simple.kind, simple.protocol_type, simple.description.state) == ("classic", "", "Empty")


def test_where_it_does_not_know_it_says_nothing():
    assert listed(state="Dead", protocol_type="") is None  # a group of KIP-848, or a share group
    assert listed(state="Unknown") is None
    assert listed(error=SimpleNamespace()) is None
    assert listed(members=(one(b"in words of its own"),)) is None
