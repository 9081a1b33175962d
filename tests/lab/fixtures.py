"""Pytest fixtures around the lab; a conftest takes them in with `from tests.lab.fixtures import *`.

Clusters of your own can take the lab's place for tests that only need a flow to look at:
`MM2_MIGRATE_TEST_SOURCE` and `MM2_MIGRATE_TEST_TARGET` (Java client properties files, or host:port) and
`MM2_MIGRATE_TEST_MM2_CONFIG` (an mm2.properties file). Tests that start, stop or configure MirrorMaker are
then skipped.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import NoReturn

import pytest

from tests.lab.lab import Lab
from tests.lab.options import IDENTITY_POLICY, MirrorOptions
from tests.lab.progress import DEADLINE_SECONDS, MirrorProgress
from tests.lab.waiting import LabError

__all__ = ["ExternalLab", "ExternalMirror", "external_lab", "lab", "lab_factory"]

SOURCE_VARIABLE = "MM2_MIGRATE_TEST_SOURCE"
TARGET_VARIABLE = "MM2_MIGRATE_TEST_TARGET"
CONFIG_VARIABLE = "MM2_MIGRATE_TEST_MM2_CONFIG"
VARIABLES = (SOURCE_VARIABLE, TARGET_VARIABLE, CONFIG_VARIABLE)


class ExternalMirror:
    """Stands for a MirrorMaker that somebody else runs: it can be watched, and whoever would control it is skipped."""

    def __init__(self, properties_path: Path, source_bootstrap: str, target_bootstrap: str, plain: bool) -> None:
        self.properties_path = properties_path
        self.options = options_from(java_properties(properties_path))
        self.progress = MirrorProgress(self.options, source_bootstrap, target_bootstrap)
        self._plain = plain

    def wait_until_replicated(
        self, topics: Iterable[str], deadline_seconds: float = DEADLINE_SECONDS, compare_last: bool = True
    ) -> None:
        self._need_plain()
        self.progress.wait_until_replicated(topics, deadline_seconds, compare_last)

    def wait_checkpoints(
        self,
        groups: Iterable[str],
        deadline_seconds: float = DEADLINE_SECONDS,
        caught_up: bool = False,
        quiet_seconds: float = 3.0,
    ) -> None:
        self._need_plain()
        self.progress.wait_checkpoints(groups, deadline_seconds, caught_up, quiet_seconds)

    def _need_plain(self) -> None:
        if not self._plain:
            pytest.skip("the lab's waiting conditions only speak to clusters without TLS and SASL")

    def __getattr__(self, name: str) -> NoReturn:
        pytest.skip(f"this MirrorMaker is not the lab's ({CONFIG_VARIABLE} is set), so it is left alone")


class ExternalLab:
    """What `Lab` offers, for clusters that somebody else runs."""

    external = True

    def __init__(self, source: str, target: str, mm2_config: str, folder: Path) -> None:
        self.folder = folder
        self.source_properties = client_properties(source, folder / "source.properties")
        self.target_properties = client_properties(target, folder / "target.properties")
        self.mm2_properties = Path(mm2_config).absolute()
        settings = [java_properties(path) for path in (self.source_properties, self.target_properties)]
        self.source_bootstrap, self.target_bootstrap = (each["bootstrap.servers"] for each in settings)
        plain = all(each.get("security.protocol", "PLAINTEXT").upper() == "PLAINTEXT" for each in settings)
        self.mirror = ExternalMirror(self.mm2_properties, self.source_bootstrap, self.target_bootstrap, plain)
        self.options = self.mirror.options


def java_properties(path: Path) -> dict[str, str]:
    """Keys and values of a properties file, without Java's escapes and continuation lines."""
    found = {}
    for line in path.read_text().splitlines():
        match = re.match(r"\s*([^#!\s:=][^:=\s]*)\s*[:=]?\s*(.*?)\s*$", line)
        if match:
            found[match[1]] = match[2]
    return found


def client_properties(given: str, path: Path) -> Path:
    """The properties file that was given, or one made for a host:port."""
    if Path(given).is_file():
        return Path(given).absolute()
    if not re.fullmatch(r"[^\s/]+:\d+(,[^\s/]+:\d+)*", given):
        raise LabError(f"{given} is neither a properties file nor host:port")
    path.write_text(f"bootstrap.servers={given}\n")
    return path


def options_from(properties: Mapping[str, str]) -> MirrorOptions:
    """The lab's view of somebody else's mm2.properties: its one enabled flow."""
    flows = [
        match.groups()
        for key, value in properties.items()
        if (match := re.fullmatch(r"(.+)->(.+)\.enabled", key)) and value == "true"
    ]
    if len(flows) != 1:
        raise LabError(f"{CONFIG_VARIABLE} must have exactly one enabled flow, it has {len(flows)}")
    (source, target) = flows[0]

    def setting(name: str, default: str) -> str:
        return properties.get(f"{source}->{target}.{name}", properties.get(name, default))

    exactly_once = properties.get(f"{target}.exactly.once.source.support", "disabled") == "enabled"
    on_target = setting("offset-syncs.topic.location", "source") == "target"
    identity = setting("replication.policy.class", "") == IDENTITY_POLICY
    return MirrorOptions(
        source_alias=source,
        target_alias=target,
        exactly_once=exactly_once,
        offset_syncs_location="target" if on_target else "source",
        policy="identity" if identity else "default",
        separator=setting("replication.policy.separator", "."),
    )


def external_lab(environment: Mapping[str, str], folder: Path) -> ExternalLab | None:
    """The clusters named by the environment, None if it names none, LabError if only some of the three."""
    source, target, config = (environment.get(name, "") for name in VARIABLES)
    if not (source or target or config):
        return None
    if not (source and target and config):
        raise LabError(f"set all of {', '.join(VARIABLES)}, or none")
    return ExternalLab(source, target, config, folder)


def own_clusters_only() -> None:
    """Skip a test that makes clusters of a kind that no environment can name."""
    if any(os.environ.get(name) for name in VARIABLES):
        pytest.skip("needs clusters of its own, and the environment names others")


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab | ExternalLab]:
    """One lab for the whole test run, or the clusters named by the environment.

    What clusters of users have beside the lab's defaults: brokers that make any topic that is asked for, which is
    Kafka's own default, a second one on the source, and an MM2 of several tasks.
    """
    folder = tmp_path_factory.mktemp("lab")
    other = external_lab(os.environ, folder)
    if other is not None:
        yield other
        return
    willing = {"auto.create.topics.enable": "true"}
    # Else MM2's own consumer makes a topic again that a scene deletes.
    mirror = MirrorOptions(tasks_max=3, extra={"A.consumer.allow.auto.create.topics": "false"})
    with Lab(folder, mirror=mirror, source_brokers=2, source_overrides=willing, target_overrides=willing) as own:
        yield own


@pytest.fixture
def lab_factory(tmp_path: Path) -> Iterator[Callable[..., Lab]]:
    """Starts labs of the test's own and takes them down after it: `lab_factory(version="3.9.2")`.

    It takes what `Lab` takes, except the folder.
    """
    own_clusters_only()
    with ExitStack() as running:

        def make(**options: object) -> Lab:
            folder = tmp_path / f"lab-{len(list(tmp_path.glob('lab-*'))) + 1}"
            folder.mkdir()
            return running.enter_context(Lab(folder, **options))  # type: ignore[arg-type]

        yield make
