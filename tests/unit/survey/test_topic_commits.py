"""A plan whose commits are read in the offsets topic is the plan that coordinators' answers make, or says why not."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.checks.checklist import NEVER_ACCEPTABLE
from migrate.commit_table import CommitTable, without_offset
from migrate.errors import ClusterError, Refused
from migrate.match.protocol import Limits
from migrate.mm2.name_map import NameMap
from migrate.model import Commit, Commits, Decision, GroupPartition, Level, LogRange, Scope, TopicPartition
from migrate.plan.build import plan_of
from migrate.plan.plan import Plan
from migrate.show.plan_table import Page, table
from migrate.survey.commits_source import CommitsSource
from migrate.survey.filters import Filters
from migrate.survey.offsets_pin import ATTEMPTS, CompactedMeanwhileError, OffsetsPin, TopicCommits
from migrate.survey.offsets_topic import OFFSETS_TOPIC, CommitTopic, GroupKind, GroupRecord, partition_of
from migrate.survey.offsets_wire import CommitValue, decode_commit
from migrate.survey.policies import Policies, Untranslatable, Waiver
from migrate.survey.survey import Clusters
from migrate.survey.take import take_survey
from migrate.survey.topic_commits import GONE, NewestOf, NewestRecord, commits_of, newest_records
from tests.fakes import FakeClock, FakeCluster, FakeGroupFacts, NoProgress
from tests.offsetsbytes import commit_key, commit_value
from tests.unit.planscene import rows_of, world
from tests.unit.surveyscene import request

PARTITIONS = 5
T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


@dataclass
class FakeTopic:
    """The offsets topic of a cluster: what its coordinators know, but for `told`, fields of what is read."""

    cluster: FakeCluster
    others: Mapping[str, Commits] | None = None
    as_of_ms: int | None = None
    failure: ClusterError | None = None
    compactions: int = 0
    told: Mapping[str, Any] = field(default_factory=dict)
    pins: list[OffsetsPin] = field(default_factory=list)

    def __call__(self, pin: OffsetsPin, as_of_ms: int | None = None) -> TopicCommits:
        assert as_of_ms == self.as_of_ms
        self.pins.append(pin)
        if self.failure:
            raise self.failure
        if self.compactions:
            self.compactions -= 1
            self.cluster.commit("g", "t", 0, 57)  # what was taken away stands further on
            ranges = self.cluster.ranges
            for place in [p for p in ranges if p.topic == OFFSETS_TOPIC]:
                ranges[place] = LogRange(ranges[place].start, ranges[place].end + 1)
            raise CompactedMeanwhileError(OFFSETS_TOPIC)
        everything, ids = {**self.cluster.offsets, **(self.others or {})}, self.cluster.ids
        broken = self.told.get("undecodable", {})
        read = {
            group: {place: commit for place, commit in commits.items() if place not in broken.get(group, ())}
            for group, commits in everything.items()
            if partition_of(group, pin.partitions) in pin.logs
        }
        # By default every commit of then was made on the topic that is there.
        made_on = {
            group: {p: CommitTopic(c.offset, ids[p.topic]) for p, c in commits.items() if p.topic in ids}
            for group, commits in self.told.get("then", {}).items()
        }
        without = {group: places for group, commits in everything.items() if (places := without_offset(commits))}
        return TopicCommits(read, without_offset=without, **{"then_made_on": made_on, **self.told})


# --- what newest records say ------------------------------------------------------------------------------


def newest(
    said: Mapping[int, bytes | None], group="g", topic="t", role=NewestOf.LIVE, elsewhere=0
) -> list[NewestRecord]:
    """The newest records of one group and topic, told as a whole: values by partition."""
    home = (partition_of(group, PARTITIONS) + elsewhere) % PARTITIONS
    tails = " ".join(partition.to_bytes(4, "big").hex() for partition in said)
    values = " ".join(GONE if raw is None else raw.hex() for raw in said.values())
    return list(newest_records(home, commit_key(group, topic, 0)[:-4], tails, values, role))


def value(version: int = 3, offset: int = 7, epoch: int | None = None, metadata: str = "", **more: Any) -> bytes:
    return commit_value(CommitValue(version, offset, epoch, metadata, 1_790_000_000_000, **more))


ID, ANOTHER_ID = "AAECAwQFBgcICQoLDA0ODw", "_-ECAwQFBgcICQoLDA0ODw"
PLAIN, WITH_ID, OTHER_ID = value(), value(4, 9, 2, topic_id=ID), value(4, 4, 2, topic_id=ANOTHER_ID)
NO_OFFSET = PLAIN[:2] + b"\xff" * 8 + PLAIN[10:]
UNKNOWN_VERSION = b"\0\5" + PLAIN[2:]
A_NEGATIVE_OFFSET = PLAIN[:2] + b"\xff" * 7 + b"\xfe" + PLAIN[10:]
AN_ID_UNDER_ANOTHER_TAG = WITH_ID[:24] + b"\1" + WITH_ID[25:]
SOUND = [PLAIN, WITH_ID, OTHER_ID, value(metadata="m"), value(2), value(4, 3, 2, "m", topic_id=ANOTHER_ID)]
ODD = [NO_OFFSET, UNKNOWN_VERSION, None, b"", PLAIN + b"x", PLAIN[:-1], A_NEGATIVE_OFFSET, AN_ID_UNDER_ANOTHER_TAG]


@given(st.dictionaries(st.integers(0, 4), st.sampled_from(SOUND + ODD), min_size=1))
def test_whatever_lies_among_the_records_of_a_topic_takes_nothing_from_its_neighbours(said) -> None:
    then = commits_of(newest(said, role=NewestOf.THEN), PARTITIONS, is_as_of=True)
    live = commits_of(newest(said), PARTITIONS)
    decoded = {p: told for p, raw in said.items() if isinstance(told := decode_commit(raw or b""), CommitValue)}
    commits = live.commits.get("g", {})
    assert {p.partition: c.offset for p, c in commits.items()} == {p: c.offset for p, c in decoded.items()}
    assert {p.partition for p in then.then_made_on.get("g", {})} == {p for p, told in decoded.items() if told.topic_id}
    assert list(commits) == sorted(commits)


def test_newest_records_become_one_group_with_its_places_in_order_and_the_epochs_that_consumers_sent():
    records = newest({1: value(offset=7, epoch=3), 0: PLAIN}, topic="u") + newest({1: PLAIN, 0: None}, topic="t")
    found = commits_of(records + newest({0: None}, "h"), PARTITIONS)
    assert {group: list(commits.items()) for group, commits in found.commits.items()} == {
        "g": [(T1, Commit(7)), (U0, Commit(7)), (("u", 1), Commit(7, "", 3))]
    }


def test_what_cannot_be_decoded_is_named_or_counted_and_what_has_no_offset_or_lies_elsewhere_is_no_commit():
    records = newest({0: UNKNOWN_VERSION, 1: PLAIN, 2: NO_OFFSET}) + [NewestRecord(0, b"\0\1", None)]
    records += newest({0: NO_OFFSET}, "i") + newest({0: PLAIN, 1: b"\0"}, "h", elsewhere=1)
    found = commits_of(records, PARTITIONS)
    assert found.undecodable == {"g": {T0: "unknown-version"}} and found.undecodable_keys == 1
    assert found.commits == {"g": {T1: Commit(7)}}
    assert found.without_offset == {"g": (TopicPartition("t", 2),), "i": (T0,)}


def test_records_of_an_earlier_time_and_the_topics_they_were_made_on_are_kept_apart_from_those_of_now():
    """A newer record of the same place says nothing of an older one."""
    live = newest({0: OTHER_ID, 1: PLAIN, 2: WITH_ID, 3: None})
    found = commits_of(live + newest({0: WITH_ID, 1: None}, role=NewestOf.THEN), PARTITIONS, is_as_of=True)
    assert found.then == {"g": {T0: Commit(9, "", 2)}} and len(found.commits["g"]) == 3
    assert found.then_made_on == {"g": {T0: CommitTopic(9, ID)}} and found.none_then == {("g", "t", 1)}
    # Taken away since, and all that was before is gone: what stood there nobody knows.
    assert found.gone == {("g", "t", 2), ("g", "t", 3)}
    now = commits_of(live, PARTITIONS)
    assert (now.gone, now.then_made_on) == (frozenset(), {})


# --- plans ------------------------------------------------------------------------------------------------


GHOST = {"ghost": {T0: Commit(9)}}
THEN = {"g": {T0: Commit(20), T1: Commit(60)}, "h": {U0: Commit(30)}}


def planned(source, target, mirror, topic=None, facts=None, **asked) -> Plan:
    """The plan of that scene, whose source has an offsets topic."""
    source.told = facts
    source.ranges |= {TopicPartition(OFFSETS_TOPIC, number): LogRange(3, 40) for number in range(PARTITIONS)}
    clusters = Clusters(source, target, mirror, offsets_topic=topic)
    return plan_of(take_survey(request(**asked), clusters, FakeClock(), NoProgress()))


def from_topic(scene=None, facts=None, as_of_ms=None, asked=None, others=None, compactions=0, **told):
    """The plan of what the offsets topic says, and that topic; `asked` are fields of the request."""
    scene = scene or world()
    topic = FakeTopic(scene[0], others, as_of_ms, compactions=compactions, told=told)
    commits = CommitsSource(reads_topic=True, as_of_ms=as_of_ms)
    return planned(*scene, topic, facts, **{"commits": commits, **(asked or {})}), topic


def filtered(**options) -> dict[str, Filters]:
    return {"filters": Filters.from_options(**options)}


def results(made: Plan, check: str) -> dict[str, tuple[Level, Level]]:
    return {c.subject: (c.level, c.counts_as) for c in made.header.checks if c.check == check}


@pytest.mark.parametrize("filters", [{}, {"exclude_groups": ["h"]}, {"topics": ["t"]}, {"groups": ["g"]}])
def test_the_rows_are_those_that_coordinators_answers_make(filters):
    scene = world()
    scene[0].commit("g", "t", 1, 61, "with metadata")
    by_admin = planned(*scene, **filtered(**filters))
    by_topic, _ = from_topic(scene, asked=filtered(**filters))
    assert by_topic.rows == by_admin.rows and len(by_topic.rows) > 0
    assert results(by_topic, "listing-agrees") == {"A": (Level.PASS, Level.PASS)}
    assert results(by_admin, "listing-agrees") == {}
    found = by_topic.header.counts
    taken = sum(count for name, count in found.items() if name.startswith("filtered:"))
    assert found["rows"] + taken == found["commits_read"]


def test_a_group_of_another_wave_is_seen_also_where_nobody_read_its_partition():
    """It would have the name that a group of this wave gets, and take its offsets over later."""
    names = NameMap.from_lines("--group-map", "f", "group", ["source_group,target_group", "g,x", "h,x"])
    made, topic = from_topic(asked={**filtered(groups=["g"]), "group_map": names})
    assert partition_of("h", PARTITIONS) not in topic.pins[0].logs
    assert [c.subject for c in made.blocks() if c.check == "group-name-shared"] == ["g"]
    assert not [c for c in made.blocks() if c.check == "named-groups-exist"]


def test_a_group_that_no_listing_shows_is_named_and_blocks_until_it_is_accepted_or_filtered():
    made, _ = from_topic(others=GHOST)
    assert results(made, "listing-agrees") == {"ghost": (Level.BLOCK, Level.BLOCK)} and not made.is_clean()
    assert {row.group for row in made.rows if row.decision is Decision.SET} == {"g", "h"}
    accepted, _ = from_topic(others=GHOST, asked={"policies": Policies(waivers=(Waiver("listing-agrees", "ghost"),))})
    assert accepted.is_clean()
    # It is there: no name that nobody has.
    named, _ = from_topic(others=GHOST, asked=filtered(groups=["ghost"]))
    assert results(named, "named-groups-exist") == {} and "ghost" in results(named, "listing-agrees")
    for filters in (filtered(exclude_groups=["ghost"]), filtered(topics=["u"])):
        made, _ = from_topic(others=GHOST, asked=filters)
        assert set(results(made, "listing-agrees").values()) == {(Level.PASS, Level.PASS)}


@pytest.mark.parametrize(("kind", "told"), [("streams", False), ("share", False), ("other", True), ("unknown", True)])
def test_a_group_of_a_kind_that_listings_leave_out_has_a_check_of_its_own(kind, told):
    made, _ = from_topic(others=GHOST, facts=FakeGroupFacts({"g": "consumer", "h": "consumer", "ghost": kind}))
    assert ("ghost" in results(made, "listing-agrees")) is told
    # Nor is it counted among those that are listed.
    said = [check.seen for check in made.header.checks if check.check == "listing-agrees" and check.subject == "A"]
    assert said == ([] if told else ["2 groups, all listed"])


def test_a_newest_record_that_nobody_can_read_blocks_its_group_and_never_stands_for_the_one_before():
    made, _ = from_topic(undecodable={"g": {T1: "unknown-version"}})
    (found,) = [c for c in made.header.checks if c.check == "commit-undecodable"]
    assert (found.subject, found.level, found.scope) == ("g", Level.BLOCK, Scope.GROUP)
    assert "t-1 (unknown-version)" in found.seen and "--commits-from admin" in found.todo
    assert found.check in NEVER_ACCEPTABLE
    rows = rows_of(made)
    assert rows["g", "t", 0][0] is Decision.BLOCK and ("g", "t", 1) not in rows
    assert rows["h", "u", 0][0] is Decision.SET
    of_nobody_knows_whom, _ = from_topic(undecodable_keys=2)
    assert results(of_nobody_knows_whom, "listing-agrees") == {"A": (Level.NOT_VISIBLE, Level.BLOCK)}
    assert {row.decision for row in of_nobody_knows_whom.rows} == {Decision.BLOCK}


def test_every_group_of_a_partition_with_an_open_transaction_has_one_pending():
    scene = world()
    scene[0].watermarks[TopicPartition(OFFSETS_TOPIC, partition_of("g", PARTITIONS))] = 41
    assert partition_of("g", PARTITIONS) != partition_of("h", PARTITIONS)
    made, _ = from_topic(scene)
    assert results(made, "pending-transactions") == {"g": (Level.BLOCK, Level.BLOCK)}
    assert results(made, "listing-agrees") == {"A": (Level.NOT_VISIBLE, Level.WARN)}
    assert {row.group for row in made.rows if row.decision is Decision.BLOCK} == {"g"}


def test_a_topic_that_is_not_visible_or_may_not_be_read_names_the_other_way():
    source, target, mirror = world()
    with pytest.raises(ClusterError, match="does not show __consumer_offsets") as hidden:
        take_survey(
            request(), Clusters(source, target, mirror, offsets_topic=FakeTopic(source)), FakeClock(), NoProgress()
        )
    refused = FakeTopic(source, failure=ClusterError("It may not be read.", "Grant READ."))
    with pytest.raises(ClusterError, match="may not be read") as error:
        planned(source, target, mirror, refused)
    assert "--commits-from admin" in hidden.value.todo
    assert error.value.todo.startswith("Grant READ. ") and "--commits-from admin" in error.value.todo


@pytest.mark.parametrize(("as_of_ms", "passes"), [(None, 2), (1, 3)])
def test_more_than_may_be_fetched_is_refused_before_it_is_read(as_of_ms, passes):
    source, target, mirror = world()
    topic = FakeTopic(source, as_of_ms=as_of_ms)
    cost, commits = PARTITIONS * 37 * 110 * passes, CommitsSource(reads_topic=True, as_of_ms=as_of_ms)
    with pytest.raises(Refused, match="--max-fetch allows"):
        planned(source, target, mirror, topic, limits=Limits(0, cost - 1), commits=commits)
    assert not topic.pins
    planned(source, target, mirror, topic, limits=Limits(0, cost), commits=commits)
    assert topic.pins


def test_it_waits_for_what_reads_records_before_it_pins():
    source, target, mirror = world()
    source.ranges[TopicPartition(OFFSETS_TOPIC, 0)] = LogRange(3, 40)
    order = []
    source.on_call = order.append

    class Late(Clusters):
        def wait_for_records(self):
            order.append("ready")

    clusters = Late(source, target, mirror, starts_late=True, offsets_topic=FakeTopic(source))
    take_survey(request(), clusters, FakeClock(), NoProgress())
    assert order.index("ready") < order.index("high_watermarks")


def test_where_the_topic_is_compacted_while_it_is_read_it_is_pinned_anew_until_it_happens_too_often():
    made, topic = from_topic(compactions=ATTEMPTS - 1)
    assert [pin.logs[partition_of("g", PARTITIONS)].end for pin in topic.pins] == [40, 41, 42]
    assert [(r.side, r.partition, r.start, r.end) for r in made.header.pinned if r.topic == OFFSETS_TOPIC] == [
        ("source", number, 3, 42) for number in range(PARTITIONS)
    ]
    assert {row.source_committed for row in made.rows if row.key == ("g", "t", 0)} == {57}
    with pytest.raises(ClusterError, match="compacted while it was read") as refused:
        from_topic(compactions=ATTEMPTS)
    assert "--commits-from admin" in refused.value.todo


@pytest.mark.parametrize("reader", ["admin", "topic"])
def test_a_plan_names_commits_without_an_offset_for_what_they_are(reader: str) -> None:
    source, target, mirror = world()
    source.offsets["g"] = CommitTable([T0], [60], without_offset=[T1])
    source.offsets["h"] = CommitTable((), (), without_offset=[U0])
    made = planned(source, target, mirror, FakeTopic(source) if reader == "topic" else None)
    found = {c.subject: c for c in made.header.checks if c.check == "partitions-never-committed"}
    assert found["g"].seen == "a commit without an offset (-1) on t-1"
    assert found["h"].seen == "a commit without an offset (-1) on u-0"
    assert "auto.offset.reset decides" in found["h"].todo
    assert not [c for c in made.header.checks if c.check in ("named-groups-exist", "commit-undecodable")]
    assert {row.key for row in made.rows} == {("g", "t", 0)}


# --- plans of an earlier time -----------------------------------------------------------------------------


def test_rows_translate_the_commits_of_then_and_hold_those_of_now_of_groups_that_are_gone_since_too():
    made, _ = from_topic(as_of_ms=1, then=THEN | {"deleted": {T0: Commit(30)}})
    assert [(*row.key, row.source_committed, row.live_source_offset, row.target_offset) for row in made.rows] == [
        ("deleted", "t", 0, 30, None, 30),
        ("g", "t", 0, 20, 55, 20),
        ("g", "t", 1, 60, 60, 60),
        ("h", "u", 0, 30, 100, 30),
    ]
    assert made.is_clean() and {row.decision for row in made.rows} == {Decision.SET}
    assert results(made, "listing-agrees") == {"A": (Level.PASS, Level.PASS)}
    assert results(made, "commits-moving") == {}, "they are those of now"
    now, _ = from_topic()
    assert {row.live_source_offset for row in now.rows} == {None}
    assert another_log(now) == {"A": (Level.NOT_VISIBLE, Level.PASS)} and now.is_clean()


OLD, NEW = "id-of-the-old-topic", "id-of-source-t"


def another_log(made: Plan) -> dict[str, tuple[Level, Level]]:
    return results(made, "commit-of-another-log")


@pytest.mark.parametrize("live", [20, 55], ids=["the same offset now", "another offset now"])
def test_a_commit_of_then_on_a_topic_that_was_created_anew_since_blocks(live):
    """Its offset counts the old topic's records, whatever has been committed on the new one since."""
    scene = world()
    scene[0].commit("g", "t", 0, live)
    made_on = {"g": {T0: CommitTopic(20, OLD), T1: CommitTopic(60, NEW)}, "h": {U0: CommitTopic(30, "id-of-source-u")}}
    of_now = GroupRecord(GroupKind.CLASSIC, "consumer", made_on={T0: CommitTopic(live, NEW)})
    facts = FakeGroupFacts(commits={"g": of_now})
    made, _ = from_topic(scene, facts, as_of_ms=1, then=THEN, then_made_on=made_on)
    assert rows_of(made)["g", "t", 0] == (Decision.BLOCK, 20, "commit-of-another-log")
    assert rows_of(made)["h", "u", 0][0] is Decision.SET
    assert another_log(made) == {"g/t/0": (Level.BLOCK, Level.BLOCK), "2 commits": (Level.PASS, Level.PASS)}
    (block,) = [c for c in made.header.checks if c.subject == "g/t/0" and c.level is Level.BLOCK]
    assert OLD in block.seen and NEW in block.seen


def test_of_a_commit_of_then_without_a_topic_id_nobody_knows_the_log_and_it_blocks():
    """Brokers before Kafka 4.1 store none, and the log that it was made on may be gone since."""
    made, _ = from_topic(as_of_ms=1, then=THEN, then_made_on={"g": {T1: CommitTopic(60, NEW)}})
    hidden = (Level.NOT_VISIBLE, Level.BLOCK)
    assert another_log(made) == {"g/t/0": hidden, "h/u/0": hidden, "1 commit": (Level.PASS, Level.PASS)}
    assert {row.decision for row in made.rows} == {Decision.BLOCK} and not made.is_clean()
    (block,) = [c for c in made.header.checks if c.subject == "g/t/0" and c.check == "commit-of-another-log"]
    assert "--accept commit-of-another-log:GROUP/TOPIC/PARTITION" in block.todo and "4.1" in block.seen
    accepted = {"policies": Policies(waivers=(Waiver("commit-of-another-log"),))}
    made, _ = from_topic(as_of_ms=1, then=THEN, then_made_on={}, asked=accepted)
    assert made.is_clean() and {row.target_offset for row in made.rows} == {20, 60, 30}


WITHOUT_T1 = {"g": {T0: Commit(20)}, "h": {U0: Commit(30)}}


def test_what_compaction_may_have_taken_is_a_row_that_blocks_and_never_the_commit_of_now():
    made, _ = from_topic(as_of_ms=1, then=WITHOUT_T1, gone=frozenset({GroupPartition("g", "t", 1)}))
    rows = {row.key: row for row in made.rows}
    lost = rows["g", "t", 1]
    assert (lost.decision, lost.reason, lost.source_committed) == (Decision.BLOCK, "commit-as-of-gone", None)
    assert lost.live_source_offset == 60 and rows["g", "t", 0].decision is Decision.BLOCK
    assert results(made, "commit-as-of-gone") == {"g/t/1": (Level.BLOCK, Level.BLOCK)}
    counts = made.header.counts
    assert (counts["commits_read"], counts["rows"], counts["uncommitted_added"]) == (2, 3, 1)


def test_where_there_was_no_commit_then_and_there_is_one_now_a_reviewer_decides():
    none_then = frozenset({GroupPartition("g", "t", 1), GroupPartition("g", "gone", 0)})
    then = {"as_of_ms": 1, "then": WITHOUT_T1, "none_then": none_then}
    made, _ = from_topic(**then)
    without = {row.key: row.reason for row in made.rows if row.source_committed is None}
    assert without == {("g", "t", 1): "no-commit-as-of"}
    told = "\n".join(table(made, made.rows, Page("", 200)))
    assert "2 read + 1 with no commit, added = 3 rows" in told and "never committed" not in told
    chosen = Policies(untranslatable_by_reason={"no-commit-as-of": Untranslatable.EARLIEST})
    made, _ = from_topic(**then, asked={"policies": chosen})
    assert made.is_clean() and rows_of(made)["g", "t", 1][:2] == (Decision.SET, 0)


def test_filters_take_what_is_of_then_as_well():
    gone = frozenset({GroupPartition("h", "u", 0)})
    made, _ = from_topic(as_of_ms=1, then=THEN, gone=gone, asked=filtered(topics=["t"]))
    assert {row.key for row in made.rows} == {("g", "t", 0), ("g", "t", 1)}
    assert made.header.counts["filtered:topic"] == 1
