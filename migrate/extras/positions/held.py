"""Positions that readers keep outside Kafka: what is asked for, what was read, and what is wrong with a line.

A *holder* is whoever keeps a position: a Spark query, a Flink job, a table of offsets. What it keeps means the next
record that it wants, or the last that it has processed (`Meaning`); from here on a position is always the next one.
"""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple, NoReturn, Protocol

from migrate.commit_table import GroupCommits
from migrate.errors import MigrateError, UsageError
from migrate.model import Commit, Commits, Failure, TopicPartition
from migrate.ports import Progress
from migrate.text import name

COLUMNS = ("holder", "topic", "partition", "offset")
MEANING = "meaning"
# What `positions print --format csv` prints beside them, so that its own output can be read again.
PRINTED_BESIDE = ("grade", "rereads_at_most")
_KNOWN = frozenset({*COLUMNS, MEANING, *PRINTED_BESIDE})
LARGEST_PARTITION, LARGEST_OFFSET = 2**31 - 1, 2**63 - 1
# Spark's words for "from the end" and "from the beginning".
_NOT_STARTED = {-1: "latest", -2: "earliest"}
_LONGEST_TOPIC = 249
EXPECTED = "holder,topic,partition,offset[,meaning]"


class HolderKind(StrEnum):
    """Where the positions of a holder were read: in a file of its owner's, or in a Spark checkpoint folder."""

    FILE = "file"
    SPARK_CHECKPOINT = "spark-checkpoint"


class Meaning(StrEnum):
    """What a holder means by its position: the next record that it wants, or the last that it has processed."""

    NEXT = "next"
    LAST = "last"


class HeldPosition(NamedTuple):
    """The next record that a holder wants of a partition of the source; `meaning` is that of the number it keeps."""

    holder: str
    topic: str
    partition: int
    source_next: int
    meaning: Meaning = Meaning.NEXT


@dataclass(frozen=True, slots=True)
class CheckpointAsked:
    """A Spark checkpoint folder, and the name that its holder goes by.

    `batch` is the number of an earlier batch whose offsets are wanted too; None for none.
    """

    holder: str
    url: str
    batch: int | None = None


@dataclass(frozen=True, slots=True)
class PositionsAsked:
    """What was given of positions: files and checkpoint folders, sinks to look at, and holders that keep a state."""

    files: tuple[str, ...] = ()
    checkpoints: tuple[CheckpointAsked, ...] = ()
    sinks: Mapping[str, str] = field(default_factory=dict)
    stateful: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Origin:
    """Where positions were read: a file, or the folder of one holder.

    `holder` is "" for a file, which may be of several. `sha256` is over its content, and is what tells whether it has
    changed. `batch` is the number of the batch whose offsets these are, and `content` the text of its file, which a
    rewritten one is made from; None and "" for a file. `is_stateful` is True for a query that keeps a state.
    """

    origin: str
    kind: HolderKind
    sha256: str
    holder: str = ""
    batch: int | None = None
    content: str = ""
    is_stateful: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionsRead(Origin):
    """What one file or folder held.

    `open_batch` is the number of a batch that was begun after `batch` and not finished, None where there is none, and
    `open_ends` where it would have ended. `began` are the offsets that the query's sources began at when its checkpoint
    was new, as far as the folder says, and `asked_batch` those of the earlier batch that was asked for, if it is still
    there.
    """

    positions: tuple[HeldPosition, ...]
    open_batch: int | None = None
    open_ends: tuple[HeldPosition, ...] = ()
    began: tuple[HeldPosition, ...] = ()
    asked_batch: tuple[HeldPosition, ...] = ()


class PositionReader(Protocol):
    """Reads positions where their holders keep them; never writes there.

    Raises `UsageError` for what is malformed or not there, `ClusterError` for what cannot be read.
    """

    def file(self, origin: str) -> PositionsRead:
        """Read a file of positions."""

    def checkpoint(self, asked: CheckpointAsked) -> PositionsRead:
        """Read a Spark checkpoint folder."""

    def remembers_batches(self, sink: str) -> bool:
        """Return whether a folder that a query writes to remembers batch numbers."""


@dataclass(frozen=True)
class HeldPositions:
    """All positions of a plan, by holder. `commits` are what `GroupCommits` is of groups: next records wanted.

    `open_ends` are the ends of batches that were begun at these and not finished, of holders that have such a batch.
    `last_meant` are the places of which a holder keeps the last record done. `moved` names the origins that were
    another at a second look; `unread` says why that look failed, "" where it did not. `sinks` say of holders whether
    their sink remembers batch numbers. `groups` are the commits of groups that have a holder's name, on the source.
    """

    reads: tuple[PositionsRead, ...]
    commits: GroupCommits
    open_ends: GroupCommits
    kinds: Mapping[str, HolderKind]
    last_meant: frozenset[tuple[str, str, int]]
    stateful: frozenset[str]
    sinks: Mapping[str, bool] = field(default_factory=dict)
    moved: tuple[str, ...] = ()
    unread: str = ""
    groups: Mapping[str, Commits | Failure] = field(default_factory=dict)

    @property
    def places(self) -> tuple[GroupCommits, ...]:
        """All offsets that are to be translated."""
        return self.commits, self.open_ends


def read_positions(reader: PositionReader, asked: PositionsAsked, progress: Progress) -> HeldPositions:
    """Read all that was asked for, and put it together.

    Raises what a reader raises: a position that cannot be read is never a smaller plan.
    """
    reads = _reads(reader, asked, progress, "reading")
    sinks = {}
    for holder, sink in sorted(asked.sinks.items()):
        progress.step(f"looking whether {name(sink)} remembers batches")
        sinks[holder] = reader.remembers_batches(sink)
    return held(reads, asked, sinks)


def look_again(
    first: HeldPositions, reader: PositionReader, asked: PositionsAsked, progress: Progress
) -> HeldPositions:
    """Read the same again, and name what is another by now: its reader still runs, or somebody writes the file."""
    try:
        again = _reads(reader, asked, progress, "looking again at")
    except MigrateError as error:
        # It could be read a moment ago: whoever changes it is at work.
        return replace(first, moved=tuple(read.origin for read in first.reads), unread=error.problem)
    pairs = zip(first.reads, again, strict=True)
    return replace(first, moved=tuple(before.origin for before, now in pairs if before.sha256 != now.sha256))


def _reads(reader: PositionReader, asked: PositionsAsked, progress: Progress, doing: str) -> list[PositionsRead]:
    reads = []
    for origin in asked.files:
        progress.step(f"{doing} {name(origin)}")
        reads.append(reader.file(origin))
    for checkpoint in asked.checkpoints:
        progress.step(f"{doing} the checkpoint of {name(checkpoint.holder)}")
        reads.append(reader.checkpoint(checkpoint))
    return reads


def held(reads: Sequence[PositionsRead], asked: PositionsAsked, sinks: Mapping[str, bool]) -> HeldPositions:
    """Put together what was read; raises `UsageError` where two places are of one holder."""
    by_holder: dict[str, dict[TopicPartition, Commit]] = {}
    kinds: dict[str, HolderKind] = {}
    origins: dict[str, str] = {}
    last = set()
    for read in reads:
        for holder in dict.fromkeys(position.holder for position in read.positions):
            if holder in origins:
                raise UsageError(
                    f"Holder {name(holder)} is in {read.origin} and in {origins[holder]}: expected each in one place.",
                    "Give one of the two another name.",
                )
            origins[holder], kinds[holder] = read.origin, read.kind
        for holder, topic, partition, source_next, meaning in read.positions:
            by_holder.setdefault(holder, {})[TopicPartition(topic, partition)] = Commit(source_next)
            if meaning is Meaning.LAST:
                last.add((holder, topic, partition))
    for option, named in (("--sink", asked.sinks), ("--stateful", asked.stateful)):
        if unknown := sorted(set(named) - kinds.keys()):
            raise UsageError(
                f"{option} {name(unknown[0])}: no holder of that name has a position.",
                f"Holders: {', '.join(map(name, sorted(kinds)[:5])) or 'none'}.",
            )
    stateful = asked.stateful | {read.holder for read in reads if read.is_stateful}
    ends = {
        read.holder: {TopicPartition(*end[1:3]): Commit(end.source_next) for end in read.open_ends} for read in reads
    }
    return HeldPositions(
        tuple(reads), GroupCommits(by_holder), GroupCommits(ends), kinds, frozenset(last), stateful, sinks
    )


def parse_csv(lines: Iterable[str], origin: str) -> Iterator[HeldPosition]:
    """Yield the positions of a CSV file with a heading (RFC 4180); raises `UsageError` with the line that is wrong."""
    reader = csv.reader(lines, strict=True)
    place = _Place(origin)
    try:
        heading = next(reader, None)
        if heading is None:
            _wrong(origin, 1, "the file is empty", f"a heading {EXPECTED}")
        columns = _columns(heading, origin)
        for cells in reader:
            if not cells:
                continue  # an empty line at the end is no position
            line = reader.line_num
            if len(cells) != len(heading):
                _wrong(origin, line, f"{len(cells)} cells", f"{len(heading)}, as the heading has")
            yield place.position({column: cells[at] for column, at in columns.items()}, line)
    except csv.Error as error:
        _wrong(origin, reader.line_num, f"no CSV ({error})", "quotes that are closed, as RFC 4180 says")


def parse_json_lines(lines: Iterable[str], origin: str, unit: str = "line") -> Iterator[HeldPosition]:
    """Yield the positions of JSON lines, one object each; raises `UsageError` with the line that is wrong."""
    place = _Place(origin, unit)
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            document = json.loads(line)
        except (ValueError, RecursionError) as error:
            _wrong(origin, number, f"no JSON ({str(error)[:80]})", "one object on each line", unit)
        if not isinstance(document, dict):
            _wrong(origin, number, f"{type(document).__name__}, no object", '{"holder":...,"topic":...}', unit)
        if unknown := sorted(document.keys() - _KNOWN):
            _wrong(origin, number, f"a field {name(unknown[0])}", EXPECTED, unit)
        yield place.position(document, number)


def _columns(heading: Sequence[str], origin: str) -> dict[str, int]:
    names = [cell.strip().lstrip("\ufeff").lower() for cell in heading]
    for column in COLUMNS:
        if column not in names:
            _wrong(origin, 1, f"no column {column}", f"the heading {EXPECTED}")
    for cell in names:
        if cell not in _KNOWN:
            _wrong(origin, 1, f"a column {name(cell)}", f"the heading {EXPECTED}")
        if names.count(cell) > 1:
            _wrong(origin, 1, f"two columns {cell}", f"the heading {EXPECTED}")
    return {column: names.index(column) for column in names}


class _Place:
    """Makes positions of one origin, and knows which it has had."""

    def __init__(self, origin: str, unit: str = "line") -> None:
        self._origin, self._unit = origin, unit
        self._seen: dict[tuple[str, str, int], int] = {}

    def position(self, values: Mapping[str, Any], line: int) -> HeldPosition:
        """Return the position of a line; raises `UsageError` where it is none."""

        def wrong(seen: str, expected: str) -> NoReturn:
            _wrong(self._origin, line, seen, expected, self._unit)

        for column in COLUMNS:
            if values.get(column) in (None, ""):
                wrong(f"no {column}", f"{EXPECTED}, all of them filled in")
        holder, topic = values["holder"], values["topic"]
        for column in ("holder", "topic"):
            if not isinstance(values[column], str):
                wrong(f"{column} {values[column]!r}", "a text")
        if not holder.isprintable():
            wrong("a control character in the holder's name", "a name that can be printed")
        if len(topic) > _LONGEST_TOPIC or topic in (".", "..") or not _is_topic(topic):
            wrong(f"topic {name(topic[:60])}", "a topic's name: letters, digits, dots, _ and -, at most 249 of them")
        partition = _number(values["partition"], lambda seen: wrong(f"partition {seen}", "a whole number"))
        offset = _number(values["offset"], lambda seen: wrong(f"offset {seen}", "a whole number"))
        if not 0 <= partition <= LARGEST_PARTITION:
            wrong(f"partition {partition}", f"0 to {LARGEST_PARTITION}")
        if offset in _NOT_STARTED:
            wrong(f"offset {offset}, which is {_NOT_STARTED[offset]} to Spark", "the offset of a reader that has run")
        meaning = _meaning(values.get(MEANING), wrong)
        source_next = offset + (meaning is Meaning.LAST)
        if offset < 0 or source_next > LARGEST_OFFSET:
            wrong(f"offset {offset}", f"0 to {LARGEST_OFFSET}")
        key = (holder, topic, partition)
        if (before := self._seen.setdefault(key, line)) != line:
            wrong(f"{name(holder)} has a position on {topic}-{partition} in {self._unit} {before} too", "one of each")
        return HeldPosition(holder, topic, partition, source_next, meaning)


def _meaning(text: object, wrong: Callable[[str, str], NoReturn]) -> Meaning:
    if text in (None, ""):
        return Meaning.NEXT
    if not isinstance(text, str) or text not in set(Meaning):
        wrong(f"meaning {text!r}", "next (the record wanted next) or last (the last one processed)")
    return Meaning(text)


def _is_topic(text: str) -> bool:
    return all(c.isascii() and (c.isalnum() or c in "._-") for c in text)


def _number(value: object, wrong: Callable[[str], NoReturn]) -> int:
    """Return a whole number that a cell or a field has: what Python alone takes for one is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    digits = value.removeprefix("-") if isinstance(value, str) else ""
    if not isinstance(value, str) or not digits.isdecimal() or not digits.isascii() or len(digits) > 19:
        wrong(repr(value)[:60])
    return int(value)


def _wrong(origin: str, line: int, seen: str, expected: str, unit: str = "line") -> NoReturn:
    raise UsageError(f"{origin}, {unit} {line}: {seen}; expected {expected}.", "Nothing of the file was used.")
