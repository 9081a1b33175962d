"""What a journal says, folded from its events: what was there before, what was done, and the runs that did it. Pure.

- The first backup of each place counts, whatever later runs write: they may see what we set ourselves.
- An intent without an outcome is "unknown": it may have been written.
- Each line carries a checksum: a flipped bit must not become another offset to restore.
- The newest attempt decides. One that failed for sure takes nothing back: what was set before stays set, and what was
  unknown stays unknown. One without an answer makes unknown what was set.
- A place may be written in several rounds, with a value of its own in each: until one is certain, those before it may
  stand there as well.
"""

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from migrate.apply.runs import UNDONE, PastRun
from migrate.errors import UnreadablePlan
from migrate.model import Commit, Commits, TopicPartition, partitions_of

APPLY = "apply"
ROLLBACK = "rollback"
SET = "set"
REMOVED = "removed"
FAILED = "failed"
UNKNOWN = "unknown"
_STRENGTH = {FAILED: 0, UNKNOWN: 1, SET: 2, REMOVED: 2}
_CERTAIN = frozenset({SET, REMOVED})
_SEAL = b',"crc":"'

Offsets = Mapping[TopicPartition, int | None]


@dataclass(frozen=True, slots=True)
class GroupTrace:
    """What one command (apply, or rollback) did to one group, over all its runs.

    `planned` are the offsets that were about to be written (None: to be removed), `results` the strongest
    answer per partition: "set" and "removed" beat "unknown", which beats "failed". An intent without a
    result is "unknown". `read_back` is None until a reading, then whether it was as planned, and `seen` the offsets
    that it showed (None: no offset there). `errors` are what the cluster answered last where a write failed. `metadata`
    is what was to be committed beside `planned`, where that was any. `earlier` are the commits that may stand there in
    place of those that were planned last, oldest first, where these are uncertain and not the first: None for what
    stood there before all of them.
    """

    planned: Offsets
    results: Mapping[TopicPartition, str]
    read_back: bool | None = None
    seen: Offsets = field(default_factory=dict)
    errors: Mapping[TopicPartition, str] = field(default_factory=dict)
    metadata: Mapping[TopicPartition, str] = field(default_factory=dict)
    earlier: Mapping[TopicPartition, tuple[Commit | None, ...]] = field(default_factory=dict)
    # Attempts without an answer so far, with what was known of their rows before.
    _before: Mapping[TopicPartition, str] = field(default_factory=dict)
    # Of those that follow another round: its offset and metadata, and what was earlier than that.
    _instead: Mapping[TopicPartition, "_Round"] = field(default_factory=dict)

    def begun(self, planned: Offsets, metadata: Mapping[TopicPartition, str] = MappingProxyType({})) -> "GroupTrace":
        """Return the trace with an attempt under way: whatever was known before, it may be written now."""
        before = {p: UNKNOWN if p in self._before else self.results.get(p, FAILED) for p in planned}
        instead = {p: round for p, round in self._instead.items() if p not in planned}
        earlier = self.earlier
        for p in planned.keys() & self.planned.keys():
            old = _Round(self.planned[p], self.metadata.get(p, ""), earlier.get(p, ()))
            if before[p] in _CERTAIN or (old.offset, old.metadata) != (planned[p], metadata.get(p, "")):
                instead[p] = old
                if before[p] != FAILED and old.offset is not None:
                    standing = () if before[p] in _CERTAIN else old.earlier or (None,)
                    earlier = {**earlier, p: (*standing, Commit(old.offset, old.metadata))}
        results = {**self.results, **dict.fromkeys(planned, UNKNOWN)}
        if metadata or self.metadata:
            metadata = {p: text for p, text in self.metadata.items() if p not in planned} | {**metadata}
        planned, before = {**self.planned, **planned}, {**self._before, **before}
        return replace(
            self, planned=planned, results=results, metadata=metadata, earlier=earlier, _before=before, _instead=instead
        )

    def answered(self, answers: Iterable[tuple[TopicPartition, str, str, str]]) -> "GroupTrace":
        """Return the trace after answers: each a partition, its status, and the code and message of a failure."""
        results, errors, before = dict(self.results), dict(self.errors), dict(self._before)
        rounds = _Rounds(self) if self._instead or self.earlier else None
        for p, status, code, message in answers:
            known = before.pop(p, None)
            if rounds is not None:
                rounds.answered(p, status, known)
            if known is None:
                # What a later reading found: it may settle what is unknown, and takes nothing back.
                results[p] = max(results.get(p, FAILED), status, key=_STRENGTH.__getitem__)
            else:
                # An attempt that failed for sure leaves all as it was, with earlier attempts still in doubt.
                results[p] = known if status == FAILED else status
            errors.pop(p, None)
            if code:
                errors[p] = f"{code}: {message}"
        rest = rounds.rest() if rounds is not None else {}
        return replace(self, results=results, errors=errors, _before=before, **rest)

    def may_stand(self, partition: TopicPartition) -> tuple[Commit | None, ...]:
        """Return what may stand there by what was written, oldest first: one commit where that is certain.

        None is what stood there before, which may stand there still; without any write that is all.
        """
        offset = self.planned.get(partition) if self.is_written(partition) else None
        if offset is None:
            return (None,)
        newest = Commit(offset, self.metadata.get(partition, ""))
        return (newest,) if self.is_certain(partition) else (*self.earlier.get(partition, (None,)), newest)

    def written(self) -> frozenset[TopicPartition]:
        """Return the partitions that were, or may have been, written."""
        if FAILED not in self.results.values():
            return frozenset(self.planned)
        return frozenset(filter(self.is_written, self.planned))

    def is_written(self, partition: TopicPartition) -> bool:
        """True if this partition was, or may have been, written."""
        return partition in self.planned and self.results.get(partition) != FAILED

    def is_certain(self, partition: TopicPartition) -> bool:
        """True if the cluster acknowledged the write, or a reading found it in place."""
        return self.results.get(partition) in _CERTAIN

    @property
    def has_doubts(self) -> bool:
        """True if a partition is in doubt."""
        if self.planned.keys() <= self.results.keys() and set(self.results.values()) <= _CERTAIN:
            return False
        return any(map(self.is_in_doubt, self.planned))

    @property
    def is_whole(self) -> bool:
        """True if all of it is certain, and no reading speaks against it."""
        return self.read_back is not False and all(map(self.is_certain, self.planned))

    def is_in_doubt(self, partition: TopicPartition) -> bool:
        """True if a write was begun, and nothing says for sure what became of it."""
        return self.is_written(partition) and not self.is_certain(partition)


NOTHING_DONE = GroupTrace({}, {})


class _Round(NamedTuple):
    """A place's offset and metadata of a round, and what was earlier than that."""

    offset: int | None
    metadata: str
    earlier: tuple[Commit | None, ...]


class _Rounds:
    """What answers make of places that were written in several rounds."""

    def __init__(self, trace: GroupTrace) -> None:
        self._planned, self._metadata = dict(trace.planned), dict(trace.metadata)
        self._earlier, self._instead = dict(trace.earlier), dict(trace._instead)

    def answered(self, partition: TopicPartition, status: str, known: str | None) -> None:
        """Take an answer; `known` is what was known before the attempt that it is to, None where it is to none."""
        before = self._instead.pop(partition, None)
        if status in _CERTAIN:
            self._earlier.pop(partition, None)
        elif status == FAILED and before is not None and known is not None:
            # Nothing has taken the place of what was written in the round before.
            self._planned[partition], self._metadata[partition] = before.offset, before.metadata
            self._earlier[partition] = before.earlier
            if not before.earlier:
                del self._earlier[partition]

    def rest(self) -> dict[str, Any]:
        """Return the fields of the trace that the answers have changed."""
        return {
            "planned": self._planned, "metadata": self._metadata, "earlier": self._earlier, "_instead": self._instead,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class JournalState:
    """A journal, folded: prior commits and what was done since. Empty where there is no journal.

    `spends` are all that have spent the plan, in order: "rollback" for each run of it, the fingerprint of an undo
    plan for each run of that. A rollback of some groups alone spends these, `spent_groups`, written or not, and not the
    plan. `runs` are all runs, oldest first. `notes` are what was said first of a group beside what was done to it.
    """

    prior: Mapping[str, Commits] = field(default_factory=dict)
    applied: Mapping[str, GroupTrace] = field(default_factory=dict)
    rolled_back: Mapping[str, GroupTrace] = field(default_factory=dict)
    events: int = 0
    torn: bool = False
    spends: tuple[str, ...] = ()
    runs: tuple[PastRun, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    spent_groups: frozenset[str] = frozenset()

    def last(self, command: str) -> PastRun | None:
        """Return the last run of this command; None if there was none."""
        return next((run for run in reversed(self.runs) if run.command == command), None)

    @property
    def spent_by(self) -> str:
        """The last of `spends`, "" where there is none."""
        return self.spends[-1] if self.spends else ""

    @property
    def is_spent(self) -> bool:
        """True once a rollback of the whole plan was begun: it must not be applied any more."""
        return bool(self.spends)

    def is_restored(self, group: str) -> bool:
        """True if all that was, or may have been, written of a group was restored and read back."""
        trace, back = self.applied.get(group), self.rolled_back.get(group)
        return trace is None or not trace.written() or (back is not None and back.read_back is True)

    @property
    def is_undone(self) -> bool | None:
        """True once rollbacks have restored all that was written; None where only an undo plan's journal says that."""
        if all(map(self.is_restored, self.applied)):
            return True
        if set(self.spends) <= {ROLLBACK}:
            return False
        # What an undo plan had restored before, no later rollback writes.
        last = self.last(ROLLBACK)
        return True if self.spent_by == ROLLBACK and last is not None and last.exit_code == 0 else None

    def traces(self, command: str) -> Mapping[str, GroupTrace]:
        """Return what `command` did, by group."""
        return self.rolled_back if command == ROLLBACK else self.applied


def read_history(content: bytes, name: str, fingerprint: str) -> JournalState:
    """Return what a journal's bytes say; `name` is the file's, for messages.

    Raises `UnreadablePlan` for a damaged line, and for the journal of another plan. A last line without its line
    feed was torn off by a crash: dropped, and reported by `torn`.
    """
    *lines, rest = content.split(b"\n")
    folded = _Folding()
    if rest and _is_whole(rest[:-1]):
        # Not torn off: its line feed has become something else.
        lines, rest = [*lines, rest], b""
    for number, line in enumerate(lines, 1):
        try:
            event = unsealed(line)
            if event["fingerprint"] == fingerprint:
                folded.take(event)
                continue
        except (ValueError, KeyError, TypeError, AttributeError):
            raise UnreadablePlan(
                f"Line {number} of the journal {name} is damaged.",
                "It says what was backed up and written. Restore the file from a copy; do not delete it.",
            ) from None
        raise UnreadablePlan(
            f"Line {number} of the journal {name} belongs to plan {event['fingerprint']}, not to {fingerprint}.",
            "Name the plan file that this journal was written for.",
        )
    return folded.state(len(lines), bool(rest))


def _is_whole(line: bytes) -> bool:
    try:
        unsealed(line)
    except ValueError:
        return False
    return True


class _Folding:
    """The state while events are taken one after the other."""

    def __init__(self) -> None:
        self._prior: dict[str, dict[TopicPartition, Commit]] = {}
        self._saved: dict[str, tuple[TopicPartition, ...]] = {}
        # What later backups saved of places that no round has written yet.
        self._later: dict[str, dict[TopicPartition, Commit | None]] = {}
        self._notes: dict[str, str] = {}
        self._traces: dict[str, dict[str, GroupTrace]] = {APPLY: {}, ROLLBACK: {}}
        self._command = APPLY
        self._spends: list[str] = []
        self._alone: set[str] = set()
        self._runs: list[PastRun] = []

    def state(self, events: int, torn: bool) -> JournalState:
        applied, rolled_back = self._traces[APPLY], self._traces[ROLLBACK]
        spends, runs = tuple(self._spends), tuple(self._runs)
        alone = frozenset(self._alone)
        return JournalState(self._prior, applied, rolled_back, events, torn, spends, runs, self._notes, alone)

    def take(self, event: Mapping[str, Any]) -> None:
        """Fold one event in; a field that is missing or of the wrong kind raises."""
        kind = event["event"]
        if kind in ("intent", "outcome", "readback"):
            self._trace(kind, event["group"], event)
        elif kind == "backup":
            self._back_up(event["group"], event)
        elif kind == "begin":
            self._command = ROLLBACK if event["command"] == ROLLBACK else APPLY
            who, unseen = f"process {event['pid']} on {event['host']}", str(event.get("source_not_seen", ""))
            self._runs.append(PastRun(self._command, event["time"], who, source_not_seen=unseen))
            if self._command == ROLLBACK:
                self._alone.update(event.get("groups", ()))
                self._spends += [ROLLBACK] if "groups" not in event else []
        elif kind == "spent":
            self._spends.append(str(event["by"]))
            if self._runs:
                # Noted before the first write of the undo: how that went stands in its own journal.
                self._runs[-1] = replace(self._runs[-1], command=UNDONE)
        elif kind == "end":
            if self._runs:
                ended, code, counts = event["time"], event["exit_code"], dict(event["counts"])
                self._runs[-1] = replace(self._runs[-1], ended=ended, exit_code=code, counts=counts)
        elif kind == "note":
            self._notes.setdefault(event["group"], str(event["text"]))
        else:
            raise ValueError(kind)

    def _back_up(self, group: str, event: Mapping[str, Any]) -> None:
        places, commits = partitions_of(tuple(event.get("topic", ())), tuple(event["partition"])), _commits(event)
        if (saved := self._saved.get(group)) is None:
            self._saved[group], self._prior[group] = places, commits
        elif self._command == APPLY and (new := set(places).difference(saved)):
            later = self._later.setdefault(group, {})
            later |= {place: commits.get(place) for place in new.difference(later)}

    def _begin_places(self, group: str, planned: Offsets) -> None:
        """Count what was saved of places that a later round writes first: of others it is nobody's way back."""
        later = self._later.get(group, {})
        for place in planned.keys() & later.keys():
            self._saved[group] = (*self._saved[group], place)
            if (commit := later.pop(place)) is not None:
                self._prior[group][place] = commit

    def _trace(self, kind: str, group: str, event: Mapping[str, Any]) -> None:
        traces = self._traces[self._command]
        known = traces.get(group, NOTHING_DONE)
        if kind == "intent":
            planned: Offsets = offsets_of(event)
            traces[group] = known.begun(planned, metadata_of(event))
            if self._later and self._command == APPLY:
                self._begin_places(group, planned)
        elif kind == "outcome":
            traces[group] = known.answered(answers_of(event))
        else:
            seen: Offsets = offsets_of(event)
            # Mostly the same: then held once.
            seen = known.planned if seen == known.planned else seen
            traces[group] = replace(known, read_back=bool(event["ok"]), seen=seen)


def _commits(event: Mapping[str, Any]) -> dict[TopicPartition, Commit]:
    saved = _by_partition(event, "offset", "metadata")
    return {place: Commit(offset, metadata) for place, offset, metadata in saved if offset is not None}


def offsets_of(event: Mapping[str, Any]) -> dict[TopicPartition, int | None]:
    """Return the offsets of an intent or a read-back."""
    return dict(_by_partition(event, "offset"))


def metadata_of(event: Mapping[str, Any]) -> dict[TopicPartition, str]:
    """Return the metadata that is to be committed beside the offsets of an intent, where it has any."""
    if "metadata" not in event:
        return {}
    return {place: text for place, text in _by_partition(event, "metadata") if text}


def answers_of(event: Mapping[str, Any]) -> Iterator[tuple[TopicPartition, str, str, str]]:
    """Yield an outcome's partitions, each with its status, and the code and message of a failure."""
    return _by_partition(event, "status", "code", "message")


# Made once: `json.dumps` with separators makes an encoder for each line, and a run has three lines for each group.
_ENCODER = json.JSONEncoder(separators=(",", ":"))


def sealed(event: Mapping[str, Any]) -> bytes:
    """Return an event as a journal's line with its checksum (CRC-32 of what is before it), without line feed."""
    # ASCII: names that are not UTF-8 come as lone surrogates, which JSON escapes can carry.
    body = _ENCODER.encode(event).encode("ascii")[:-1]
    return body + _SEAL + b'%08x"}' % zlib.crc32(body)


def unsealed(line: bytes) -> dict[str, Any]:
    """Return the event of a line; raises `ValueError` for one that is not just as it was written."""
    body, _, _ = line.rpartition(_SEAL)
    if line != body + _SEAL + b'%08x"}' % zlib.crc32(body):
        raise ValueError("checksum")
    event: dict[str, Any] = json.loads(line)
    return event


def by_partition(places: Sequence[TopicPartition], **columns: list[Any]) -> dict[str, list[Any]]:
    """Return what an event says of some partitions: an item for each, or a single one where all agree.

    A column may also be given as a single item. `partition` always has one for each, so it says how many there are.
    """
    columns = {"topic": [place.topic for place in places], **columns}
    agreed = {name: c[:1] if c.count(c[0]) == len(c) else c for name, c in columns.items() if c}
    return {"partition": [place.partition for place in places], **agreed}


def _by_partition(event: Mapping[str, Any], *fields: str) -> Iterator[Any]:
    """Yield an event's partitions, each with its fields, as `by_partition` wrote them."""
    count = len(event["partition"])
    if not count:
        return iter(())
    if len(event["topic"]) not in (1, count):
        raise ValueError("topics")
    columns = [event[field] if len(event[field]) == count else event[field] * count for field in fields]
    return zip(partitions_of(tuple(event["topic"]), tuple(event["partition"])), *columns, strict=True)
