"""Audits of the way back, on real brokers, judged by the identities of all records: by MM2 under either policy, and by
another replicator under names of its own.

One story: A is copied to B, by a replicator that was killed, so that B has some records twice. Then people write on
B, and all or only that is copied back to A. Of the whole way back the audit says of which records of B there are too
few on A; since the night it says whether what was written on B from then on is there.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from migrate.clock import iso
from tests.extras.audit.integration.copies import write_anew
from tests.integration.cli import CommandLine
from tests.integration.clusters import CALL_SECONDS, QUIET, READ_SECONDS, bounds, commit, create_topic, read_logs
from tests.integration.copiedscene import CopiedScene
from tests.integration.flows import copied_through_kills
from tests.integration.scene import Scene
from tests.lab.copier import Copier, Ways
from tests.lab.lab import Lab
from tests.lab.options import MirrorOptions
from tests.lab.waiting import wait_until
from tests.seeds import new_seed

pytestmark = pytest.mark.long
# A replicator commits after 300 records, twice at most before it dies amid the third.
WRITTEN, LATER = 1_000, 200
Document = Mapping[str, Any]


@pytest.fixture(scope="module")
def own_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab(tmp_path_factory.mktemp("back"), start_mirror=False) as lab:
        yield lab


def write(bootstrap: str, topic: str, scene: Scene, records: int) -> set[str]:
    """Write records at the scene's own time; return their identities."""
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, **QUIET})
    identities = [f"{topic}/later/{number}" for number in range(records)]
    for number, name in enumerate(identities):
        at = scene.now_ms + number
        producer.produce(topic, b"later", f"k{number % 7}", 0, timestamp=at, headers={"id": name.encode()})
    assert producer.flush(CALL_SECONDS) == 0
    return set(identities)


def identities(bootstrap: str, topic: str) -> Counter[str]:
    (log,) = read_logs(bootstrap, [(topic, 0)]).values()
    return Counter(record.identity for record in log.records)


def expected(source: Counter[str], target: Counter[str]) -> Counter[str]:
    """What identities say of two logs that are read whole, and of which nothing was removed."""
    return +Counter(
        {
            "copied": (source & target).total(),
            "missing": (source - target).total(),
            "copied-again": sum(n - source[each] for each, n in target.items() if 0 < source[each] < n),
            "foreign": sum(n for each, n in target.items() if each not in source),
        }
    )


def audit(commands: CommandLine, state: str, topic: str, *options: str) -> Document:
    words = ("audit", "run", *commands.clusters, "--topic", topic, "--state", state, "--format", "json", *options)
    ran = commands.run(*words)
    assert ran.exit_code in (0, 1, 4), ran
    found: Document = json.loads(ran.stdout)
    return found


def named(commands: CommandLine, state: str, category: str) -> set[int]:
    """The offsets of partition 0 that the last run named so."""
    lines = map(json.loads, (commands.folder / state / "found.jsonl").read_text().splitlines())
    return {each["offset"] for each in lines if each["category"] == category}


def wait_written(bootstrap: str, topic: str, records: int) -> None:
    place = (topic, 0)
    wait_until(lambda: bounds(bootstrap, [place])[place][1] >= records, READ_SECONDS, f"{records} records of {topic}")


def test_copies_from_the_other_cluster_are_not_looked_at_and_named_and_what_is_written_beside_them_is(
    own_lab: Lab, tmp_path: Path
) -> None:
    lab, scene = own_lab, Scene(own_lab, "both", new_seed())
    back = {
        "Q->P.enabled": "true",
        "Q->P.topics": f".*{scene.suffix}",
        "Q->P.emit.heartbeats.enabled": "true",
        "P.offset.flush.interval.ms": "1000",
        "P.plugin.discovery": "service_load",
    }
    lab.change_mirror(MirrorOptions("P", "Q", topics=f".*{scene.suffix}", extra=back))
    topic = scene.create("orders", 1)
    copied_through_kills(lab, [scene], lambda: scene.write([(topic, 0)], WRITTEN), kills=0)
    # On Q the topic of that name is another one: what is written to it comes to P as Q.orders.
    create_topic(lab.target_bootstrap, topic, 1)
    write(lab.target_bootstrap, topic, scene, LATER)
    write(lab.target_bootstrap, f"P.{topic}", scene, 10)
    wait_until(
        lambda: (f"Q.{topic}" in lab.source.admin().list_topics(timeout=CALL_SECONDS).topics) or None,
        READ_SECONDS,
        "the copy of what was written on Q",
    )
    wait_written(lab.source_bootstrap, f"Q.{topic}", LATER)
    assert lab.mirror.stop(READ_SECONDS)

    there = CommandLine.of(lab, tmp_path, warm=True)
    commands = there.against(*there.clusters[:2], "--source", "Q", "--target", "P")
    whole = audit(commands, "whole", f".*{scene.suffix}")
    (found,) = whole["topics"]
    assert whole["verdict"] == "COMPLETE"
    assert (found["topic"], found["target_topic"], found["counts"]) == (topic, f"Q.{topic}", {"copied": LATER})
    assert whole["topics_not_replicated"] == [f"P.{topic}"]
    # What was written there has no way back, and is nobody's copy.
    onwards = audit(there, "onwards", f".*{scene.suffix}")
    (found,) = onwards["topics"]
    assert found["counts"] == {"copied": WRITTEN, "foreign": 10}
    assert onwards["topics_not_replicated"] == [f"Q.{topic}"]

    lost = scene.dice.choice(sorted(identities(lab.target_bootstrap, topic)))
    write_anew(lab.source_bootstrap, f"Q.{topic}", 1, lost=lost)
    again = audit(commands, "whole", f".*{scene.suffix}")
    assert again["verdict"] == "INCOMPLETE" and named(commands, "whole", "missing") == {int(lost.rsplit("/")[-1])}


def test_of_a_topic_with_one_name_on_both_sides_all_that_came_back_beside_what_was_there_is_told(
    own_lab: Lab, tmp_path: Path
) -> None:
    lab, scene = own_lab, Scene(own_lab, "same", new_seed())
    options = MirrorOptions("R", "S", policy="identity", topics=f".*{scene.suffix}")
    lab.change_mirror(options)
    topic = scene.create("orders", 1)
    copied_through_kills(lab, [scene], lambda: scene.write([(topic, 0)], WRITTEN), kills=1)
    lab.mirror.stop()
    scene.let_pass(200_000)
    night = iso(scene.now_ms - 100_000)
    write(lab.target_bootstrap, topic, scene, LATER)
    on_s, on_r = identities(lab.target_bootstrap, topic), identities(lab.source_bootstrap, topic)
    assert max(on_s.values()) > 1, "nothing was copied twice"
    back = {
        "R->S.enabled": "false",
        "R->S.emit.heartbeats.enabled": "false",
        "S->R.enabled": "true",
        "S->R.topics": f".*{scene.suffix}",
        "R.offset.flush.interval.ms": "1000",
        "R.plugin.discovery": "service_load",
    }
    lab.change_mirror(MirrorOptions("R", "S", policy="identity", extra=back))
    lab.mirror.start()
    # It begins at the start of the log: what S has from R comes back as well.
    wait_written(lab.source_bootstrap, topic, on_r.total() + on_s.total())
    lab.mirror.kill()

    there = CommandLine.of(lab, tmp_path, warm=True)
    commands = there.against(*there.clusters[:2], "--source", "S", "--target", "R")
    whole = audit(commands, "whole", topic)
    assert whole["verdict"] == "COMPLETE"
    assert whole["counts"] == expected(on_s, on_r + on_s)
    assert whole["counts"]["copied-again"] == len(on_r)
    later = audit(commands, "later", topic, "--since", night)
    assert later["verdict"] == "COMPLETE" and later["counts"] == {"copied": LATER}


def test_behind_a_replicator_that_copies_only_the_new_back_by_a_map_what_b_has_twice_is_missing_but_not_since_the_night(
    own_lab: Lab, tmp_path: Path
) -> None:
    lab, scene = own_lab, CopiedScene(own_lab, "copied", new_seed())
    topic = scene.create("orders", 1)
    copy = scene.copy(topic)
    replicator = scene.copier(tmp_path, Ways())
    scene.write([(topic, 0)], WRITTEN)
    scene.kill_amid(replicator)
    scene.finish(replicator)
    onwards = scene.commands(tmp_path)
    found = audit(onwards, "onwards", topic)
    there, back = identities(lab.target_bootstrap, copy), identities(lab.source_bootstrap, topic)
    assert found["verdict"] == "COMPLETE" and found["counts"] == expected(back, there)
    twice = found["counts"]["copied-again"]

    scene.let_pass(200_000)
    night = iso(scene.now_ms - 100_000)
    end = bounds(lab.target_bootstrap, [(copy, 0)])[copy, 0][1]
    group = scene.group("back")
    commit(lab.target_bootstrap, {group: {(copy, 0): end}})
    write(lab.target_bootstrap, copy, scene, LATER)
    returning = Copier(tmp_path, lab.target_bootstrap, lab.source_bootstrap, group, {copy: topic})
    returning.start()
    on_a = len(scene.written[topic, 0]) + LATER
    returning.wait_ready(lambda: bounds(lab.source_bootstrap, [(topic, 0)])[topic, 0][1] >= on_a, READ_SECONDS, "back")
    returning.kill()

    (tmp_path / "back.csv").write_text(f"regex:eu\\.(.*-{scene.suffix}),\\1\n")
    commands = onwards.against(
        "--source-config", str(lab.target_properties), "--target-config", str(lab.source_properties),
        "--source", "B", "--target", "A", "--replicator", "any", "--topic-map", "back.csv",
    )  # fmt: skip
    there, back = identities(lab.target_bootstrap, copy), identities(lab.source_bootstrap, topic)
    whole = audit(commands, "whole", copy)
    assert whole["verdict"] == "INCOMPLETE"
    assert whole["counts"] == expected(there, back) and whole["counts"]["missing"] == twice
    later = audit(commands, "later", copy, "--since", night)
    assert later["verdict"] == "COMPLETE" and later["counts"] == {"copied": LATER}
