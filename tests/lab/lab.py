"""Two clusters and a MirrorMaker 2 between them, up and down as one."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.lab.certificates import Authority
from tests.lab.cluster import Cluster, start_clusters
from tests.lab.connect import ConnectMirror
from tests.lab.iam import KeyPair
from tests.lab.jars import DEFAULT_VERSION, NEWEST_MIRROR, kafka_jars, version_tuple
from tests.lab.kerberos import Realm
from tests.lab.mirror import MirrorMaker
from tests.lab.options import MirrorOptions
from tests.lab.process import java_command
from tests.lab.security import SecureCluster
from tests.lab.tokens import TokenServer

TOOL_DEADLINE_SECONDS = 120.0


@dataclass(frozen=True)
class Versions:
    """The Kafka version of each side, and that of MM2."""

    source: str
    target: str
    mirror: str


def versions_of(brokers: str) -> Versions:
    """Return brokers of one version, and the newest MM2 that there is for them."""
    return Versions(brokers, brokers, min(brokers, NEWEST_MIRROR, key=version_tuple))


class Lab:
    """A source cluster, a target cluster and a MirrorMaker 2 from one to the other.

    Use it with `with`, or call `up` and `down`. With `start_mirror=False`, MM2 is configured but not started:
    `lab.mirror.start()`. The clusters exist from `__init__` on, `mirror` from `up` on, because it needs to know their
    ports.
    With `users` (names and passwords) the clusters are `SecureCluster`s: the lab itself, MM2 and the properties files
    here go on using their plain listeners; `authority` signs what clients of the others need, and they take tokens of
    `tokens`. `version` is the brokers', or `Versions`; Kafka's tools are those of MM2's version. All of the target's
    brokers vote, and one of the source's.
    """

    def __init__(
        self,
        folder: Path,
        version: str | Versions = DEFAULT_VERSION,
        mirror: MirrorOptions | None = None,
        start_mirror: bool = True,
        source_brokers: int = 1,
        target_brokers: int = 1,
        source_overrides: Mapping[str, str] | None = None,
        target_overrides: Mapping[str, str] | None = None,
        users: Mapping[str, str] | None = None,
        tokens: TokenServer | KeyPair | Realm | None = None,
        kind: type[Cluster] = Cluster,
    ) -> None:
        self.versions = versions = version if isinstance(version, Versions) else versions_of(version)
        self.jars = kafka_jars(versions.mirror)
        self.options = mirror or MirrorOptions()
        self._start_mirror = start_mirror
        self._mirror: MirrorMaker | None = None
        self.folder = folder.absolute()
        self.authority: Authority | None = None
        source, target = self.folder / "source", self.folder / "target"
        if users is None:
            self.source = kind("source", source, versions.source, source_brokers, source_overrides)
            self.target = kind("target", target, versions.target, target_brokers, target_overrides, target_brokers)
        else:
            self.authority = ca = Authority(self.folder / "certificates")
            self.source = SecureCluster("source", source, versions.source, ca, users, source_overrides, tokens)
            self.target = SecureCluster("target", target, versions.target, ca, users, target_overrides, tokens)
        self.source_properties = self.folder / "source.properties"
        self.target_properties = self.folder / "target.properties"
        self.mm2_properties = self.folder / "mm2.properties"

    @property
    def source_bootstrap(self) -> str:
        return self.source.bootstrap

    @property
    def target_bootstrap(self) -> str:
        return self.target.bootstrap

    @property
    def mirror(self) -> MirrorMaker:
        assert self._mirror is not None, "the lab is not up"
        return self._mirror

    def up(self) -> Lab:
        """Start everything and wait until it can be used. Nothing is left running if that fails."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            start_clusters(self.source, self.target)
            for cluster in (self.source, self.target):
                if isinstance(cluster, SecureCluster):
                    cluster.add_users()
            for path, cluster in ((self.source_properties, self.source), (self.target_properties, self.target)):
                path.write_text(f"bootstrap.servers={cluster.bootstrap}\n")
            self.change_mirror(self.options)
            if self._start_mirror:
                self.mirror.start()
                self.mirror.wait_ready()
        except BaseException:
            self.down()
            raise
        return self

    def change_mirror(self, options: MirrorOptions) -> MirrorMaker:
        """Kill the present MM2, if any, and configure another between the same clusters; it is not started.

        Give it aliases of its own, so that it does not take up what the one before has left.
        """
        if self._mirror is not None:
            self._mirror.kill()
        self.options = options
        kind = ConnectMirror if options.connect else MirrorMaker
        folder = self.folder / "mirror" / f"{options.source_alias}-to-{options.target_alias}"
        ends = self.source.bootstrap, self.target.bootstrap
        self._mirror = kind(folder, *ends, options, self.versions.mirror, self.mm2_properties)
        return self._mirror

    def down(self) -> None:
        """Kill everything, without ceremony."""
        if self._mirror is not None:
            self._mirror.kill()
        for cluster in (self.source, self.target):
            for broker in cluster.brokers:
                broker.formatter.kill()
            cluster.kill()

    def __enter__(self) -> Lab:
        return self.up()

    def __exit__(self, *_: object) -> None:
        self.down()

    def kafka_tool(self, main_class: str, *args: str) -> subprocess.CompletedProcess[str]:
        """Run one of Kafka's command line tools by its main class; output is captured, status not checked."""
        return subprocess.run(
            java_command(self.jars, main_class, *args),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=TOOL_DEADLINE_SECONDS,
        )
