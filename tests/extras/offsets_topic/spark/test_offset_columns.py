"""The SQL expressions say the same as `migrate.survey.offsets_wire`, on good bytes, broken bytes and noise."""

import random
import struct
from collections import Counter

import pytest

from migrate.extras.offsets_topic import offset_columns as columns
from migrate.survey.offsets_wire import (
    CLASSIC_TYPE,
    COMMIT,
    COMMIT_WITH_OTHER_TAGS,
    GROUP_KINDS,
    CommitValue,
    Fault,
    decode_commit,
    decode_key,
)
from tests.offsetsbytes import commit_key, commit_value, group_key, group_value
from tests.offsetsdecoded import GroupValue, GroupValueMember, decode_group, label
from tests.spark.offsetstopic import some_commit
from tests.spark.records import damaged, frame

COMMITS = (COMMIT, COMMIT_WITH_OTHER_TAGS)
NAMES = ["", "g", "grüppe", "a'b\"c\\d", "two\nlines", "\x00", "名前 😀", "x" * 249]


def some_group(rnd):
    version = rnd.randrange(5)
    members = tuple(
        GroupValueMember(
            rnd.choice(NAMES), rnd.choice([None, *NAMES]) if version >= 3 else None, rnd.choice(NAMES),
            rnd.choice(NAMES), rnd.choice([0, 300_000, 2**31 - 1]) if version >= 1 else None, rnd.choice([0, 45_000]),
        )
        for _ in range(rnd.choice([0, 0, 1, 2, 5]))
    )  # fmt: skip
    state_ms = rnd.choice([None, 1_700_000_000_000]) if version >= 2 else None
    protocol, leader = rnd.choice([None, *NAMES]), rnd.choice([None, *NAMES])
    return GroupValue("classic", version, rnd.choice(["", "consumer"]), rnd.choice([0, 7]), protocol, leader, state_ms,
                      members)  # fmt: skip


def some_record(rnd):
    pick = rnd.random()
    if pick < 0.5:
        key = commit_key(rnd.choice(NAMES), rnd.choice(NAMES), rnd.choice([0, 300, 2**31 - 1]), rnd.choice([0, 1, 1]))
        return key, commit_value(some_commit(rnd))
    if pick < 0.8:
        blobs = [rnd.randbytes(rnd.choice([0, 1, 60, 126, 127, 128, 40_000])) for _ in range(2)]
        return group_key(CLASSIC_TYPE, rnd.choice(NAMES)), group_value(some_group(rnd), blobs)
    if pick < 0.9:
        value = struct.pack(">hi", rnd.choice([0, 0, 1]), 5) + rnd.randbytes(rnd.choice([0, 1, 9]))
        return group_key(rnd.choice([3, 11, 17]), rnd.choice(NAMES)), value
    return group_key(rnd.choice([4, 5, 24, 99, 40_000]), rnd.choice(NAMES), b"rest"), rnd.randbytes(20)


def records_of_all_kinds(seed, count=2000):
    rnd = random.Random(seed)
    pairs = [some_record(rnd) for _ in range(count)]
    return [
        (damaged(rnd, key) if rnd.random() < 0.2 else key, damaged(rnd, value) if rnd.random() < 0.5 else value)
        for key, value in pairs
    ]


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_every_record_has_the_label_and_the_key_that_the_plain_decoder_gives_it(spark, seed):
    pairs = records_of_all_kinds(seed)
    named = columns.labelled(columns.shaped(frame(spark, pairs)))
    rows = named.select("offset", "label", "record_type", "group", "topic", "topic_partition").collect()
    found = {offset: (found_label, *key) for offset, found_label, *key in rows}
    wanted = {offset: label(*pair) for offset, pair in enumerate(pairs)}
    assert {
        o: (found[o][0], wanted[o], *map(bytes.hex, filter(None, pairs[o]))) for o in wanted if found[o][0] != wanted[o]
    } == {}
    assert len(Counter(wanted.values())) >= 12, Counter(wanted.values())
    for offset, (_, record_type, group, topic, partition) in found.items():
        key = decode_key(pairs[offset][0])
        if isinstance(key, Fault):
            assert (group, topic, partition) == (None, None, None)
        else:
            assert (record_type, topic, partition) == (key.record_type, key.topic, key.partition)
            assert group == key.group or key.record_type not in (0, 1, *GROUP_KINDS)


def test_commits_and_groups_decode_as_the_plain_decoder_says(spark):
    pairs = records_of_all_kinds(seed=12)
    labels = [label(*pair) for pair in pairs]
    commits = {o: decode_commit(pairs[o][1]) for o, named in enumerate(labels) if named in COMMITS}
    groups = {
        o: decode_group(int.from_bytes(pairs[o][0][:2], "big"), pairs[o][1])
        for o, named in enumerate(labels)
        if named == "group"
    }
    shaped = columns.shaped(frame(spark, pairs))
    found = {
        row.offset: CommitValue(
            row.version, row.committed_offset, row.leader_epoch, row.metadata, row.commit_timestamp,
            row.stored_expire_timestamp, row.topic_id, row.shape == columns.COMMIT_WITH_OTHER_TAGS,
        )
        for row in columns.with_commit_values(shaped).where("committed_offset is not null").collect()
        if row.offset in commits
    }  # fmt: skip
    assert found == commits and len(found) > 400
    found = {
        row.offset: GroupValue(
            row.kind, row.version, row.protocol_type, row.generation, row.protocol, row.leader, row.state_timestamp,
            tuple(GroupValueMember(*member) for member in row.members or ()),
        )
        for row in columns.with_group_values(shaped).where(f"shape = {columns.GROUP}").collect()
        if row.offset in groups
    }  # fmt: skip
    assert found == groups and sum(len(group.members) for group in found.values()) > 100
