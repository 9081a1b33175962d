"""MirrorMaker 2's connectors in a distributed Connect worker that belongs to this process.

Beside the dedicated mode it differs in what many shared workers do: the worker's own header converter,
SimpleHeaderConverter, writes header values anew, and MM2's progress lies in the worker's offsets topic.
"""

from __future__ import annotations

import json
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from tests.lab.jars import DEFAULT_VERSION
from tests.lab.mirror import READY_DEADLINE_SECONDS, MirrorMaker
from tests.lab.options import IDENTITY_POLICY, ONE_EACH, MirrorOptions
from tests.lab.ports import HOST, free_ports
from tests.lab.waiting import LabError, wait_until

BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
CALL_SECONDS = 30.0
CREATED_OR_SAME = (200, 201)
REBALANCING = 409


def worker_lines(options: MirrorOptions, target_bootstrap: str, port: int) -> dict[str, str]:
    """The worker's properties: it lives on the target, and leaves the header converter at its default."""
    return {
        "bootstrap.servers": target_bootstrap,
        "group.id": f"connect-{options.source_alias}",
        "listeners": f"http://{HOST}:{port}",
        "rest.advertised.host.name": HOST,
        "key.converter": BYTES,
        "value.converter": BYTES,
        "config.storage.topic": f"connect-{options.source_alias}-configs",
        "offset.storage.topic": options.connect_offsets_topic,
        "status.storage.topic": f"connect-{options.source_alias}-status",
        **dict.fromkeys((key for key in ONE_EACH if ".storage." in key), "1"),
        "offset.flush.interval.ms": "1000",
        "plugin.discovery": "service_load",
        # A killed worker is forgotten soon, and its work handed to the next one without delay.
        "session.timeout.ms": "4000",
        "heartbeat.interval.ms": "1000",
        "scheduled.rebalance.max.delay.ms": "0",
    } | ({"exactly.once.source.support": "enabled"} if options.exactly_once else {})


def connector_lines(options: MirrorOptions, source_bootstrap: str, target_bootstrap: str) -> dict[str, dict[str, str]]:
    """The configurations of the three connectors, by connector name. `source_connector` lines win."""
    common = {
        "source.cluster.alias": options.source_alias,
        "target.cluster.alias": options.target_alias,
        "source.cluster.bootstrap.servers": source_bootstrap,
        "target.cluster.bootstrap.servers": target_bootstrap,
        "offset-syncs.topic.location": options.offset_syncs_location,
        "topics": options.topics,
        "groups": options.groups,
        "replication.policy.separator": options.separator,
        "consumer.poll.timeout.ms": "200",
    }
    if options.policy == "identity":
        common["replication.policy.class"] = IDENTITY_POLICY
    source = common | {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "tasks.max": str(options.tasks_max),
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "offset.lag.max": str(options.offset_lag_max),
        "refresh.topics.interval.seconds": "1",
        "sync.topic.acls.enabled": "false",
    }
    if options.exactly_once:
        source |= {"exactly.once.support": "required", "source.consumer.isolation.level": "read_committed"}
    checkpoint = common | {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorCheckpointConnector",
        "checkpoints.topic.replication.factor": "1",
        "emit.checkpoints.interval.seconds": "1",
        "refresh.groups.interval.seconds": "1",
        "sync.group.offsets.enabled": str(options.sync_group_offsets).lower(),
        "sync.group.offsets.interval.seconds": "1",
    }
    heartbeat = common | {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector",
        "heartbeats.topic.replication.factor": "1",
        "emit.heartbeats.interval.seconds": "1",
    }
    name = f"{options.source_alias}-to-{options.target_alias}"
    return {
        f"{name}-source": source | dict(options.source_connector),
        f"{name}-checkpoint": checkpoint,
        f"{name}-heartbeat": heartbeat,
    }


def ask(port: int, method: str, path: str, body: str | None = None) -> tuple[int, Any]:
    """Ask a worker here; return status and document of its answer, or (0, the reason) where there was none."""
    connection = HTTPConnection(HOST, port, timeout=CALL_SECONDS)
    try:
        connection.request(method, path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"null")
    except (OSError, HTTPException, json.JSONDecodeError) as error:
        return 0, str(error)
    finally:
        connection.close()


class ConnectMirror(MirrorMaker):
    """One distributed Connect worker that runs MM2's connectors; used like a `MirrorMaker`.

    The connectors are handed over by REST in the first `wait_ready`. They are stored on the target, so that a
    later run of the worker takes them up by itself, also after a kill. `properties_path` is written all the same:
    it describes the flow to a tool that reads mm2.properties.
    """

    main_class = "org.apache.kafka.connect.cli.ConnectDistributed"

    def __init__(
        self,
        folder: Path,
        source_bootstrap: str,
        target_bootstrap: str,
        options: MirrorOptions | None = None,
        version: str = DEFAULT_VERSION,
        properties_path: Path | None = None,
    ) -> None:
        self.worker_path = folder / "worker.properties"
        self.port = free_ports(1)[0]
        super().__init__(folder, source_bootstrap, target_bootstrap, options, version, properties_path)

    @property
    def main_file(self) -> Path:
        return self.worker_path

    @property
    def copying_client(self) -> str:
        return f"connector-producer-{self.options.source_alias}-to-{self.options.target_alias}-source"

    @property
    def recording_client(self) -> str:
        return f"connect-{self.options.source_alias}-offsets"

    def write_properties(self) -> None:
        super().write_properties()
        lines = worker_lines(self.options, self.progress.target_bootstrap, self.port)
        self.worker_path.parent.mkdir(parents=True, exist_ok=True)
        self.worker_path.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))

    def wait_ready(self, deadline_seconds: float = READY_DEADLINE_SECONDS) -> None:
        """Wait until the worker answers, hand it connectors it does not have, and wait for MM2 as usual."""
        self.process.wait_ready(
            lambda: ask(self.port, "GET", "/connectors")[0] == 200, deadline_seconds, "REST answered"
        )
        connectors = connector_lines(self.options, self.progress.source_bootstrap, self.progress.target_bootstrap)
        for name, lines in connectors.items():
            self._put(name, lines, deadline_seconds)
        super().wait_ready(deadline_seconds)

    def _put(self, name: str, lines: dict[str, str], deadline_seconds: float) -> None:
        if ask(self.port, "GET", f"/connectors/{name}/config")[1] == lines | {"name": name}:
            return
        answers: list[Any] = []

        def taken() -> bool:
            code, text = ask(self.port, "PUT", f"/connectors/{name}/config", json.dumps(lines))
            answers.append(text)
            if code not in (*CREATED_OR_SAME, REBALANCING, 0):
                raise LabError(f"the Connect worker does not take {name}: {text}")
            return code in CREATED_OR_SAME

        wait_until(taken, deadline_seconds, f"the Connect worker to take {name}", lambda: str(answers[-1]))
