"""A Connect worker on one cluster that runs sink connectors, told what to do by its REST alone."""

from pathlib import Path
from typing import Any, Self

from tests.lab.connect import BYTES, ask
from tests.lab.jars import fetched, kafka_jars
from tests.lab.ports import HOST, free_ports
from tests.lab.process import GuardedProcess, java_command

START_SECONDS = 120.0


class SinkWorker:
    """A distributed worker, with Kafka's own `FileStreamSink` as a plugin; stopped with its owner."""

    def __init__(self, folder: Path, bootstrap: str, version: str) -> None:
        folder.mkdir()
        self.port = free_ports(1)[0]
        file_sink = ("org.apache.kafka", "connect-file", version)
        lines = {
            "bootstrap.servers": bootstrap,
            "group.id": "sinks",
            "listeners": f"http://{HOST}:{self.port}",
            "key.converter": BYTES,
            "value.converter": BYTES,
            "offset.flush.interval.ms": "500",
            "plugin.path": str(fetched(f"connect-file-{version}", "Kafka's file connectors", [file_sink])),
        }
        for kind in ("config", "offset", "status"):
            lines |= {f"{kind}.storage.topic": f"sinks-{kind}", f"{kind}.storage.replication.factor": "1"}
        lines |= {"offset.storage.partitions": "1", "status.storage.partitions": "1"}
        file = folder / "worker.properties"
        file.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
        command = java_command(kafka_jars(version), "org.apache.kafka.connect.cli.ConnectDistributed", str(file))
        self.process = GuardedProcess("Connect worker of sinks", command, folder / "worker.log")

    def __enter__(self) -> Self:
        self.process.start()
        self.process.wait_ready(lambda: self.ask("GET", "/connectors")[0] == 200, START_SECONDS, "REST answered")
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()

    def ask(self, method: str, path: str, body: str | None = None) -> tuple[int, Any]:
        return ask(self.port, method, path, body)
