"""Checks on the two clusters: which they are, and whether they show all groups, commits and topics."""

from migrate.mm2.topics import CheckpointKey, CheckpointReading, CheckpointRecord
from migrate.model import ClusterFacts, Failure, Level, LogRange
from migrate.survey.filters import Filters
from migrate.survey.offsets_pin import OffsetsPin
from migrate.survey.survey import OffsetsTopicSeen
from tests.unit.checkscene import NOW, blocked, found, levels, waiving


def test_one_cluster_on_both_sides_blocks_everything():
    same = {"target_facts": ClusterFacts("id-a", 1, True)}
    assert levels("clusters-differ", **same) == {"B": Level.BLOCK}
    assert blocked(**same) == {"g", "h"}


def test_a_listing_that_may_be_cut_short_blocks_everything_and_not_knowing_is_no_pass():
    lacking, unknown = ({"source_facts": ClusterFacts("id-a", 1, right)} for right in (False, None))
    assert levels("listing-complete", **lacking) == {"A": Level.BLOCK, "B": Level.PASS}
    unsure = found("listing-complete", **unknown)[0]
    assert (unsure.level, unsure.counts_as) == (Level.NOT_VISIBLE, Level.BLOCK)
    assert blocked(**unknown) == {"g", "h"}
    assert levels("listing-complete", source_down=True) == {"B": Level.PASS}, "only the target's is judged"


def test_groups_only_mm2_remembers_are_named():
    latest = {CheckpointKey(g, "A.t", 0): CheckpointRecord(5, 5, "", 1, NOW) for g in ("orders", "g", "billing")}
    remembered = {"checkpoints": CheckpointReading(latest, {"checkpoint": 3})}
    (result,) = found("checkpointed-groups-listed", **remembered)
    assert result.level is Level.WARN and result.seen == "2 are not: billing, orders"
    assert not found("checkpointed-groups-listed", source_down=True, **remembered)


def read_of_the_offsets_topic(unlisted=(), undecodable=None, keys=0, open_ends=None):
    pin = OffsetsPin("A", 50, {0: LogRange(0, 9)}, open_ends or {})
    return {"topic_seen": OffsetsTopicSeen(pin, 5, tuple(unlisted), undecodable or {}, keys)}


def test_a_group_with_commits_in_the_offsets_topic_that_no_listing_shows_blocks_by_name_and_what_it_hides_is_no_pass():
    unlisted = read_of_the_offsets_topic(["hidden", "sharers"])
    assert levels("listing-agrees", source_kinds={"sharers": "share"}, **unlisted) == {"hidden": Level.BLOCK}
    assert levels("listing-agrees", **read_of_the_offsets_topic()) == {"A": Level.PASS}
    assert not found("listing-agrees"), "nobody read that topic"
    for hidden, level in (({"keys": 2}, Level.BLOCK), ({"open_ends": {3: 77}}, Level.WARN)):
        (told,) = found("listing-agrees", **read_of_the_offsets_topic(**hidden))
        assert (told.subject, told.level, told.counts_as) == ("A", Level.NOT_VISIBLE, level)
    lost = read_of_the_offsets_topic(undecodable={"g": ("t-0: bad-length",)})
    assert levels("commit-undecodable", **lost) == {"g": Level.BLOCK}
    assert blocked(**waiving("commit-undecodable"), **lost) == {"g"}, "no waiver helps"


def test_topics_that_a_cluster_does_not_show_block_if_the_plan_is_about_them_and_warn_otherwise():
    def hidden(*topics, **changes):
        return found("topics-visible", source_hidden=frozenset(topics), **changes)[0]

    infrastructure = ("__consumer_offsets", "mm2-offset-syncs.C.internal")
    assert hidden().level is hidden(*infrastructure).level is Level.PASS
    blocks = hidden("orders", *infrastructure)
    assert blocks.counts_as is Level.BLOCK
    assert "DESCRIBE, and READ to read their records, on topic orders on A" in blocks.todo
    assert hidden("orders", filters=Filters.from_options(topics=["t"])).counts_as is Level.WARN
    assert hidden("orders", **waiving("topics-visible")).accepted
    (unknown,) = found("topics-visible", source_hidden=Failure("CLUSTER_AUTHORIZATION_FAILED", "no"))
    assert (unknown.level, unknown.counts_as) == (Level.NOT_VISIBLE, Level.WARN)
    assert "CLUSTER_AUTHORIZATION_FAILED (no)" in unknown.seen
    # By their names on the target; MM2's own topics are of every plan.
    on_target = {"A.orders": Level.BLOCK, "billing": Level.WARN, "__consumer_offsets": Level.PASS}
    for topic, level in (on_target | {"A.checkpoints.internal": Level.BLOCK}).items():
        assert levels("topics-visible", target_hidden=frozenset({topic}))["B"] is level
