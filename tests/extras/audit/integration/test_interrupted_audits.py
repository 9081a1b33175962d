"""Audits that are broken off: what they say in the end is what an undisturbed one says.

One story: a replicator that is killed, so that it copies some records again, and leaves out those of one key; strangers
write to its copies.
"""

import json
import os
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.integration.cli import CommandLine, Ran
from tests.integration.copiedscene import DROPPED_KEY, CopiedScene
from tests.integration.running import started
from tests.integration.standalone import on, started_standalone
from tests.lab.copier import Ways
from tests.lab.lab import Lab
from tests.seeds import new_seed

pytestmark = pytest.mark.long

KILLS = 10


@dataclass(frozen=True)
class Undisturbed:
    """An audit that nobody broke off: what it said, on stderr step by step, and each record that it named."""

    commands: CommandLine
    topics: tuple[str, ...]
    ran: Ran
    found: str

    def words(self, state: str) -> tuple[str, ...]:
        only = (word for topic in self.topics for word in ("--topic", topic))
        return ("audit", "run", *self.commands.clusters, *only, "--state", state, "--format", "json")

    @property
    def steps(self) -> list[str]:
        """What was begun, in order; a step that takes long is said more than once."""
        return list(dict.fromkeys(re.findall(r"^\[[^]]*\] ([^:\n]+)", self.ran.stderr, re.MULTILINE)))

    def judge(self, ran: Ran, state: str) -> None:
        """Another run has found the same."""
        ran.expect(self.ran.exit_code)
        said, expected = (json.loads(each.stdout) | {"time_ms": 0} for each in (ran, self.ran))
        assert said == expected
        assert (self.commands.folder / state / "found.jsonl").read_text() == self.found


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Undisturbed]:
    with Lab(tmp_path_factory.mktemp("lab"), start_mirror=False) as lab:
        scene = CopiedScene(lab, "copied", new_seed())
        plain, tx = scene.create("plain", 4), scene.create("tx", 2)
        copier = scene.copier(tmp_path_factory.mktemp("copier"), Ways(drops_key=DROPPED_KEY))
        for _ in range(2):
            scene.write([(plain, p) for p in range(4)], 3_000)
            scene.write_transactions([(tx, p) for p in range(2)], 1_000)
            scene.kill_amid(copier)
        scene.finish(copier)
        scene.write_locally([(plain, p) for p in range(4)], 100)
        commands = scene.commands(tmp_path_factory.mktemp("commands"))
        asked = Undisturbed(commands, (plain, tx), Ran("", 0, "", ""), "")
        ran = commands.run(*asked.words("undisturbed")).expect(1)
        document = json.loads(ran.stdout)
        assert {"copied", "missing", "copied-again", "foreign"} <= document["counts"].keys(), ran
        yield replace(asked, ran=ran, found=(commands.folder / "undisturbed" / "found.jsonl").read_text())


def test_an_audit_that_is_killed_at_any_step_and_run_again_says_the_same(undisturbed: Undisturbed) -> None:
    steps, killed = undisturbed.steps, 0
    assert len(steps) > KILLS // 2, steps
    for number in range(KILLS):
        words = undisturbed.words(f"killed-{number}")
        with started(undisturbed.commands, *words) as running:
            running.wait_for(f"] {steps[number * len(steps) // KILLS]}")
            running.process.kill()
            killed += running.process.wait() == -signal.SIGKILL
        undisturbed.judge(undisturbed.commands.run(*words), f"killed-{number}")
    # One that was quicker than its killer was not broken off.
    assert killed > KILLS // 2


def test_an_audit_whose_executor_and_then_a_worker_are_killed_says_the_same(
    undisturbed: Undisturbed, tmp_path: Path
) -> None:
    reading, *_, judging = (step for step in undisturbed.steps if step.startswith(("reading", "judging")))
    with (
        started_standalone(tmp_path) as cluster,
        started(undisturbed.commands, *undisturbed.words("cluster"), *on(cluster)) as running,
    ):
        second = undisturbed.steps[undisturbed.steps.index(reading) + 1]
        for step in (second, judging):
            running.wait_for(f"] {step}")
            # What it does next comes after the death, however slow this test is.
            running.stop()
            if step == second:
                os.kill(cluster.executors()[0], signal.SIGKILL)
            else:
                cluster.workers[0].kill()
            running.go_on()
        undisturbed.judge(running.result(), "cluster")
