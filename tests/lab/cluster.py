"""A Kafka cluster in KRaft mode on this machine alone, made of processes that belong to this one."""

from __future__ import annotations

import base64
import os
import shutil
import socket
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from tests.lab.classes import archive, keep_classes
from tests.lab.jars import DEFAULT_VERSION, kafka_jars, version_tuple
from tests.lab.ports import HOST, family_of, free_ports
from tests.lab.process import GuardedProcess, java_command
from tests.lab.waiting import LabError, wait_until

OFFSETS_PARTITIONS = 5
START_DEADLINE_SECONDS = 90.0
START_ATTEMPTS = 4
BROKER_HEAP = "512m"
QUIET_CLIENT = {"log_level": 0}
# What a formatted storage says of the features that a cluster begins with.
FEATURES = "bootstrap.checkpoint"


def random_id() -> str:
    """A cluster's or a folder's id, as Kafka writes it."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "a")


def address(host: str, port: int) -> str:
    """host:port as Kafka writes it: an IPv6 address has brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Broker:
    """One node. The first nodes of a cluster are also its controllers.

    `start`, `stop` and `kill` act on this node alone; ports and data stay the same.
    """

    def __init__(self, cluster: Cluster, node_id: int) -> None:
        self.node_id = node_id
        self.folder = cluster.folder / f"node-{node_id}"
        self.port = 0
        self.controller_port = 0
        self._cluster = cluster
        self._properties = self.folder / "server.properties"
        jars, log = cluster.jars, self.folder / "server.log"
        name = f"broker {node_id} of cluster {cluster.name}"
        self._classes = archive(jars, "kafka.Kafka")
        java, *words = java_command(
            jars, "kafka.Kafka", str(self._properties), heap=cluster.heap, own_classes=cluster.own_classes
        )
        command = [java, *cluster.jvm_flags, *words]
        self.process = GuardedProcess(name, command, log)
        format_args = ("format", "-t", cluster.cluster_id, "-c", str(self._properties))
        command = java_command(jars, "kafka.tools.StorageTool", *format_args, heap="128m")
        self.formatter = GuardedProcess(f"storage format of {name}", command, self.folder / "format.log")

    @property
    def bootstrap(self) -> str:
        return address(self._cluster.host, self.port)

    @property
    def formatted(self) -> bool:
        return (self.folder / "data" / "meta.properties").is_file()

    def format(self) -> None:
        """Format the storage, with what Kafka's own tool said of the features of this version when it was asked first.

        That is the same in all clusters, and the tool takes as long as half a broker's start.
        """
        known, data = self._cluster.jars / FEATURES, self.folder / "data"
        if known.is_file():
            data.mkdir(parents=True)
            shutil.copy(known, data / FEATURES)
            identity = {"version": 1, "cluster.id": self._cluster.cluster_id, "node.id": self.node_id}
            lines = identity | {"directory.id": random_id()}
            (data / "meta.properties").write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
            return
        self.formatter.start()
        if self.formatter.wait_exit(START_DEADLINE_SECONDS) != 0:
            raise LabError(f"{self.formatter.name} failed\n{self.formatter.log_tail()}")
        # Kafka 4.4 writes them elsewhere, beside what only this node has.
        if (data / FEATURES).is_file():
            mine = known.with_suffix(f".{os.getpid()}")
            shutil.copy(data / FEATURES, mine)
            mine.replace(known)

    def start(self) -> None:
        """Start the node on its ports and wait until the cluster lists it."""
        self.launch()
        self.wait_ready()

    def launch(self) -> None:
        """Start the JVM only; `wait_ready` does the waiting."""
        self.process.start()

    def wait_ready(self, deadline_seconds: float = START_DEADLINE_SECONDS) -> None:
        self.process.wait_ready(self._answers, deadline_seconds, "the broker answered")
        keep_classes(self.process.pid, self._classes)

    def stop(self, deadline_seconds: float = 60.0) -> bool:
        """A controlled shutdown; False if it had to be killed after the deadline."""
        return self.process.stop(deadline_seconds)

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()

    def write_properties(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        settings = self._cluster.settings(self)
        self._properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))

    def _answers(self) -> bool:
        with socket.socket(family_of(self._cluster.host)) as probe:
            probe.settimeout(1.0)
            if probe.connect_ex((self._cluster.host, self.port)) != 0:
                return False
        try:
            return self.node_id in self._cluster.admin(self.bootstrap).list_topics(timeout=2.0).brokers
        except KafkaException:
            return False


class Cluster:
    """A named cluster of one or more nodes below a folder of its own.

    `controllers` of the nodes vote (an odd number): with three, any one may die. `overrides` adds to or replaces
    lines of every node's server.properties. Topics are not created automatically: use `create_topic`.
    """

    # What brokers' Java is started with, beside what every Java program of the lab has.
    jvm_flags: tuple[str, ...] = ()
    own_classes: Path | None = None
    heap = BROKER_HEAP
    # The address that every node listens on.
    host = HOST

    def __init__(
        self,
        name: str,
        folder: Path,
        version: str = DEFAULT_VERSION,
        brokers: int = 1,
        overrides: Mapping[str, str] | None = None,
        controllers: int = 1,
    ) -> None:
        self.name = name
        self.folder = folder
        self.version = version
        self.jars = kafka_jars(version)
        self.cluster_id = random_id()
        self.overrides = dict(overrides or {})
        self.brokers = [Broker(self, node_id) for node_id in range(1, brokers + 1)]
        self.controllers = self.brokers[:controllers]

    @property
    def bootstrap(self) -> str:
        """host:port of every node, comma separated."""
        return ",".join(broker.bootstrap for broker in self.brokers)

    def start(self) -> None:
        """Start every node (formatting its storage the first time) and wait until clients are served."""
        start_clusters(self)

    def stop(self, deadline_seconds: float = 60.0) -> None:
        """A controlled shutdown, the controller last."""
        for broker in reversed(self.brokers):
            broker.stop(deadline_seconds)

    def kill(self) -> None:
        """kill -9 of every node."""
        for broker in self.brokers:
            broker.kill()

    def restart(self) -> None:
        """Stop and start, same ports and same data."""
        self.stop()
        self.start()

    def pids(self) -> list[int]:
        return [broker.process.pid for broker in self.brokers if broker.process.pid and broker.process.running]

    def admin(self, bootstrap: str | None = None) -> AdminClient:
        return AdminClient({"bootstrap.servers": bootstrap or self.bootstrap, **QUIET_CLIENT})

    def create_topic(
        self, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None, replicas: int = 1
    ) -> None:
        """Create a topic and wait until every node knows it."""
        new = NewTopic(topic, num_partitions=partitions, replication_factor=replicas, config=dict(config or {}))
        admin = self.admin()
        admin.create_topics([new])[topic].result(30)

        def known() -> bool:
            # A client's first metadata comes from the node that it was given.
            told = [self.admin(broker.bootstrap).list_topics(timeout=30.0).topics.get(topic) for broker in self.brokers]
            return all(found is not None and len(found.partitions) == partitions for found in told)

        wait_until(known, 30, f"topic {topic} on cluster {self.name}")

    def settings(self, broker: Broker) -> dict[str, str]:
        """The server.properties of one node."""
        listeners, votes = f"PLAINTEXT://{broker.bootstrap}", broker in self.controllers
        voters = (f"{c.node_id}@{address(self.host, c.controller_port)}" for c in self.controllers)
        controller = f"CONTROLLER://{address(self.host, broker.controller_port)}"
        copies = str(min(len(self.brokers), 3))
        settings = {
            "process.roles": "broker,controller" if votes else "broker",
            "node.id": str(broker.node_id),
            "controller.quorum.voters": ",".join(voters),
            "listeners": f"{listeners},{controller}" if votes else listeners,
            "advertised.listeners": listeners,
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": str(broker.folder / "data"),
            "auto.create.topics.enable": "false",
            "num.network.threads": "2",
            "num.io.threads": "4",
            "offsets.topic.replication.factor": copies,
            "offsets.topic.num.partitions": str(OFFSETS_PARTITIONS),
            "offsets.retention.check.interval.ms": "10000",
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "5",
            "group.initial.rebalance.delay.ms": "0",
            "log.cleaner.dedupe.buffer.size": "16777216",
            "log.cleaner.backoff.ms": "1000",
            # How long the cluster takes to accept that a killed broker, or group member, is gone.
            "broker.session.timeout.ms": "4000",
            "broker.heartbeat.interval.ms": "1000",
            "group.min.session.timeout.ms": "1000",
            "log.retention.check.interval.ms": "1000",
            "log.initial.task.delay.ms": "1000",
            "log.segment.delete.delay.ms": "1000",
        }
        if version_tuple(self.version) >= (4, 0, 0):
            settings["share.coordinator.state.topic.replication.factor"] = copies
            settings["share.coordinator.state.topic.min.isr"] = "1"
        return settings | self.overrides

    def pick_ports(self) -> None:
        ports = iter(free_ports(len(self.brokers) + len(self.controllers), self.host))
        for broker in self.brokers:
            broker.port = next(ports)
        for broker in self.controllers:
            broker.controller_port = next(ports)

    def port_clash(self) -> bool:
        return any(
            not broker.process.running and "Address already in use" in broker.process.log_tail(60)
            for broker in self.brokers
        )

    def launch(self) -> None:
        for broker in self.brokers:
            broker.write_properties()
            if not broker.process.running:
                broker.launch()

    def wait_ready(self, deadline_seconds: float = START_DEADLINE_SECONDS) -> None:
        for broker in self.brokers:
            broker.wait_ready(deadline_seconds)


def start_clusters(*clusters: Cluster) -> None:
    """Start several clusters side by side, which takes hardly longer than starting one.

    Ports are chosen at the first start and kept after that. If a program outside the lab takes one of them in
    between, the first start is tried again with others.
    """
    fresh = [cluster for cluster in clusters if cluster.brokers[0].port == 0]
    for cluster in fresh:
        cluster.pick_ports()
    formatting = [broker for cluster in clusters for broker in cluster.brokers if not broker.formatted]
    for broker in formatting:
        broker.write_properties()
        broker.format()
    for cluster in clusters:
        cluster.launch()
    for cluster in clusters:
        for attempt in range(START_ATTEMPTS):
            try:
                cluster.wait_ready()
                break
            except LabError as error:
                if cluster not in fresh or not cluster.port_clash() or attempt == START_ATTEMPTS - 1:
                    raise
                print(f"trying other ports: {str(error).splitlines()[0]}", file=sys.stderr)
                cluster.kill()
                cluster.pick_ports()
                for broker in cluster.brokers:
                    broker.process.log_file.unlink(missing_ok=True)
                cluster.launch()
