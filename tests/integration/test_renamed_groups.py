"""Groups moved to other names on B, and back: what stands under either name, told by Kafka's own Java Admin."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from tests.integration.cli import CommandLine, Ran, kcg_lines
from tests.integration.clusters import CALL_SECONDS, QUIET, create_topic
from tests.integration.javajudge import HeldByGroup, JavaJudge
from tests.lab.lab import Lab

RECORDS = 100  # of each partition
THERE, BACK = "there.plan", "back.plan"


@dataclass(frozen=True, repr=False)
class Renamed:
    """A way there and back as it went. `a_*` and `b_*` are what the two clusters held at that moment."""

    commands: CommandLine
    suffix: str
    topic: str
    copy: str
    planned: Ran
    document: dict[str, Any]
    kcg: str
    applied: Ran
    verified: Ran
    back: Ran
    back_document: dict[str, Any]
    back_applied: Ran
    undone: Ran
    a_before: HeldByGroup
    b_before: HeldByGroup
    b_applied: HeldByGroup
    a_applied: HeldByGroup
    a_back: HeldByGroup
    b_undone: HeldByGroup
    target: JavaJudge

    def group(self, name: str) -> str:
        return f"{name}-{self.suffix}"

    def on_b(self, name: str) -> HeldByGroup:
        """What is to stand on B under a name after the apply."""
        committed = {"orders": "eu.orders", "views": "eu.views", "a": "b", "b": "a", "plain": "plain"}[name]
        held = self.a_before[self.group(name)]
        return {self.group(committed): {(self.copy, p): commit for (_, p), commit in held.items()}}


@pytest.fixture(scope="module")
def way(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Renamed]:
    if lab.external:
        pytest.skip("the judge speaks to the lab's clusters only, and the environment names others")
    suffix = uuid4().hex[:8]
    topic = f"named-{suffix}"
    copy = lab.options.target_topic(topic)
    create_topic(lab.source_bootstrap, topic, 2)
    producer = Producer({"bootstrap.servers": lab.source_bootstrap, **QUIET})
    for number in range(2 * RECORDS):
        producer.produce(topic, f"{number}", f"k{number}", number % 2)
    assert producer.flush(CALL_SECONDS) == 0
    commands = CommandLine.of(lab, tmp_path_factory.mktemp("renamed"), warm=True)
    (commands.folder / "names.csv").write_text(
        f"source_group,target_group\na-{suffix},b-{suffix}\nb-{suffix},a-{suffix}\n"
        f"plain-{suffix},plain-{suffix}\nregex:(.*)-{suffix},eu.\\1-{suffix}\n"
    )
    with ExitStack() as stack:
        source, target = (stack.enter_context(JavaJudge(cluster)) for cluster in (lab.source, lab.target))

        def held(judge: JavaJudge) -> HeldByGroup:
            return {group: held for group, held in judge.held().items() if group.endswith(suffix)}

        source.commit(
            {
                f"orders-{suffix}": {(topic, 0): (40, "m"), (topic, 1): (60, "")},
                f"views-{suffix}": {(topic, 0): (10, ""), (topic, 1): (99, "")},
                f"a-{suffix}": {(topic, 0): (11, "")},
                f"b-{suffix}": {(topic, 0): (22, "")},
                f"plain-{suffix}": {(topic, 1): (50, "")},
            }
        )
        # A group with an old name that is nobody's here, and one that has read on B before.
        target.commit(
            {f"orders-{suffix}": {(copy, 0): (7, "not ours")}, f"eu.views-{suffix}": {(copy, 0): (3, "before")}}
        )
        lab.mirror.wait_until_replicated([topic])
        a_before, b_before, mine = held(source), held(target), ("--group", f".*{suffix}")
        planned = commands.plan(THERE, *mine, "--group-map", "names.csv")
        applied, b_applied, a_applied = commands.execute(THERE), held(target), held(source)
        verified = commands.verify(THERE, "--records", "--format", "json")
        # Its consumers have read on, on B.
        target.commit({f"eu.orders-{suffix}": {(copy, 0): (70, "m2")}})
        on_way_back = ("--failback", *mine, "--group-map", THERE)
        back = commands.plan(BACK, *on_way_back, "--exclude-group", f"orders-{suffix}")
        back_applied, a_back = commands.execute(BACK), held(source)
        undone = commands.undo(THERE, "--moved", "restore")
        yield Renamed(
            commands=commands, suffix=suffix, topic=topic, copy=copy,
            planned=planned, document=commands.document(THERE), kcg=commands.show(THERE, "kcg"),
            applied=applied, verified=verified, target=target,
            back=back, back_document=commands.document(BACK), back_applied=back_applied, undone=undone,
            a_before=a_before, b_before=b_before, b_applied=b_applied, a_applied=a_applied,
            a_back=a_back, b_undone=held(target),
        )  # fmt: skip


NAMES = ("orders", "views", "a", "b", "plain")


def test_the_plan_says_both_names_and_warns_of_the_old_one_that_b_has_too(way: Renamed) -> None:
    way.planned.expect(0)
    named = {row["group"]: row["target_group"] for row in way.document["rows"]}
    assert named == {
        way.group("orders"): way.group("eu.orders"), way.group("views"): way.group("eu.views"),
        way.group("a"): way.group("b"), way.group("b"): way.group("a"), way.group("plain"): "",
    }  # fmt: skip
    told = [c for c in way.document["checks"] if c["check"] == "group-under-old-name" and c["level"] == "warn"]
    assert [c["subject"] for c in told] == [way.group("orders")]
    assert f"{way.group('orders')} -> {way.group('eu.orders')}  SET" in way.commands.show(THERE, "table")


def test_the_prior_offset_is_that_of_the_new_name(way: Renamed) -> None:
    priors = {(row["group"], row["partition"]): row["target_prior"] for row in way.document["rows"]}
    assert {place: prior for place, prior in priors.items() if prior is not None} == {(way.group("views"), 0): 3}


def test_other_tools_are_told_the_targets_names(way: Renamed) -> None:
    on_b = [group for name in NAMES for group in way.on_b(name).items()]
    assert kcg_lines(way.kcg) == {
        (group, *place): offset for group, held in on_b for place, (offset, _) in held.items()
    }


def test_offsets_stand_under_the_new_names_metadata_too_and_nothing_was_written_under_an_old_one(way: Renamed) -> None:
    way.applied.expect(0)
    wanted = dict(way.b_before)
    for name in NAMES:
        wanted |= way.on_b(name)
    assert way.b_applied == wanted
    assert way.b_applied[way.group("orders")] == {(way.copy, 0): (7, "not ours")}
    assert way.a_applied == way.a_before, "the source is never written"


def test_the_journal_says_the_targets_name_beside_each_backup(way: Renamed) -> None:
    (journal,) = way.commands.folder.glob(f"{THERE}.*.journal.jsonl")
    events = [json.loads(line) for line in journal.read_text().splitlines()]
    backups = {event["group"]: event.get("target_group") for event in events if event["event"] == "backup"}
    assert backups[way.group("orders")] == way.group("eu.orders") and backups[way.group("plain")] is None


def test_verify_reads_the_new_names_and_each_next_record_is_the_same(way: Renamed) -> None:
    document = json.loads(way.verified.expect(0).stdout)
    assert document["counts"] == {"equal": 7} and {r["verdict"] for r in document["records"]} == {"equal"}


def test_failback_maps_back_by_the_plans_own_rows(way: Renamed) -> None:
    way.back.expect(0)
    named = {row["group"]: row["target_group"] or row["group"] for row in way.back_document["rows"]}
    assert named == {held: way.group(name) for name in NAMES for held in way.on_b(name)}
    way.back_applied.expect(0)
    moved = {(way.topic, 0): (70, "m2"), (way.topic, 1): (60, "")}
    assert way.a_back == way.a_before | {way.group("orders"): moved}, "and A has no group with B's name"


def test_rollback_brings_back_what_stood_under_the_new_names_and_touches_no_old_one(way: Renamed) -> None:
    way.undone.expect(0)
    assert {group: held for group, held in way.b_undone.items() if held} == way.b_before


@pytest.mark.long
def test_a_dry_run_writes_under_neither_name_and_status_looks_under_the_new_ones(way: Renamed) -> None:
    """After all of this module but one: it applies again."""
    mine = ("--group", f".*{way.suffix}", "--group-map", "names.csv")
    way.commands.plan("again.plan", *mine, "--rewind", "set").expect(0)
    before = way.target.held()
    way.commands.apply("again.plan").expect(0)
    assert way.target.held() == before
    way.commands.execute("again.plan").expect(0)
    status = way.commands.run("status", *way.commands.clusters, *mine, "--settle", "2", "--format", "json")
    told = {g["group"]: (g["target_group"], g["target_offsets"]) for g in json.loads(status.stdout)["groups"]}
    assert told[way.group("views")] == (way.group("eu.views"), 2)
    doctor = way.commands.run("doctor", *way.commands.clusters, *mine)
    assert "rights for apply on target" in doctor.stdout, str(doctor)


@pytest.mark.long
def test_on_the_way_back_a_group_with_the_old_name_is_refused_beside_the_renamed_one(way: Renamed) -> None:
    """Last of this module: both are on B by now."""
    options = ("--failback", "--group", f".*{way.suffix}", "--group-map", THERE)
    said = " ".join(way.commands.plan("confused.plan", *options).expect(2).stderr.split())
    assert f"groups {way.group('eu.orders')} and {way.group('orders')} would both be {way.group('orders')}" in said
