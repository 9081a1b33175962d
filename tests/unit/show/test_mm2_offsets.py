"""MM2's stores as text and as JSON: a dash and null where a store says nothing, odd positions counted."""

import json
from dataclasses import replace

import pytest

from migrate.mm2.config_file import client_flow
from migrate.model import LogRange, TopicPartition
from migrate.show.mm2_offsets import stores_document, stores_lines
from migrate.survey.mm2_offsets import PartitionStores, Stores

FLOW = client_flow({"bootstrap.servers": "a:1"}, {"bootstrap.servers": "b:1"}, "A", "B")


def stores(last_copied_offset, **unknown):
    reasons = {"positions_unknown": "", "syncs_unknown": "", "checkpoints_unknown": ""} | unknown
    log = LogRange(0, 100)
    partition = PartitionStores(TopicPartition("t", 0), "A.t", log, log, last_copied_offset, None, 0, None)
    return Stores((partition,), "x", **reasons)


def told(found, *partitions):
    """The text, of these partitions where some are given."""
    found = replace(found, partitions=partitions) if partitions else found
    return "\n".join(stores_lines(found, FLOW, 120, False))


def test_a_position_beyond_the_logs_end_is_counted_and_what_is_left_of_a_log_that_was_not_read_is_never_nothing():
    assert "1 with a position beyond the log's end" in told(stores(150))
    (known,) = stores(59).partitions
    unread = replace(known, source_log=None)
    assert "0 offsets" not in told(stores(59), unread)
    both = told(stores(59), known, unread)
    assert "2 partitions, at least 40 offsets left; what is left of 1 partition is not known" in both


# An empty log needs no position.
@pytest.mark.parametrize(
    ("position", "log", "known"),
    [
        (None, LogRange(0, 100), False),
        (150, LogRange(0, 100), False),
        (99, LogRange(0, 100), True),
        (None, LogRange(7, 7), True),
    ],
)
def test_a_sum_that_lacks_a_partition_is_a_lower_bound(position, log, known):
    other = replace(stores(position).partitions[0], source_log=log)
    (copied,) = stores(99).partitions
    both = told(stores(99), copied, other)
    assert ("2 partitions, 0 offsets left." in both) == known
    assert ("2 partitions, at least 0 offsets left; 1 with" in both) != known


def test_topics_of_which_mm2_has_copied_nothing_yet_are_not_called_copied():
    text = " ".join(told(replace(stores(99), partitions=())).split())
    assert "offsets left" not in text and "No topic inside the filters has a copy" in text


def test_what_a_store_does_not_say_is_a_dash_and_null_and_one_that_was_not_read_is_named_with_the_reason():
    found = stores(None, positions_unknown="no such topic")
    text, document = told(found), json.loads("".join(stores_document(found, FLOW)))
    assert any(line.split()[-8:] == ["0", "0", "100", "-", "-", "-", "0", "-"] for line in text.splitlines())
    (partition,) = document["partitions"]
    assert (partition["position"], partition["newest_sync"]) == (None, None)
    assert "POSITION: not known, no such topic." in text and document["not_known"] == {"position": "no such topic"}
