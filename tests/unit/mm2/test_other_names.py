"""Names behind another replicator: unchanged or by a map, known both ways once topics were listed."""

from migrate.mm2.flow import ANY, Cluster, Flow
from migrate.mm2.name_map import NameMap
from migrate.mm2.naming import PolicyKind, ReversedPolicy
from migrate.mm2.other_names import MappedNames
from migrate.model import Side

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


def test_a_map_is_known_both_ways_once_topics_were_listed():
    known = names(*MAP, topics=("orders", "team-a", "t", "__consumer_offsets"))
    assert [known.target_topic(t) for t in ("orders", "team-a", "t")] == ["eu.orders", "a", "t"]
    assert [known.source_topic(t) for t in ("eu.orders", "a", "t")] == ["orders", "team-a", "t"]
    assert known.source_topic("__consumer_offsets") is None and known.source_topic("orders") is None
    assert known.kind is PolicyKind.MAP


def test_two_topics_that_share_a_name_on_the_target_are_both_refused_and_named():
    known = names(*MAP, topics=("payments", "team-orders", "t"))
    said = "On B the topic orders would be the copy of {} as well: where records of two topics are mixed, no position "
    assert known.why_not_replicated("payments").startswith(said.format("team-orders"))
    assert known.why_not_replicated("team-orders").startswith(said.format("payments"))
    assert known.source_topic("orders") is None and known.why_not_replicated("t") is None


def test_the_way_back_has_the_same_names_turned_round():
    flow = Flow(
        Cluster(Side.SOURCE, "A", {}), Cluster(Side.TARGET, "B", {}), names(*MAP), Side.SOURCE, "", "",
        replicator=ANY,
    )  # fmt: skip
    back = flow.reversed().knowing(("orders", "team-a", "team-b", "b"))
    assert isinstance(back.policy, ReversedPolicy)
    assert [back.policy.target_topic(t) for t in ("eu.orders", "a")] == ["orders", "team-a"]
    assert back.why_not_replicated("eu.orders") == ""
    assert (
        back.why_not_replicated("b") == "By its name b is not a copy of a topic of A: A has no place for this commit."
    )
    assert back.why_not_replicated("other")
