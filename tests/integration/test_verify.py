"""`verify` on a real broker: an offset that nobody of ours has set, or consumed, is never certified."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer, TopicPartition

from migrate.model import Decision, Grade, Level, Method, Row, Scope
from migrate.plan.plan import Plan
from migrate.row_table import PlanRows
from tests.builders import make_check, make_untranslated
from tests.integration.cli import CommandLine, run
from tests.integration.clusters import CALL_SECONDS, QUIET, commit, member, subscribed
from tests.integration.madeplan import ALIAS, made_plan, made_row, options_for, saved
from tests.lab.cluster import Cluster
from tests.lab.waiting import wait_until

TOPIC, COPY, PAIRS = "orders", f"{ALIAS}.orders", "pairs"
NAME = "c.plan"
_numbers = count(1)


@dataclass(frozen=True)
class Ground:
    """A broker with one topic, and the commands against it in a folder of their own."""

    cluster: Cluster
    commands: CommandLine
    number: int

    def group(self, name: str) -> str:
        return f"{name}{self.number}"

    def plan(self, *rows: Row, **header: Any) -> Plan:
        """Save a plan of these rows; its header is that of this cluster."""
        empty = made_plan(self.cluster.bootstrap, TOPIC, {}, 1_700_000_000_000 + self.number)
        listed = tuple(sorted(rows, key=lambda row: row.key))
        made = Plan(replace(empty.header, **header), PlanRows.of(listed))
        saved(made, self.commands.folder / NAME)
        return made

    def move(self, group: str, offset: int, partition: int = 0, topic: str = TOPIC) -> None:
        """Commit for a group without members, as MM2's group sync does."""
        commit(self.cluster.bootstrap, {group: {(f"{ALIAS}.{topic}", partition): offset}})

    @contextmanager
    def consumer(self, group: str, offset: int, topic: str = TOPIC) -> Iterator[None]:
        """A member of the group that has come to this offset on partition 0."""
        copy = f"{ALIAS}.{topic}"
        with subscribed(self.cluster.bootstrap, group, [copy]) as reader:
            wait_until(lambda: reader.poll(0.1) or reader.assignment(), CALL_SECONDS, f"a member of {group}")
            reader.commit(offsets=[TopicPartition(copy, 0, offset)], asynchronous=False)
            yield

    def verify(self, exit_code: int, *options: str, name: str = NAME) -> str:
        """What verify says, on one line."""
        return " ".join(self.commands.verify(name, *options).expect(exit_code).stdout.split())


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster("verified", tmp_path_factory.mktemp("verified"))
    try:
        cluster.start()
        cluster.create_topic(COPY, 2)
        wait_until(lambda: takes_commits(cluster), CALL_SECONDS, "a coordinator that takes commits")
        yield cluster
    finally:
        cluster.kill()


@pytest.fixture
def ground(cluster: Cluster, tmp_path: Path) -> Ground:
    return Ground(cluster, CommandLine(tmp_path, options_for(tmp_path, cluster.bootstrap), warm=True), next(_numbers))


def test_a_group_that_somebody_moved_is_not_verified_and_a_finding_outranks_what_was_left_out(
    ground: Ground,
) -> None:
    fine, moved = ground.group("fine"), ground.group("moved")
    ground.plan(made_row(fine, TOPIC, 0, 60, None), made_row(moved, TOPIC, 0, 60, None))
    ground.move(moved, 95)
    ground.commands.execute(NAME).expect(3)
    told = ground.verify(1)
    assert "NOT AS PLANNED: 2 of 2 offsets" in told and "no members" in told
    ground.commands.execute(NAME, "--allow-partial").expect(4)
    told = ground.verify(1)
    assert "NOT AS PLANNED: 1 of 2 offsets" in told
    assert f"{moved} {COPY}:0: is at 95, 35 beyond the planned 60" in told
    assert "the journal holds no write to it" in told
    # Neither the user's word nor a consumer that came since makes an offset ours that the journal says was never set.
    ground.verify(1, "--consumers-ran")
    with member(ground.cluster.bootstrap, moved, COPY):
        ground.verify(1)
    assert "VERIFIED: 1 offset of 1 group" in ground.verify(0, "--group", fine)
    # The journal speaks under the name that the plan was applied by, too.
    (ground.commands.folder / NAME).rename(ground.commands.folder / "renamed.plan")
    assert "the journal holds no write to it" in ground.verify(1, "--consumers-ran", name="renamed.plan")


def test_ahead_is_good_while_consumers_run_and_then_only_if_the_user_says_that_they_have(ground: Ground) -> None:
    group = ground.group("reader")
    ground.plan(made_row(group, TOPIC, 0, 60, None), made_row(group, TOPIC, 1, 61, None))
    ground.commands.execute(NAME).expect(0)
    with ground.consumer(group, 95):
        told = ground.verify(0)
        assert "1 ahead, 1 equal" in told and "moved on by 35" in told and "1 member" in told
        assert "set and read back" in told
    assert "no members" in ground.verify(1)
    arguments = ("verify", NAME, *ground.commands.clusters)
    environment = {"MM2_MIGRATE_CONSUMERS_RAN": "1"}
    run(*arguments, folder=ground.commands.folder, environment=environment).expect(1)
    said = ground.verify(0, "--consumers-ran")
    assert "--consumers-ran" in said and "moved on by 35" in said
    # What somebody writes after a good apply looks the same to the journal: it is never enough alone.
    ground.move(group, 99, 1)
    assert f"{COPY}:1: is at 99" in ground.verify(1)


def test_rows_that_were_not_to_be_written_are_named_and_keep_the_rest_from_being_all(ground: Ground) -> None:
    fine, blocked, live, skipped = (ground.group(name) for name in ("fine", "blocked", "live", "skipped"))
    ground.plan(
        made_row(fine, TOPIC, 0, 60, None),
        made_row(blocked, TOPIC, 0, 60, None)._replace(decision=Decision.BLOCK, reason="target-group-empty"),
        made_row(live, TOPIC, 0, 60, None),
        made_row(live, TOPIC, 1, 60, None),
        made_row(skipped, TOPIC, 0, 60, None),
        make_untranslated(Decision.SKIP, "unreplicated", skipped, TOPIC, 1, target_log_start=0, target_log_end=0),
    )
    with member(ground.cluster.bootstrap, live, COPY):
        ground.commands.execute(NAME, "--allow-partial").expect(4)
    told = ground.verify(4)
    assert told.startswith("VERIFIED: 2 offsets of 2 groups, BUT 4 rows of 3 groups were not written")
    assert f"{blocked}: 1 row blocked in the plan: target-group-empty" in told
    assert f"{live}: 2 rows left out by apply" in told
    assert f"{skipped}: 1 row skipped" in told and "unreplicated" in told
    document = json.loads(ground.commands.verify(NAME, "--format", "json").expect(4).stdout)
    assert {(row["group"], row["why"]) for row in document["left_out"]} == {
        (blocked, "blocked"), (live, "left-out"), (skipped, "skipped"),
    }  # fmt: skip
    # Only what is selected counts.
    assert "BUT" not in ground.verify(0, "--group", fine)


def test_a_block_that_has_no_row_keeps_a_plan_from_being_verified_whole(ground: Ground) -> None:
    fine = ground.group("fine")
    block = make_check("named-groups-exist", "biling", scope=Scope.GROUP, level=Level.BLOCK, seen="no such group")
    waived = replace(block, subject="old", level=Level.WARN, counts_as=Level.WARN, accepted=True)
    ground.plan(made_row(fine, TOPIC, 0, 60, None), checks=(block, waived))
    ground.commands.execute(NAME, "--allow-partial")
    told = ground.verify(4)
    assert "VERIFIED: 1 offset of 1 group, BUT 1 block of the plan is open" in told
    assert "named-groups-exist biling: no such group" in told and "old" not in told


def test_a_kept_row_that_somebody_moved_is_a_finding(ground: Ground) -> None:
    group = ground.group("kept")
    ground.move(group, 60)
    kept = made_row(group, TOPIC, 0, 60, 60)._replace(decision=Decision.KEEP, reason="already-there")
    ground.plan(kept, made_row(group, TOPIC, 1, 61, None))
    ground.commands.execute(NAME).expect(0)
    ground.verify(0)
    ground.move(group, 70)
    assert f"{group} {COPY}:0: is at 70, 10 beyond the planned 60" in ground.verify(1)


def test_a_plan_that_was_rolled_back_is_never_verified(ground: Ground) -> None:
    group = ground.group("back")
    ground.move(group, 10)
    ground.plan(made_row(group, TOPIC, 0, 60, 10))
    ground.commands.execute(NAME).expect(0)
    ground.commands.undo(NAME).expect(0)
    assert "ROLLED BACK" in ground.verify(1)
    ground.move(group, 60)
    assert "ROLLED BACK" in ground.verify(1)


def test_an_undo_that_was_refused_because_consumers_moved_on_is_not_verified(ground: Ground) -> None:
    group = ground.group("undo")
    ground.move(group, 10)
    ground.plan(made_row(group, TOPIC, 0, 60, 10))
    ground.commands.execute(NAME).expect(0)
    ground.commands.rollback(NAME, "--out", "undo.plan").expect(0)
    with ground.consumer(group, 95):
        ground.commands.execute("undo.plan").expect(3)
        told = ground.verify(1, name="undo.plan")
        assert "is at 95, 85 beyond the planned 10" in told
    ground.move(group, 60)
    ground.commands.execute("undo.plan").expect(0)
    ground.verify(0, name="undo.plan")


def test_records_are_compared_at_the_committed_offset_and_the_planned_one_is_beside_it(ground: Ground) -> None:
    """One broker is both clusters here: a log, and the copy that a mirror would have made of it."""
    group, cluster = ground.group("proof"), ground.cluster
    now_ms = int(time.time() * 1000)  # old records are gone as soon as the broker looks
    for topic in (PAIRS, f"{ALIAS}.{PAIRS}"):
        cluster.create_topic(topic, 1)
        write_alike(cluster, topic, 100, now_ms)
    (ground.commands.folder / "source.properties").write_text(f"bootstrap.servers={cluster.bootstrap}\n")
    planned = made_row(group, PAIRS, 0, 60, None)
    proven = {"grade": Grade.EXACT, "method": Method.MATCH, "equality": "all", "why": "proven", "rereads_at_most": 0}
    logs = {"source_log_start": 0, "source_log_end": 100, "target_log_start": 0, "target_log_end": 100}
    ground.plan(planned._replace(source_committed=60, **proven, **logs))

    def shown(exit_code: int) -> dict[str, Any]:
        ran = ground.commands.verify(NAME, "--records", "--format", "json").expect(exit_code)
        (record,) = json.loads(ran.stdout)["records"]
        return dict(record)

    ground.move(group, 95, topic=PAIRS)
    ground.commands.execute(NAME).expect(3)
    record = shown(1)
    assert record["verdict"] == "beyond"
    assert [record[side]["record"]["offset"] for side in ("source", "target", "planned")] == [60, 95, 60]
    prints = [record[side]["record"]["fingerprint"] for side in ("source", "target", "planned")]
    assert prints[0] == prints[2] != prints[1]
    assert "RECORDS NOT AS PLANNED: 1 of 1 row" in ground.verify(1, "--records")

    ground.move(group, 55, topic=PAIRS)
    record = shown(1)
    assert (record["verdict"], record["found_at"], record["records_before"]) == ("different", 60, 5)

    with ground.consumer(group, 95, PAIRS):
        record = shown(0)
    assert record["verdict"] == "moved-on" and "The same record." in record["sentence"]

    ground.move(group, 60, topic=PAIRS)
    record = shown(0)
    assert record["verdict"] == "equal" and record["planned"] is None


def write_alike(cluster: Cluster, topic: str, records: int, now_ms: int) -> None:
    """The same records on every topic, down to their time."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, **QUIET})
    for number in range(records):
        producer.produce(topic, f"v{number}", "k", 0, timestamp=now_ms + number)
    assert producer.flush(CALL_SECONDS) == 0


def takes_commits(cluster: Cluster) -> bool:
    """A young broker has no coordinator yet."""
    try:
        commit(cluster.bootstrap, {"first": {(COPY, 0): 1}})
    except (AssertionError, KafkaException):
        return False
    return True
