"""Groups moved to other names on B, and back: what stands under either name, told by Kafka's own Java Admin."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from tests.integration.cli import CommandLine, kcg_lines
from tests.integration.clusters import CALL_SECONDS, QUIET, create_topic
from tests.integration.javajudge import HeldByGroup, JavaJudge
from tests.lab.lab import Lab

RECORDS = 100  # of each partition
THERE, BACK = "there.plan", "back.plan"


NEW_NAMES = {"orders": "eu.orders", "views": "eu.views", "a": "b", "b": "a", "plain": "plain"}


@dataclass(frozen=True, repr=False)
class Ground:
    """A topic, copied in full, groups on both sides, and who tells what each side holds of them."""

    commands: CommandLine
    suffix: str
    topic: str
    copy: str
    source: JavaJudge
    target: JavaJudge

    def group(self, name: str) -> str:
        return f"{name}-{self.suffix}"

    def held(self, judge: JavaJudge) -> HeldByGroup:
        return {group: held for group, held in judge.held().items() if group.endswith(self.suffix) and held}


@pytest.fixture(scope="module")
def ground(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
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
        yield Ground(commands, suffix, topic, copy, source, target)


def test_groups_move_to_new_names_with_their_metadata_and_back_and_nothing_is_written_under_an_old_one(
    ground: Ground,
) -> None:
    commands, group, copy, mine = ground.commands, ground.group, ground.copy, ("--group", f".*{ground.suffix}")
    on_a, before = ground.held(ground.source), ground.held(ground.target)
    moved = {
        group(new): {(copy, p): commit for (_, p), commit in on_a[group(old)].items()} for old, new in NEW_NAMES.items()
    }

    commands.plan(THERE, *mine, "--group-map", "names.csv").expect(0)
    document = commands.document(THERE)
    named = {row["group"]: row["target_group"] for row in document["rows"]}
    assert named == {group(old): group(new) if old != new else "" for old, new in NEW_NAMES.items()}
    told = [c for c in document["checks"] if c["check"] == "group-under-old-name" and c["level"] == "warn"]
    assert [c["subject"] for c in told] == [group("orders")]
    assert f"{group('orders')} -> {group('eu.orders')}  SET" in commands.show(THERE, "table")
    priors = {(row["group"], row["partition"]): row["target_prior"] for row in document["rows"]}
    assert {place: prior for place, prior in priors.items() if prior is not None} == {(group("views"), 0): 3}
    # Other tools are told the target's names.
    assert kcg_lines(commands.show(THERE, "kcg")) == {
        (new, *place): offset for new, held in moved.items() for place, (offset, _) in held.items()
    }

    commands.execute(THERE).expect(0)
    applied = ground.held(ground.target)
    assert applied == before | moved and applied[group("orders")] == {(copy, 0): (7, "not ours")}
    assert ground.held(ground.source) == on_a, "the source is never written"
    (journal,) = commands.folder.glob(f"{THERE}.*.journal.jsonl")
    events = [json.loads(line) for line in journal.read_text().splitlines()]
    backups = {event["group"]: event.get("target_group") for event in events if event["event"] == "backup"}
    assert backups[group("orders")] == group("eu.orders") and backups[group("plain")] is None
    proof = json.loads(commands.verify(THERE, "--records", "--format", "json").expect(0).stdout)
    assert proof["counts"] == {"equal": 7} and {r["verdict"] for r in proof["records"]} == {"equal"}

    # Its consumers have read on, on B.
    ground.target.commit({group("eu.orders"): {(copy, 0): (70, "m2")}})
    commands.plan(BACK, "--failback", *mine, "--group-map", THERE, "--exclude-group", group("orders")).expect(0)
    rows = commands.document(BACK)["rows"]
    assert {row["group"]: row["target_group"] or row["group"] for row in rows} == {
        group(new): group(old) for old, new in NEW_NAMES.items()
    }
    commands.execute(BACK).expect(0)
    went_on = {(ground.topic, 0): (70, "m2"), (ground.topic, 1): (60, "")}
    assert ground.held(ground.source) == on_a | {group("orders"): went_on}, "and A has no group with B's name"

    commands.undo(THERE, "--moved", "restore").expect(0)
    assert ground.held(ground.target) == before
