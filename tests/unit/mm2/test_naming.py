"""Names, as the classes of Kafka 4.3.1 and 3.9.2 answer (recorded by asking them), and names by a map."""

import re
from dataclasses import replace

import pytest
from hypothesis import given

from migrate.errors import UsageError
from migrate.mm2.config_file import client_flow
from migrate.mm2.flow import ANY
from migrate.mm2.name_map import NameMap, NoNameOfItsOwn, read_name_map
from migrate.mm2.naming import PolicyKind, ReplicationPolicy, ReversedPolicy
from migrate.mm2.other_names import MappedNames
from tests.unit.names import POLICIES, TOPICS

DEFAULT = ReplicationPolicy(PolicyKind.DEFAULT, "source1", "target2")
IDENTITY = ReplicationPolicy(PolicyKind.IDENTITY, "source1", "target2")


@pytest.mark.parametrize(("topic", "copy", "identity"), [
    ("topic3", "source1.topic3", "topic3"),
    ("target2.topic3", "topic3", "target2.topic3"),
    ("target2.orders.v1", "v1", "target2.orders.v1"),
    ("target2..t", "t", "target2..t"),
    ("target2.", "source1.target2.", "target2."),
    ("x.target2.t", "source1.x.target2.t", "x.target2.t"),
    ("xheartbeats", "source1.xheartbeats", "source1.xheartbeats"),
    ("target2.heartbeats", "heartbeats", "heartbeats"),
    ("..a", "source1...a", "..a"),
])  # fmt: skip
def test_policies_rename_as_mm2_does_in_its_checkpoints_the_identity_policy_heartbeats_alone(topic, copy, identity):
    assert (DEFAULT.target_topic(topic), IDENTITY.target_topic(topic)) == (copy, identity)


@pytest.mark.parametrize("policy", [DEFAULT, IDENTITY])
def test_internal_topics_are_those_of_kafka_4(policy):
    internal = ["mm2-offset-syncs.B.internal", "mm2x.internal", "A.checkpoints.internal", "__consumer_offsets", ".a"]
    assert all(map(policy.is_internal, internal))
    assert not any(map(policy.is_internal, ["foo.internal", "foo-internal", "mm2internal", "topic3"]))


@given(POLICIES, TOPICS)
def test_a_source_topic_is_named_for_what_is_really_its_copy_and_for_all_of_that(policy, topic):
    if policy.why_not_replicated(topic) is None:
        assert policy.source_topic(policy.target_topic(topic)) == topic
    source_topic = policy.source_topic(topic)
    assert source_topic is None or policy.target_topic(source_topic) == topic


HEADING = "source_group,target_group"


def map_of(*lines: str, kind: str = "group") -> NameMap:
    return NameMap.from_lines(f"--{kind}-map", "names.csv", kind, lines)


@pytest.mark.parametrize(
    ("lines", "mapped"),
    [
        (
            [HEADING, "orders,orders-eu", "", "# a note", ' "a,b","c ""d""" '],
            {"orders": "orders-eu", "a,b": 'c "d"', "orders2": "orders2"},
        ),
        # An expression matches the whole name, and its groups are in the replacement.
        (
            [r"regex:team-(.*)\.(?P<what>x+),\g<what>-\1"],
            {"team-a.xx": "xx-a", "my-team-a.xx": "my-team-a.xx", "team-a.xxy": "team-a.xxy"},
        ),
        # The first line that matches decides, of whatever form.
        (
            [HEADING, "a1,by-name", r"regex:a(\d),by-digit-\1", "a2,too-late", "regex:a.*,by-letter"],
            {"a1": "by-name", "a2": "by-digit-2", "a3": "by-digit-3", "ab": "by-letter"},
        ),
    ],
)
def test_a_name_is_mapped_by_the_first_line_that_matches_and_keeps_its_own_without_one(lines, mapped):
    names = map_of(*lines)
    assert {name: names.mapped(name) for name in mapped} == mapped
    assert [line.number for line in names.idle_lines(mapped)] == ([4] if "a2,too-late" in lines else [])


@pytest.mark.parametrize(("lines", "said"), [
    (["a,b"], "line 1: a before a heading. Expected source_group,target_group as the first line."),
    (["regex:x,y", HEADING], "line 2: source_group before a heading"),
    ([HEADING, "a"], "line 2: 1 cells. Expected 2: source_group,target_group or regex:EXPRESSION,REPLACEMENT"),
    ([HEADING, "a,b,c"], "line 2: 3 cells"),
    ([HEADING, "", 'a,"b'], "line 3: no CSV"),
    ([HEADING, "a,"], "line 2: an empty name"),
    ([HEADING, " ,b"], "line 2: an empty name"),
    (["regex:,b"], "line 1: an empty name"),
    ([HEADING, "a,b", "a,c"], "line 3: a, which line 2 maps. Expected each group once."),
    (["regex:(,b"], "line 1: (, no regular expression"),
    (["regex:[a-z&&[^x]],b"], "character class operations are not supported"),
    ([r"regex:a,\1"], r"line 1: the replacement \1"),
    ([r"regex:a,\g<x>"], r"line 1: the replacement \g<x>"),
    (["regex:(a),$1"], r"line 1: the replacement $1. Expected \1, or \g<name>, for a group of the expression."),
    ([], "--group-map names.csv maps no group."),
    ([HEADING], "--group-map names.csv maps no group."),
])  # fmt: skip
def test_a_wrong_line_is_refused_with_file_line_and_what_was_expected(lines, said):
    with pytest.raises(UsageError, match=re.escape(said)) as refused:
        map_of(*lines)
    assert "--group-map names.csv" in str(refused.value)
    assert re.search(r"\. (Expected|Write) .+\.$", str(refused.value))


def test_a_replacement_that_leaves_nothing_of_a_name_is_refused():
    names = map_of(r"regex:team-(.*),\1")
    assert names.mapped("team-a") == "a"
    said = re.escape("line 1 (regex:team-(.*)): group team- would be without a name")
    with pytest.raises(NoNameOfItsOwn, match=said) as refused:
        names.mapped("team-")
    assert refused.value.names == ("team-",)


@pytest.mark.parametrize(("asked", "said", "all_of_them"), [
    (["b", "a"], "groups a and b would both be x on the target", {"a", "b"}),
    (["c", "d"], "groups c and d would both be d on the target", {"c", "d"}),
    (["x", "b"], "groups b and x would both be x on the target", {"b", "x"}),
    (["d", "c", "b", "a", "x", "f"], "groups a and b would both be x", {"a", "b", "c", "d", "x"}),
    (["a", "z"], "groups a and z would both be a on the target", {"a", "z"}),
])  # fmt: skip
def test_names_that_would_share_one_are_all_refused_with_or_without_a_line_of_their_own(asked, said, all_of_them):
    names = map_of(HEADING, "a,x", "b,x", "c,d") if "z" not in asked else map_of(HEADING, "z,a")
    with pytest.raises(NoNameOfItsOwn, match=said) as refused:
        names.all_mapped(asked)
    assert set(refused.value.names) == all_of_them
    assert map_of(HEADING, "a,x", "c,d").all_mapped(["a", "c"]) == {"a": "x", "c": "d"}


def test_a_file_is_read_as_utf_8_and_named_where_it_cannot_be(tmp_path):
    file = tmp_path / "names.csv"
    file.write_bytes(b"\xef\xbb\xbfsource_group,target_group\r\npaym\xc3\xabnts,zahlungen\r\n")
    assert read_name_map("--group-map", file, "group").mapped("paymënts") == "zahlungen"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="is not UTF-8 text"):
        read_name_map("--group-map", file, "group")
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_name_map("--group-map", tmp_path / "none.csv", "group")


MAP = ("source_topic,target_topic", "orders,eu.orders", r"regex:team-(.*),\1", "payments,orders")


def names(*lines: str, topics: tuple[str, ...] | None = None) -> MappedNames:
    made = MappedNames("A", "B", NameMap.from_lines("--topic-map", "m.csv", "topic", lines) if lines else NameMap())
    return made if topics is None else made.knowing(topics)


def test_without_a_map_names_are_unchanged_both_ways_and_kafkas_own_are_no_copies():
    plain = names()
    assert plain.kind is PolicyKind.IDENTITY
    assert (plain.target_topic("t"), plain.source_topic("t"), plain.why_not_replicated("t")) == ("t", "t", None)
    assert plain.source_topic("__consumer_offsets") is None
    assert plain.why_not_replicated("__consumer_offsets") == "__consumer_offsets is an internal topic of Kafka."


def test_a_map_is_known_both_ways_once_topics_were_listed_and_two_that_share_a_name_are_both_refused_and_named():
    known = names(*MAP, topics=("orders", "team-a", "t", "__consumer_offsets"))
    assert [known.target_topic(t) for t in ("orders", "team-a", "t")] == ["eu.orders", "a", "t"]
    assert [known.source_topic(t) for t in ("eu.orders", "a", "t")] == ["orders", "team-a", "t"]
    assert known.source_topic("__consumer_offsets") is None and known.source_topic("orders") is None
    assert known.kind is PolicyKind.MAP
    shared = names(*MAP, topics=("payments", "team-orders", "t"))
    said = "On B the topic orders would be the copy of {} as well: where records of two topics are mixed, no position "
    assert shared.why_not_replicated("payments").startswith(said.format("team-orders"))
    assert shared.why_not_replicated("team-orders").startswith(said.format("payments"))
    assert shared.source_topic("orders") is None and shared.why_not_replicated("t") is None


def test_the_way_back_has_the_same_names_turned_round():
    flow = replace(client_flow({}, {}, "A", "B"), policy=names(*MAP), replicator=ANY)
    back = flow.reversed().knowing(("orders", "team-a", "team-b", "b"))
    assert isinstance(back.policy, ReversedPolicy)
    assert [back.policy.target_topic(t) for t in ("eu.orders", "a")] == ["orders", "team-a"]
    assert back.why_not_replicated("eu.orders") == "" and back.why_not_replicated("other")
    no_copy = "By its name b is not a copy of a topic of A: A has no place for this commit."
    assert back.why_not_replicated("b") == no_copy
