"""`follow` on real brokers with a real MM2: fresh offsets while everything lives, and an exact way back.

What it must never do is done to it here: consumers start on the target, somebody resets a group there, it is killed.
"""

import json
import signal
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.extras.follow.integration.followedscene import (
    PLAN,
    Mandated,
    consuming,
    lost,
    on_both,
    passes,
    producing,
    quiet_pass,
    refused_as,
    wait_pass,
)
from tests.integration.cli import CommandLine
from tests.integration.clusters import commit, commits_on, member
from tests.integration.javajudge import JavaJudge
from tests.integration.running import started
from tests.integration.scene import Scene
from tests.lab.lab import Lab
from tests.seeds import new_seed

QUICK = ("--settle", "1")
ALIVE, WRITTEN = "alive-on-target", "written-by-somebody-else"


def staged(lab: Lab, name: str) -> tuple[Scene, str]:
    scene = Scene(lab, name, new_seed())
    topic = scene.create("plain", 2)
    scene.write(scene.partitions, 1500)
    scene.wait_replicated()
    at = {group: dict.fromkeys(scene.partitions, 300) for group in ("idle", "back", "handed", "started")}
    scene.commit({scene.group(group): places for group, places in at.items()})
    # One group has been on the target before: that is what a rollback brings back.
    commit(lab.target_bootstrap, {scene.group("idle"): {(scene.copy(topic), 0): 7}})
    return scene, topic


def test_offsets_stay_fresh_while_all_lives_and_nothing_is_written_that_must_not_be(lab: Lab, tmp_path: Path) -> None:
    scene, topic = staged(lab, "follow")
    source, target, copy = lab.source_bootstrap, lab.target_bootstrap, scene.copy(topic)
    idle, back, handed, begun, living = map(scene.group, ("idle", "back", "handed", "started", "living"))
    everybody = [idle, back, handed, begun, living]
    commands = CommandLine.of(lab, tmp_path)
    before = commits_on(target, everybody)
    mandate = Mandated.made(commands, scene)
    dry = commands.run("follow", "run", PLAN, *commands.clusters, *QUICK).expect(0)
    assert dry.stdout.startswith("DRY RUN: a pass would set 8 rows of 4 groups") and mandate.fingerprint in dry.stdout
    assert commits_on(target, everybody) == before and not list(tmp_path.glob("*.journal.jsonl"))

    with ExitStack() as alive:
        with started(commands, *mandate.words("2s", *QUICK)) as running:
            wait_pass(running, "a pass after the first", quiet_pass)
            assert commits_on(target, [idle, back])[back] == {(copy, 0): 300, (copy, 1): 300}
            assert passes(running)[0]["offsets_topic_records"] >= 8, "the commits of four groups"
            wait_pass(running, "a pass that reads no commit again", lambda seen: seen["offsets_topic_records"] == 0)
            alive.enter_context(producing(scene, scene.partitions))
            alive.enter_context(consuming(source, living, [topic]))
            wait_pass(running, "the living group", lambda seen: living in commits_on(target, [living]))
            with member(target, begun, copy):
                wait_pass(running, "the group that was started", refused_as(ALIVE))
            commit(target, {handed: {(copy, 0): 900}})
            commit(source, {group: {(topic, 0): 20} for group in (begun, handed, back)})
            seen = wait_pass(running, "the reset", refused_as(WRITTEN))
            # The started one has stopped, and is owed what lies between 20 and 300.
            assert seen["unsafe_to_fail_over"] == sorted([handed, begun])
            wait_pass(running, "another pass", lambda seen: seen["rows_set"] > 0)
            now = commits_on(target, everybody)
            assert [now[group][copy, 0] for group in (begun, handed, back)] == [300, 900, 20]
            running.kill()
        commit(source, {back: {(topic, 0): 400}})
        with started(commands, *mandate.words("2s", *QUICK)) as running:
            wait_pass(running, "a pass of the second run", lambda seen: seen["refused"] == {ALIVE: 1, WRITTEN: 1})
            assert commits_on(target, [back])[back][copy, 0] == 400
            alive.close()
            scene.wait_replicated()
            wait_pass(running, "what the consumer did last", quiet_pass)
            running.process.send_signal(signal.SIGTERM)
            ended = running.result().expect(4)
    assert "FOLLOWED IN PART" in ended.stdout and f"{handed}  {WRITTEN}: unsafe-to-fail-over" in ended.stdout
    assert [p["delay_seconds"]["rows"] for p in passes(running)][0] == 0

    on_source, on_target = on_both(scene, [idle, back, living])
    assert set(lost(scene, scene.truth(), on_source, on_target).values()) == {0}
    told = json.loads(commands.run("follow", "status", PLAN, "--format", "json").expect(0).stdout)
    assert told["ended"] == "it was asked to stop" and set(told["refused_groups"]) == {handed, begun}
    assert told["run"]["delay_seconds"]["max"] is not None

    mandate.undo().expect(3)
    mandate.undo("--allow-partial").expect(4)
    after = commits_on(target, everybody)
    assert after == {**before, handed: {(copy, 0): 900, (copy, 1): 300}}
    commands.run(*mandate.words("2s")).expect(3)


@pytest.mark.long
def test_ten_minutes_of_life_with_kills_and_restarts_lose_nothing_and_can_be_taken_back(
    lab_factory: Callable[..., Lab], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """MM2 killed twice, the target's broker restarted, consumers and a colleague on the target, `follow` killed -9."""
    lab = lab_factory()
    scene, topic = staged(lab, "follow")
    target, copy = lab.target_bootstrap, scene.copy(topic)
    readers = [scene.group(f"reader{n}") for n in range(4)]
    idle, back, handed, begun, noted = map(scene.group, ("idle", "back", "handed", "started", "noted"))
    everybody = [*readers, idle, back, handed, begun, noted]
    metadata = "é\x00of a stream"
    with JavaJudge(lab.source) as judge:
        judge.commit({noted: {(topic, 0): (300, metadata)}})
    commands = CommandLine.of(lab, tmp_path)
    before, mandate = commits_on(target, everybody), Mandated.made(commands, scene)

    def minute_of(running: object, passes_: int) -> None:
        for _ in range(passes_):
            wait_pass(running, "one more pass", lambda seen: not seen["trouble"])  # type: ignore[arg-type]

    with ExitStack() as alive:
        alive.enter_context(producing(scene, scene.partitions))
        for reader in readers:
            alive.enter_context(consuming(lab.source_bootstrap, reader, [topic]))
        with started(commands, *mandate.words("10s")) as running:
            minute_of(running, 6)
            lab.mirror.kill()
            minute_of(running, 2)
            lab.mirror.start()
            lab.mirror.wait_ready()
            minute_of(running, 4)
            alive.enter_context(consuming(target, begun, [copy]))
            wait_pass(running, "the group that was started", refused_as(ALIVE))
            commit(target, {handed: {(copy, 0): 900}})
            wait_pass(running, "the reset", refused_as(WRITTEN))
            commit(lab.source_bootstrap, {back: {(topic, 0): 20}})
            minute_of(running, 2)
            assert commits_on(target, [back])[back][copy, 0] == 20
            lab.target.restart()
            minute_of(running, 4)
            status = commands.run("follow", "status", PLAN, "--format", "json").expect(0)
            before_kill = json.loads(status.stdout)["run"]["delay_seconds"]
            running.kill()
        with started(commands, *mandate.words("10s")) as running:
            minute_of(running, 2)
            lab.mirror.kill()
            lab.mirror.start()
            lab.mirror.wait_ready()
            minute_of(running, 10)
            in_life = passes(running)
            alive.close()
            scene.wait_replicated()
            wait_pass(running, "what the consumers did last", quiet_pass)
            running.process.send_signal(signal.SIGTERM)
            ended = running.result().expect(4)
    with JavaJudge(lab.target) as judge:
        assert judge.held()[noted] == {(copy, 0): (300, metadata)}
    followed = [*readers, idle, back, noted]
    on_source, on_target = on_both(scene, followed)
    by_oracle = lost(scene, scene.truth(), on_source, on_target)
    assert on_source.keys() == on_target.keys() == set(followed) and set(by_oracle.values()) == {0}
    moved_on = commits_on(target, [begun])[begun]
    undone = mandate.undo("--allow-partial").expect(4)
    after = commits_on(target, everybody)
    left = {handed: {(copy, 0): 900, (copy, 1): 300}, begun: moved_on}
    assert after == {**before, **left}, undone
    with capsys.disabled():
        print(f"\n{ended.stdout}\nlost by the oracle: {by_oracle}")
        print(f"delays before the kill: {before_kill}")
        print(f"{len(in_life)} passes of the second run, {max(p['seconds'] for p in in_life)} s at most")
