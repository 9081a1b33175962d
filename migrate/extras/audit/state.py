"""The folder in which an audit keeps what it has read: sums of stretches, never a record's content.

One file of JSON lines, each whole or not there: what a kill leaves at its end is cut off. A line begins a topic, adds
the sums of some offsets, tells what the target has beyond them, or is what a run has found. Folder and file are their
owner's alone, for the file holds the salt of the fingerprints.
"""

import fcntl
import json
import os
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from migrate.errors import MigrateError, Refused, UsageError
from migrate.extras.audit.stretches import Cut, Ranges, Stretch, Sums, TopicSums
from migrate.extras.audit.verdict import Category, Named
from migrate.match.equality import Equality
from migrate.model import LogRange, Side
from migrate.whole_file import replacing, reporting_unwritable

FORMAT = 1
FIRST_NAMED = 10
FILE, FOUND = "audit.jsonl", "found.jsonl"
"""What was read, and every record that is named, of the last run."""


@dataclass
class State:
    """What a folder holds. `salt` is a number of 63 bits, `result` the document of the last run that ended, if any.

    `part` says which part of the logs it is about, "" for all: sums of another part do not add up with these.
    """

    folder: Path
    salt: int
    cluster_ids: tuple[str, str]
    part: str
    topics: dict[str, TopicSums] = field(default_factory=dict)
    result: Mapping[str, Any] | None = None

    def begin(self, topic: TopicSums) -> None:
        """Begin a topic, anew if it was there."""
        self._write(
            {
                "topic": topic.topic,
                "target": topic.target,
                "ids": [topic.source_id, topic.target_id],
                "equality": topic.cut.equality,
                "width_ms": topic.cut.width_ms,
                "stretches": topic.cut.stretches,
            }
        )
        self.topics[topic.topic] = topic

    def add(self, topic: str, side: Side, ranges: Ranges, found: Mapping[Stretch, Sums]) -> None:
        """Keep the sums of some more offsets of a topic that has begun."""
        sums = [
            [*stretch, each.records, *each.words, each.first_offset, each.last_offset]
            for stretch, each in found.items()
        ]
        read = [[partition, log.start, log.end] for partition, log in ranges.items()]
        self._write({"read": topic, "side": side, "ranges": read, "sums": sums})
        self.topics[topic].add(side, ranges, found)

    def settle(self, topic: str, found: Mapping[Stretch, Mapping[Category, int]]) -> None:
        """Keep of some stretches what the target has beyond their copied records, as far as was read."""
        self._write({"settled": topic, "extras": [[*stretch, counts] for stretch, counts in found.items()]})
        for stretch, counts in found.items():
            self.topics[topic].settle(stretch, counts)

    def end(self, result: Mapping[str, Any]) -> None:
        """Keep what a run has found."""
        self._write({"result": result})
        self.result = result

    def _write(self, line: Mapping[str, Any]) -> None:
        path = self.folder / FILE
        with reporting_unwritable(path, f"{path} cannot be written"), _appending(path) as file:
            file.write(json.dumps(line).encode() + b"\n")


@contextmanager
def opened_state(folder: Path, cluster_ids: tuple[str, str], part: str = "") -> Iterator[State]:
    """Yield what a folder holds of these clusters, by their ids, to nobody else; makes the folder where there is none.

    What a kill has left at the end of its file is cut off.

    Raises `Refused` for a folder with something else in it, or with an audit of other clusters, or of another part of
    their logs, `UsageError` and `MigrateError` where it cannot be written.
    """
    path = folder / FILE
    with reporting_unwritable(folder, f"{folder} cannot be made"):
        folder.mkdir(mode=0o700, exist_ok=True)
        if not path.exists() and any(folder.iterdir()):
            raise Refused(f"{folder} is not empty, and holds no audit.", "Name another folder with --state.")
    with reporting_unwritable(path, f"{path} cannot be written"), _appending(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Refused(f"Another audit writes to {folder}.", "Wait for it, or name another folder.") from error
        whole = _whole(path.read_bytes())
        os.truncate(path, len(whole))
        if whole:
            state = _read(folder, whole)
            if state.cluster_ids != cluster_ids:
                raise Refused(f"{folder} holds an audit of other clusters.", "Name another folder with --state.")
            if state.part != part:
                held, asked = (each or "whole logs" for each in (state.part, part))
                raise Refused(
                    f"{folder} holds an audit of {held}, not of {asked}.", "Name another folder with --state."
                )
        else:
            state = State(folder, secrets.randbits(63), cluster_ids, part)
            state._write({"audit": FORMAT, "salt": state.salt, "clusters": list(cluster_ids), "part": part})
        yield state


def read_state(folder: Path) -> State:
    """Return what a folder holds, and change nothing. Raises `UsageError` where it holds no audit."""
    path = folder / FILE
    try:
        whole = _whole(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{folder} cannot be read: {error.strerror}.", "Name the folder of an audit.") from error
    return _read(folder, whole)


def last_result(folder: Path) -> Mapping[str, Any]:
    """Return what the last run in a folder found. Raises `UsageError` where none has ended, and as `read_state`."""
    state = read_state(folder)
    if state.result is None:
        raise UsageError(f"No audit in {folder} has ended yet.", "Run `audit run` again: it goes on.")
    return state.result


def named_lines(folder: Path) -> Iterator[Mapping[str, Any]]:
    """Yield every record that the last run has named.

    Raises `UsageError` if its file cannot be read, and `MigrateError` if it is damaged.
    """
    path, again = folder / FOUND, "Run `audit run` again: it is written anew."
    number = 0
    try:
        with path.open("rb") as file:
            for line in file:
                number += 1
                yield json.loads(line)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.", again) from error
    except ValueError as error:
        raise MigrateError(f"{path} is damaged in line {number}.", again) from error


def _whole(data: bytes) -> bytes:
    """Return the lines that are there whole."""
    return data[: data.rfind(b"\n") + 1]


def _read(folder: Path, whole: bytes) -> State:
    path = folder / FILE
    try:
        head, *lines = map(json.loads, whole.splitlines())
        if head["audit"] != FORMAT:
            raise UsageError(f"{path} is of another version of mm2-migrate.", "Begin a new folder.")
        state = State(folder, head["salt"], (head["clusters"][0], head["clusters"][1]), head["part"])
        for line in lines:
            _take(state, line)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise MigrateError(f"{path} is damaged.", "Begin a new folder.") from error
    return state


def _take(state: State, line: Mapping[str, Any]) -> None:
    if "result" in line:
        state.result = line["result"]
    elif "topic" in line:
        cut = Cut(Equality(line["equality"]), line["width_ms"], line["stretches"])
        state.topics[line["topic"]] = TopicSums(line["topic"], line["target"], line["ids"][0], line["ids"][1], cut)
    elif "settled" in line:
        for partition, number, counts in line["extras"]:
            known = {Category(category): count for category, count in counts.items()}
            state.topics[line["settled"]].settle(Stretch(partition, number), known)
    else:
        found = {Stretch(*row[:2]): Sums(row[2], tuple(row[3:7]), *row[7:]) for row in line["sums"]}
        ranges = {partition: LogRange(start, end) for partition, start, end in line["ranges"]}
        state.topics[line["read"]].add(Side(line["side"]), ranges, found)


@contextmanager
def _appending(path: Path) -> Iterator[IO[bytes]]:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


@dataclass(frozen=True)
class NamedFile:
    """Where every record that is named goes, a JSON line each."""

    file: IO[bytes]

    def take(self, topic: str, records: Iterable[Named]) -> tuple[tuple[Named, ...], tuple[int, int] | None]:
        """Write them all; return the first few of each category, and the least and greatest time of what is missing.

        Where not all of them can be read, none is written: a retry would write some twice.
        """
        begins = self.file.tell()
        try:
            return self._write(topic, records)
        except Exception:
            self.file.seek(begins)
            self.file.truncate()
            raise

    def _write(self, topic: str, records: Iterable[Named]) -> tuple[tuple[Named, ...], tuple[int, int] | None]:
        first: list[Named] = []
        counts: Counter[Category] = Counter()
        times: tuple[int, int] | None = None
        for each in records:
            line = {"topic": topic, "partition": each.partition, "offset": each.offset, "time_ms": each.time_ms}
            self.file.write(json.dumps({"category": each.category, **line}).encode() + b"\n")
            counts[each.category] += 1
            if counts[each.category] <= FIRST_NAMED:
                first.append(each)
            if each.category is Category.MISSING:
                low, high = times or (each.time_ms, each.time_ms)
                times = min(low, each.time_ms), max(high, each.time_ms)
        return tuple(first), times


@contextmanager
def named_file(folder: Path) -> Iterator[NamedFile]:
    """Yield what takes the place of the folder's file of named records in the end."""
    path = folder / FOUND
    with reporting_unwritable(path, f"{path} cannot be written"), replacing(path) as file:
        yield NamedFile(file)
