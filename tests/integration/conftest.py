"""The lab, a killed scene, and a cutover of it that many tests look at."""

import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cli import REPOSITORY, CommandLine, Place, Ran, kcg_lines
from tests.integration.clusters import (
    AnyLab,
    Commits,
    Partition,
    commit,
    commits_on,
    delete_groups,
    groups_on,
    portrait,
    read_as_groups,
)
from tests.integration.killedscene import killed
from tests.integration.oracle import Found, Truth
from tests.integration.scene import Scene
from tests.seeds import new_seed

GROUP_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
# Groups that stood on the target before: a rollback has to bring that back.
PRIOR_GROUPS = ("g020", "g021", "g022", "g023")


@dataclass(frozen=True, repr=False)
class Cutover:
    """A whole cutover of the killed scene as it went, step by step; the tests judge it.

    `truth` was read after the plan was made, `truth_after` after the consumers had read what is in `read`.
    `target_*` are the commits of the scene's groups on the target at that moment. `estimated` is the plan that was made
    with --no-match, and never applied.
    """

    scene: Scene
    source_before: Mapping[str, Any]
    planned: Ran
    estimated: Mapping[str, Any]
    document: Mapping[str, Any]
    page: str
    kcg: Mapping[Place, int]
    truth: Mapping[Partition, Truth]
    target_before: Commits
    groups_before: frozenset[str]
    dry_run: Ran
    target_after_dry_run: Commits
    kafka_dry_run: subprocess.CompletedProcess[str]
    applied: Ran
    target_applied: Commits
    kafka_describes: subprocess.CompletedProcess[str]
    applied_again: Ran
    target_applied_again: Commits
    verified: Ran
    read: Mapping[str, Mapping[Partition, list[Found]]]
    truth_after: Mapping[Partition, Truth]
    undo_dry_run: Ran
    target_after_undo_dry_run: Commits
    alone: str
    undone_alone: Ran
    target_undone_alone: Commits
    applied_after_alone: Ran
    shown_after_alone: Ran
    undone: Ran
    target_undone: Commits
    groups_undone: frozenset[str]
    undone_again: Ran
    applied_after_undo: Ran
    target_in_the_end: Commits
    source_after: Mapping[str, Any]

    @property
    def rows(self) -> dict[Place, Mapping[str, Any]]:
        """The plan's rows by group, source topic and partition."""
        return {(row["group"], row["source_topic"], row["partition"]): row for row in self.document["rows"]}

    @property
    def estimated_rows(self) -> dict[Place, Mapping[str, Any]]:
        """The rows of the plan that compared no records."""
        return {(row["group"], row["source_topic"], row["partition"]): row for row in self.estimated["rows"]}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Walk the cutover over one killed scene, over five of them with `--long`."""
    if "killed_scene" in metafunc.fixturenames:
        scenes = range(5 if metafunc.config.getoption("--long") else 1)
        metafunc.parametrize("killed_scene", scenes, indirect=True, scope="module")


@pytest.fixture(scope="module")
def killed_scene(lab: AnyLab, request: pytest.FixtureRequest) -> Iterator[Scene]:
    scene = killed(lab, new_seed())
    yield scene
    # MM2 asks for the commits of every group there is once a second: those of five scenes take a third of a core.
    delete_groups(lab.source_bootstrap, scene.commits)


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The product as its wheel installs it, with all that it depends on, in an environment of its own."""
    folder = tmp_path_factory.mktemp("installed")
    sources = folder / "sources"
    shutil.copytree(REPOSITORY / "migrate", sources / "migrate", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, sources)

    def command(*words: str | Path) -> None:
        subprocess.run(words, check=True, timeout=600, cwd=folder)

    command(sys.executable, "-m", "venv", "venv")
    pip = (folder / "venv/bin/pip", "--quiet", "--disable-pip-version-check")
    command(*pip, "wheel", "--no-deps", "--wheel-dir", "wheels", "./sources")
    (wheel,) = (folder / "wheels").iterdir()
    command(*pip, "install", "--constraint", REPOSITORY / "constraints.txt", wheel)
    return folder / "venv/bin/mm2-migrate"


@pytest.fixture(scope="module")
def cutover(lab: AnyLab, killed_scene: Scene, installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Cutover:
    scene, folder = killed_scene, tmp_path_factory.mktemp("cutover")
    source, target = lab.source_bootstrap, lab.target_bootstrap
    commands = replace(CommandLine.of(lab, folder), program=(str(installed),))
    groups = sorted(scene.commits)
    prior = {
        group: {(scene.copy(topic), p): 0 for topic, p in scene.commits[group]}
        for group in map(scene.group, PRIOR_GROUPS)
    }
    commit(target, prior)

    def on_target() -> Commits:
        return commits_on(target, groups)

    def kafka(*action: str) -> subprocess.CompletedProcess[str]:
        named = [word for group in groups for word in ("--group", group)]
        return lab.kafka_tool(GROUP_TOOL, "--bootstrap-server", target, *named, *action)

    plan = "cutover.plan"
    source_before, target_before, groups_before = portrait(source, lab.options), on_target(), groups_on(target)
    chosen = ("--group", f"g[0-9]+-{scene.suffix}")
    # What the target's cleaner took while the source's did not counts as missing.
    planned = commands.plan(plan, *chosen, "--accept", "missing-on-target")
    document = commands.planned(planned, plan)
    estimated = commands.planned(commands.plan("estimated.plan", *chosen, "--no-match"), "estimated.plan")
    kcg = commands.show(plan, "kcg")
    file = folder / "offsets.csv"
    file.write_text(kcg)
    page = folder / "cutover.html"
    commands.run("report", plan, "--out", str(page)).expect(0)
    return Cutover(
        scene=scene,
        source_before=source_before,
        planned=planned,
        estimated=estimated,
        document=document,
        page=page.read_text(),
        kcg=kcg_lines(kcg),
        truth=scene.truth(),
        target_before=target_before,
        groups_before=groups_before,
        dry_run=commands.apply(plan),
        target_after_dry_run=on_target(),
        kafka_dry_run=kafka("--reset-offsets", "--from-file", str(file), "--dry-run"),
        applied=commands.execute(plan),
        target_applied=on_target(),
        kafka_describes=kafka("--describe"),
        applied_again=commands.execute(plan),
        target_applied_again=on_target(),
        verified=commands.verify(plan),
        read=read_as_groups(
            target, {g: {(scene.copy(t), p): o for (t, p), o in at.items()} for g, at in scene.commits.items()}
        ),
        truth_after=scene.truth(),
        undo_dry_run=commands.rollback(plan),
        target_after_undo_dry_run=on_target(),
        alone=groups[0],
        undone_alone=commands.undo(plan, "--group", groups[0]),
        target_undone_alone=on_target(),
        applied_after_alone=commands.execute(plan, "--allow-partial"),
        shown_after_alone=commands.run("show", str(folder / plan)),
        undone=commands.undo(plan),
        target_undone=on_target(),
        groups_undone=groups_on(target),
        undone_again=commands.undo(plan),
        applied_after_undo=commands.execute(plan),
        target_in_the_end=on_target(),
        source_after=portrait(source, lab.options),
    )
