"""Audits on real brokers with a real MM2 that was killed and lost records, judged by the identities of all records.

One story: all is copied, but twice in part; then a topic is created anew while MM2 is away, so that it passes over the
new records, strangers write to a copy, and the target's retention takes copies. Of a plan, only the group that commits
before what is lost misses it.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from migrate.plan.file import write_plan
from tests.builders import make_plan, make_row
from tests.extras.audit.integration.copies import write_anew
from tests.integration.cli import CommandLine, Ran
from tests.integration.clusters import READ_SECONDS, Partition, delete_before, portrait
from tests.integration.flows import FLOWS, Flow, copied_through_kills
from tests.integration.oracle import Truth, best, missing
from tests.integration.running import started
from tests.integration.scene import Scene
from tests.lab.lab import Lab
from tests.lab.waiting import wait_until
from tests.seeds import new_seed

TAKEN = 100


@dataclass(frozen=True)
class Audited:
    """One run, its document, what it named, and the truth of that moment."""

    ran: Ran
    document: Mapping[str, Any]
    named: Mapping[str, set[tuple[str, int, int]]]
    truth: Mapping[Partition, Truth]

    def topic(self, name: str) -> Mapping[str, Any]:
        return next(topic for topic in self.document["topics"] if topic["topic"] == name)


def audit(commands: CommandLine, scene: Scene, state: str, *options: str) -> Audited:
    only = options if "--plan" in options else ("--topic", f".*-{scene.suffix}", *options)
    ran = commands.run("audit", "run", *commands.clusters, *only, "--state", state, "--format", "json")
    assert ran.exit_code in (0, 1, 4), ran.stderr
    named: dict[str, set[tuple[str, int, int]]] = {}
    for line in (commands.folder / state / "found.jsonl").read_text().splitlines():
        each = json.loads(line)
        named.setdefault(each["category"], set()).add((each["topic"], each["partition"], each["offset"]))
    return Audited(ran, json.loads(ran.stdout), named, scene.truth())


def expected(truth: Truth) -> Counter[str]:
    """What identities say of a partition of which nothing was removed on the target, and all is copied that will be."""
    aborted = {record.identity for record in truth.written if not record.committed}
    originals = {record.identity for record in truth.source.records}
    there = Counter(record.identity for record in truth.target.records)
    counts = Counter(
        {
            "copied": len(originals & there.keys()),
            "missing": len(originals - there.keys()),
            "copied-again": sum(n - 1 for i, n in there.items() if i in originals),
            "copy-of-aborted": sum(n for i, n in there.items() if i in aborted),
            "foreign": sum(n for i, n in there.items() if i not in originals | aborted),
        }
    )
    return +counts


def expected_of(audited: Audited, topic: str) -> Counter[str]:
    return sum((expected(truth) for (t, _), truth in audited.truth.items() if t == topic), Counter())


def without_copies(audited: Audited, topic: str) -> set[tuple[str, int, int]]:
    return {
        (t, p, record.offset)
        for (t, p), truth in audited.truth.items()
        if t == topic
        for record in truth.source.records
        if record.identity not in {copy.identity for copy in truth.target.records}
    }


def wait_copied(scene: Scene, places: Collection[Partition]) -> None:
    """Wait until MM2's own positions are the last records of these partitions."""
    ends = scene.source_ends()

    def copied() -> bool:
        recorded = scene.lab.mirror.progress.recorded()
        return all(recorded.get(place) == ends[place][1] - 1 for place in places)

    wait_until(copied, READ_SECONDS, f"the last records of {scene} to be copied")


def audit_plan(commands: CommandLine, scene: Scene, places: Mapping[str, Mapping[Partition, int]]) -> Audited:
    """Audit a plan that sets each group where its commits best begin on the target."""
    truth = scene.truth()
    rows = (
        make_row(
            group, topic, p, target_topic=scene.copy(topic), source_committed=committed,
            target_offset=best(truth[topic, p], committed),
        )
        for group, of_group in sorted(places.items()) for (topic, p), committed in sorted(of_group.items())
    )  # fmt: skip
    write_plan(make_plan(rows, source_cluster_id="", target_cluster_id=""), commands.folder / "groups.plan")
    return audit(commands, scene, "owed", "--plan", "groups.plan")


@dataclass(frozen=True)
class Story:
    """What two audits found; what was written from `since_ms` on stands behind the `older` records of `plain`.

    `longest` is how many records a partition of `reborn` had at most before it was created anew.
    """

    scene: Scene
    commands: CommandLine
    source_before: Mapping[str, Any]
    source_after: Mapping[str, Any]
    whole: Audited
    later: Audited
    longest: int
    since_ms: int
    older: Mapping[Partition, int]


@pytest.fixture(scope="module")
def own_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab(tmp_path_factory.mktemp("audit"), start_mirror=False) as lab:
        yield lab


@pytest.fixture(scope="module")
def story(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Story:
    scene = Scene(lab, "audit", new_seed())
    plain, tx, reborn, trimmed = (scene.create(name, 2) for name in ("plain", "tx", "reborn", "trimmed"))
    places = [(topic, p) for topic in (plain, reborn, trimmed) for p in range(2)]

    def write() -> None:
        scene.write(places, 900)
        scene.write_transactions([(tx, p) for p in range(2)], 300)

    lab.mirror.kill()
    copied_through_kills(lab, [scene], write, kills=1)
    commands = CommandLine.of(lab, tmp_path_factory.mktemp("commands"), warm=True)
    source_before = portrait(lab.source_bootstrap, lab.options)
    whole = audit(commands, scene, "state", "--exclude-topic", trimmed)
    source_after = portrait(lab.source_bootstrap, lab.options)

    lab.mirror.kill()
    longest = max(len(scene.written[reborn, p]) for p in range(2))
    scene.create_anew(reborn)
    # No record has key and time of one before it, whose copy on B would look like its own that was changed.
    scene.let_pass(200_000)
    since_ms, older = scene.now_ms - 100_000, {(plain, p): len(scene.written[plain, p]) for p in range(2)}
    # More than there were, so that MM2 goes on where it had been, and passes over the first of them.
    for p in range(2):
        scene.write([(reborn, p)], longest + 100)
    scene.write([(plain, p) for p in range(2)], 200)
    scene.write_locally([(plain, p) for p in range(2)], 50)
    lab.mirror.start()
    wait_copied(scene, [(topic, p) for topic in (plain, reborn) for p in range(2)])
    for p in range(2):
        delete_before(lab.target_bootstrap, scene.copy(trimmed), p, TAKEN)
    later = audit(commands, scene, "state")
    return Story(scene, commands, source_before, source_after, whole, later, longest, since_ms, older)


def test_a_topic_that_was_copied_is_complete_though_mm2_was_killed_and_copied_aborted_records(story: Story) -> None:
    story.whole.ran.expect(0)
    document = story.whole.document
    assert document["verdict"] == "COMPLETE" and {t["verdict"] for t in document["topics"]} == {"COMPLETE"}
    for topic in document["topics"]:
        assert topic["counts"] == expected_of(story.whole, topic["topic"])
    assert document["counts"]["copied-again"] > 0 and document["counts"]["copy-of-aborted"] > 0


def test_records_that_mm2_passed_over_are_missing_each_of_them_and_no_other(story: Story) -> None:
    story.later.ran.expect(1)
    plain, tx, reborn, _ = story.scene.topics
    lost = without_copies(story.later, reborn)
    assert lost and story.later.named["missing"] == lost
    assert story.later.topic(reborn)["verdict"] == "INCOMPLETE" and story.later.document["verdict"] == "INCOMPLETE"
    for topic in (plain, tx, reborn):
        assert story.later.topic(topic)["counts"] == expected_of(story.later, topic)
    assert {story.later.topic(topic)["verdict"] for topic in (plain, tx)} == {"COMPLETE"}


def test_what_was_read_before_is_not_read_again(story: Story) -> None:
    plain = story.scene.topic("plain")
    news = sum(len(records) for (topic, _), records in story.scene.written.items() if topic == plain)
    # A step that takes long is said more than once.
    said = re.findall(rf"reading ([\d,]+) offsets? of {plain} on", story.later.ran.stderr)
    read = {int(count.replace(",", "")) for count in said}
    assert len(read) == 1 and 0 < max(read) < news


def test_copies_that_retention_took_are_not_visible_and_never_missing(story: Story) -> None:
    trimmed = story.scene.topic("trimmed")
    found, gone = story.later.topic(trimmed), without_copies(story.later, trimmed)
    assert gone and found["verdict"] == "NOT PROVEN" and found["counts"]["not-visible"] == len(gone)


@pytest.mark.long
def test_what_retention_takes_amid_an_audit_is_not_missed(story: Story) -> None:
    scene, trimmed = story.scene, story.scene.topic("trimmed")
    words = ("audit", "run", *story.commands.clusters, "--topic", trimmed, "--state", "retained", "--format", "json")
    with started(story.commands, *words) as running:
        # Ends are pinned by then, and nothing has been read.
        running.wait_for("] waiting for Spark")
        running.stop()
        delete_before(scene.lab.source_bootstrap, trimmed, 0, 2 * TAKEN)
        delete_before(scene.lab.target_bootstrap, scene.copy(trimmed), 1, 3 * TAKEN)
        running.go_on()
        counts = json.loads(running.result().expect(4).stdout)["counts"]
    logs = [
        [[record.identity for record in log.records] for log in (truth.source, truth.target)]
        for (topic, _), truth in scene.truth().items()
        if topic == trimmed
    ]
    without_copy = sum(identity not in copies for originals, copies in logs for identity in originals)
    without_original = sum(identity not in originals for originals, copies in logs for identity in copies)
    assert without_copy and without_original and "missing" not in counts
    assert [counts["not-visible"], counts["original-not-visible"]] == [without_copy, without_original]


@pytest.mark.long
def test_of_a_plan_each_group_is_told_what_it_would_miss_and_nothing_else_is_looked_at(story: Story) -> None:
    plain, reborn, longest = story.scene.topic("plain"), story.scene.topic("reborn"), story.longest
    places_of = {
        "early": {(plain, 0): 100, (reborn, 0): 0, (reborn, 1): longest},
        "late": {(plain, 0): 850, (reborn, 0): longest + 50},
    }
    planned = audit_plan(story.commands, story.scene, places_of)
    planned.ran.expect(1)
    would_miss = {
        group: {
            (topic, p): sorted(r.offset for r in truth.source.records if r.identity in lost)
            for (topic, p), committed in places.items()
            if (lost := missing(truth := planned.truth[topic, p], committed))
        }
        for group, places in places_of.items()
    }
    assert would_miss["early"] and not would_miss["late"]
    plan = planned.document["plan"]
    (told,) = plan["open"]
    assert plan["groups"] == 2 and (told["group"], told["verdict"]) == ("early", "INCOMPLETE")
    assert [(lack.pop("topic"), lack.pop("partition"), lack) for lack in told["lacks"]] == [
        (topic, p, {"category": "missing", "records": len(o), "first_offset": o[0], "last_offset": o[-1]})
        for (topic, p), o in sorted(would_miss["early"].items())
    ]
    lowest = {place: min(p[place] for p in places_of.values() if place in p) for place in places_of["early"]}
    for topic in (plain, reborn):
        truth = {place: planned.truth[place] for place in lowest if place[0] == topic}
        counts = planned.topic(topic)["counts"]
        there = sum(r.offset >= lowest[place] for place, each in truth.items() for r in each.source.records)
        assert counts["copied"] + counts.get("missing", 0) == there


@pytest.mark.long
def test_since_a_time_only_what_was_written_from_then_on_is_looked_at(story: Story) -> None:
    only, paced = ("--exclude-topic", f"(?!{story.scene.topic('plain')}$).*"), ("--max-rate", "1MB/s")
    since = audit(story.commands, story.scene, "since", "--since", str(story.since_ms), *only, *paced, "--order")
    found = Counter[str]()
    for place, count in story.older.items():
        truth = since.truth[place]
        old = {record.identity for record in story.scene.written[place][:count]}
        logs = [
            replace(log, records=tuple(record for record in log.records if record.identity not in old))
            for log in (truth.source, truth.target)
        ]
        found += expected(replace(truth, source=logs[0], target=logs[1]))
    (topic,) = since.document["topics"]
    assert topic["counts"] == found and found["copied"] == 200 and found["foreign"] == 50
    # No copy is out of order: what was copied again does not count.
    assert since.document["order_looked_at"]


def test_nothing_was_written_to_the_source(story: Story) -> None:
    assert story.source_before == story.source_after


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name, flow in FLOWS.items() if flow.version == Flow.version])
def test_no_record_with_a_copy_is_missing_and_none_without_one_is_complete(
    own_lab: Lab, tmp_path: Path, name: str
) -> None:
    """On every flow that exact translation is judged on."""
    flow = FLOWS[name]
    own_lab.change_mirror(flow.options(9))
    scenes = [Scene(own_lab, f"{scene}9", new_seed()) for scene in flow.scenes]
    flow.stage(own_lab, scenes)
    commands = CommandLine.of(own_lab, tmp_path)
    for scene in scenes:
        found = audit(commands, scene, scene.name)
        for topic in scene.topics:
            lost, told = without_copies(found, topic), found.topic(topic)
            missing = {each for each in found.named.get("missing", ()) if each[0] == topic}
            assert missing <= lost, f"{scene}: {topic} has copies of what is called missing"
            if told["verdict"] == "COMPLETE" and topic not in scene.compacted:
                assert not lost, f"{scene}: {topic} is called complete"
            print(scene.name, topic, told["verdict"], told["counts"], f"{len(lost)} without a copy")


@pytest.mark.long
def test_behind_an_mm2_of_kafka_3_9_what_a_hand_took_or_changed_on_the_target_is_named(
    lab_factory: Callable[..., Lab], tmp_path: Path
) -> None:
    flow = FLOWS["kafka-3.9.2"]
    lab = lab_factory(version=flow.version, mirror=flow.options(8), start_mirror=False)
    scene = Scene(lab, "older8", new_seed())
    flow.stage(lab, [scene])
    lab.mirror.stop()
    commands = CommandLine.of(lab, tmp_path)
    whole = audit(commands, scene, "state")
    whole.ran.expect(0)
    assert whole.document["verdict"] == "COMPLETE"
    for topic in scene.topics:
        assert whole.topic(topic)["counts"] == expected_of(whole, topic)

    plain = scene.topic("plain")
    truth = whole.truth[plain, 0]
    copies = Counter(record.identity for record in truth.target.records)
    lost, changed = scene.dice.sample([r for r in truth.source.records if copies[r.identity] == 1], 2)
    partitions = scene.topics[plain]
    write_anew(lab.target_bootstrap, scene.copy(plain), partitions, lost.identity, changed.identity)
    found = audit(commands, scene, "state")
    found.ran.expect(1)
    assert found.named == {"missing": {(plain, 0, lost.offset)}, "changed-in-flight": {(plain, 0, changed.offset)}}
    assert found.topic(plain)["verdict"] == "INCOMPLETE" and found.topic(scene.topic("tx"))["verdict"] == "COMPLETE"
