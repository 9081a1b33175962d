"""What scenes of the offsets topic share: a command line, transactions, and what was exported as its judge tells it."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.integration.cli import CommandLine, Ran
from tests.integration.clusters import create_topic
from tests.integration.formatters import Told
from tests.lab.cluster import Cluster

Line = dict[str, Any]
HIDDEN = "a transaction is open there, which hides what any group has committed after it began"
MISSING = ("Not decodable", "Nothing is there", "Not there")


@dataclass(frozen=True)
class Scene:
    """One cluster whose offsets topic holds all kinds of records, and a command line that has it on both sides."""

    cluster: Cluster
    command: CommandLine

    def export(self, out: str, *options: str, form: str = "jsonl") -> Ran:
        clusters = self.command.clusters
        return self.command.run("groups", "export", *clusters, "--format", form, "--out", out, *options)

    def whole(self, out: str, *options: str, form: str = "jsonl") -> Ran:
        """An export that misses nothing but what the open transaction hides, if its partition is read."""
        ran = self.export(out, *options, form=form)
        assert not [line for line in said_by(ran) if line.startswith(MISSING)], str(ran)
        return ran.expect(1 if HIDDEN in ran.stderr else 0)

    def lines(self, out: str, *options: str) -> list[Line]:
        """What is exported as JSON lines."""
        self.whole(out, *options)
        return [json.loads(line) for line in (self.command.folder / out).read_text().splitlines()]


@contextmanager
def running(folder: Path, topics: Mapping[str, int], version: str = "4.3.1", **settings: str) -> Iterator[Cluster]:
    """A cluster with topics of so many partitions; `settings` are its own, with underscores for dots."""
    overrides = {name.replace("_", "."): value for name, value in settings.items()}
    cluster = Cluster("offsets", folder / "kafka", version=version, overrides=overrides)
    try:
        cluster.start()
        for topic, partitions in topics.items():
            create_topic(cluster.bootstrap, topic, partitions)
        yield cluster
    finally:
        cluster.kill()


def scene_of(cluster: Cluster, folder: Path) -> Scene:
    """A scene on a cluster that is there."""
    (folder / "client.properties").write_text(f"bootstrap.servers={cluster.bootstrap}\n")
    file = str(folder / "client.properties")
    options = ("--source-config", file, "--target-config", file, "--source", "A", "--target", "B")
    return Scene(cluster, CommandLine(folder, options, warm=True))


def said_by(ran: Ran) -> list[str]:
    """The lines on stderr, without the time at which each was said."""
    return [re.sub(r"^\[ *[\d.]+ s\] ", "", line) for line in ran.stderr.splitlines()]


def by_key(lines: Sequence[Line], fields: Sequence[str]) -> dict[str, list[Any]]:
    """What was exported, in the form that Kafka's formatters print."""
    found: dict[str, list[Any]] = defaultdict(list)
    for line in sorted(lines, key=lambda line: (line["logPartition"], line["logOffset"])):
        names = [name for name in ("group", "topic", "partition") if name in line]
        key = {"type": line["recordType"], "data": {name: line[name] for name in names}}
        data = {name: line[name] for name in fields}
        value = None if line["tombstone"] else {"version": line["version"], "data": data}
        found[json.dumps(key, sort_keys=True)].append(value)
    return dict(found)


def with_none(said: Told, none: dict[str, Any]) -> Told:
    """The formatters leave out what a version has not, and have words of their own for none."""
    found: Told = {}
    for key, values in said.items():
        found[key] = []
        for value in values:
            if value is None:
                found[key].append(None)
                continue
            data = {name: value["data"].get(name) for name in none}
            data = {name: None if data[name] == none[name] else data[name] for name in data}
            found[key].append({"version": value["version"], "data": data})
    return found


COMMIT_NONE = {"offset": None, "leaderEpoch": -1, "metadata": None, "commitTimestamp": None, "topicId": None}
GROUP_NONE = {
    "protocolType": None, "generation": None, "protocol": None, "leader": None, "currentStateTimestamp": -1,
}  # fmt: skip
