"""The judge that nothing was written to a cluster sees what would be written there."""

from confluent_kafka import Producer

from tests.integration.clusters import CALL_SECONDS, QUIET, commit, member, portrait
from tests.integration.scene import Scene
from tests.lab.lab import Lab
from tests.seeds import new_seed


def changed(before: dict[str, object], after: dict[str, object]) -> set[str]:
    return {what for what in before if before[what] != after[what]}


def test_a_portrait_stays_the_same_under_a_living_mm2_and_shows_one_record_one_commit_and_one_member(
    lab: Lab,
) -> None:
    scene, source = Scene(lab, "portrait", new_seed()), lab.source_bootstrap
    topic, group = scene.create("plain", 1), scene.group("g")
    scene.write_synced_early(scene.partitions, 20)
    scene.commit({group: {(topic, 0): 7}})
    scene.wait_replicated()
    before = portrait(source, lab.options)
    lab.mirror.wait_checkpoints([group])
    assert changed(before, portrait(source, lab.options)) == set()

    producer = Producer({"bootstrap.servers": source, **QUIET})
    producer.produce(topic, b"one record")
    assert producer.flush(CALL_SECONDS) == 0
    written = portrait(source, lab.options)
    assert changed(before, written) == {"ends"}

    commit(source, {group: {(topic, 0): 7}})
    committed = portrait(source, lab.options)
    assert changed(written, committed) == {"group records"}

    with member(source, group, topic):
        pass
    assert changed(committed, portrait(source, lab.options)) == {"group records"}
