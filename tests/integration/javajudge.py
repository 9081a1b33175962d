"""The judge of what stands on a cluster: Kafka's own Admin client, in a JVM of its own, and no client of ours."""

import subprocess
import threading
from base64 import b64decode, b64encode
from pathlib import Path
from typing import IO, Self

from tests.lab.cluster import Cluster
from tests.lab.jars import compiled
from tests.lab.process import java_command

PROGRAM = Path(__file__).with_name("Commits.java")
DEADLINE_SECONDS = 120.0
HeldByGroup = dict[str, dict[tuple[str, int], tuple[int, str]]]
"""By group, topic and partition: offset and metadata. A group without commits is there, and empty."""


class JavaJudge:
    """Reads and sets commits; ends with its owner, whose end of the pipe it reads from."""

    def __init__(self, cluster: Cluster) -> None:
        self._log = (cluster.folder / "judge.log").open("wb")
        self._process = subprocess.Popen(
            java_command(cluster.jars, PROGRAM.stem, cluster.bootstrap, own_classes=compiled(PROGRAM, cluster.jars)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._log.close()

    def held(self) -> HeldByGroup:
        """Every group of the cluster with all it has committed."""
        found: HeldByGroup = {}
        for line in self._answer("read\n", 1):
            kind, group, *rest = line.split(" ")
            held = found.setdefault(_decoded(group), {})
            if kind == "commit":
                topic, partition, offset, metadata = rest
                held[_decoded(topic), int(partition)] = (int(offset), _decoded(metadata))
        return found

    def commit(self, wanted: HeldByGroup) -> None:
        """Set commits, metadata and all."""
        lines = [
            f"commit {_encoded(group)} {_encoded(topic)} {p} {offset} {_encoded(metadata)}\n"
            for group, places in wanted.items()
            for (topic, p), (offset, metadata) in places.items()
        ]
        self._answer("".join(lines), len(lines))

    def _answer(self, commands: str, dots: int) -> list[str]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        timer = threading.Timer(DEADLINE_SECONDS, self._process.kill)
        timer.start()
        writer = threading.Thread(target=_write, args=(stdin, commands))
        writer.start()
        try:
            lines: list[str] = []
            while dots:
                line = stdout.readline()
                assert line, f"the judge ended: {Path(self._log.name).read_text()[-2000:]}"
                if line == ".\n":
                    dots -= 1
                else:
                    lines.append(line.rstrip("\n"))
            return lines
        finally:
            timer.cancel()
            writer.join()


def _write(stream: IO[str], text: str) -> None:
    stream.write(text)
    stream.flush()


def _encoded(text: str) -> str:
    return b64encode(text.encode()).decode()


def _decoded(text: str) -> str:
    return b64decode(text).decode()
