"""Writes offsets, group by group: intent, write, outcome; retries transient failures until a deadline.

A commit of absolute offsets can be repeated, so an unknown outcome is settled by reading back and, where the offset is
not there, by writing once more. A second try takes a new client: librdkafka never forgets a coordinator that has moved.

Ctrl-C, a closed terminal and `kill` are wishes: what is under way is finished, and nothing more is begun.

What only a way back needs, removing offsets, is `migrate.apply.restore`'s.
"""

import math
import signal
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any, Self

from migrate.apply.history import REMOVED, SET
from migrate.apply.journal import JournalLost, JournalWriter
from migrate.apply.outcome import Answer, committed, is_committed_as_planned
from migrate.clock import Backoff, Clock
from migrate.commit_table import CommitTable, has_same_offsets
from migrate.errors import MigrateError
from migrate.model import Commits, Failure, Row, TopicPartition
from migrate.progress import batches
from migrate.row_table import GroupRows
from migrate.survey.cluster import ClusterAdmin
from migrate.survey.groups import answer_of_each

Answers = dict[str, dict[TopicPartition, Answer]]
Left = Mapping[str, "PendingRows"]


class PendingRows(Mapping[TopicPartition, Row]):
    """A group's rows that are still to be written, one at least, as columns, by their partition on the target.

    A row is made when somebody looks at it, and not kept.
    """

    __slots__ = ("table",)

    def __init__(self, rows: Collection[Row]) -> None:
        self.table = GroupRows.of(rows)

    def planned(self) -> dict[TopicPartition, int | None]:
        """Return the offset that each partition shall have committed; None for nothing."""
        return dict(zip(self.table.target_partitions(), self.table.whole("target_offset"), strict=True))

    def metadata(self) -> dict[TopicPartition, str]:
        """Return the metadata that is to be committed on each partition; empty where it is none."""
        texts = self.table.whole("target_metadata") if any(self.table.column("target_metadata")) else ()
        return {place: text for place, text in zip(self.table.target_partitions(), texts, strict=False) if text}

    def commits(self) -> CommitTable:
        """Return what is to be committed, where each row sets an offset."""
        metadata = tuple(self.table.whole("target_metadata")) if any(self.table.column("target_metadata")) else ()
        return CommitTable(self.table.target_partitions(), self.table.whole("target_offset"), metadata)

    def by_partition(self) -> dict[TopicPartition, Row]:
        """Return all rows, made now."""
        return dict(zip(self, self.table, strict=True))

    def __getitem__(self, partition: TopicPartition) -> Row:
        try:
            return self.table[self.table.target_partitions().index(partition)]
        except ValueError:
            raise KeyError(partition) from None

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self.table.target_partitions())

    def __len__(self) -> int:
        return len(self.table)


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruption:
    """True once one of the signals came while it was entered; a second one acts as always, but SIGHUP is ignored.

    Signals can only be taken in the main thread: elsewhere it is never true.
    """

    def __init__(self) -> None:
        self._came = False
        self._before: dict[signal.Signals, Any] = {}

    def __bool__(self) -> bool:
        return self._came

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            # What is ignored already stays so: `nohup` means it.
            heeded = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
            # Known before the first is replaced: a signal may come between two.
            self._before = {number: signal.getsignal(number) for number in heeded}
            for number in heeded:
                signal.signal(number, self._note)
        return self

    def __exit__(self, *error: object) -> None:
        self._restore()

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._came = True
        self._restore()
        outer = signal.getsignal(number)
        of = getattr(outer, "__self__", None)
        if isinstance(of, Interruption) and of is not self and callable(outer):
            # Who goes on after this one has to know it too.
            outer(number, frame)
        if number == signal.SIGHUP:
            # A terminal that closes sends it twice, by its shell and by the kernel: nobody meant the second one.
            signal.signal(number, signal.SIG_IGN)

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}


# Between two tries: the first time, and at most.
PAUSE_SECONDS = (0.25, 5.0)
# A chunk wider than the window of calls in flight: the window runs dry only at its end.
WINDOWS_PER_CHUNK = 5
# A look at the commits that is older when a chunk of groups is written is made again: somebody may have reset one.
FRESH_SECONDS = 10.0

MOVED = Failure("GROUP_CHANGED", "another client has committed this offset since the check; left unchanged")
_LEFT_OUT = Failure("NO_ANSWER", "the answer leaves this partition out", True, True)


@dataclass(slots=True)
class Written:
    """What the cluster answered: "set", "removed" or the last failure per partition; none for what was not tried.

    `trouble` is what ended the writing early, `journal_gap` which part of the journal is missing; "" if nothing.
    """

    answers: Answers = field(default_factory=dict)
    trouble: str = ""
    journal_gap: str = ""


class GroupWriter:
    """Writes groups to one cluster, and to the journal before and after.

    `group_timeout_seconds` is how long to go on trying while no group gets done; the first try is always made.
    `concurrency` is how many groups the client has in flight. `advance` is called with how many groups are done.
    """

    def __init__(
        self,
        admin: ClusterAdmin,
        journal: JournalWriter,
        clock: Clock,
        group_timeout_seconds: float,
        concurrency: int,
        advance: Callable[[int], None] = lambda done: None,
    ) -> None:
        self._admin = admin
        self._journal = journal
        self._clock = clock
        self._timeout = group_timeout_seconds
        self._chunk = concurrency * WINDOWS_PER_CHUNK
        self._advance = advance
        self._interrupted = Interruption()
        self._before: Mapping[str, Commits] = {}
        # Groups of which a row is worth another try.
        self._passing: set[str] = set()
        self._answers: Answers = {}
        # The monotonic seconds before the reading that the rows were judged by, and before a group's newest one since.
        self._judged_at = 0.0
        self._looked_at: dict[str, float] = {}

    def write_offsets(
        self, groups: Mapping[str, Sequence[Row]], before: Mapping[str, Commits], looked_at: float
    ) -> Written:
        """Write the rows of each group.

        `before` are the commits that the rows were judged by, and `looked_at` the monotonic second before they were
        read: what is neither there any more nor as planned is somebody else's, and stays.
        """
        written = Written()
        self._before, self._judged_at, self._answers = before, looked_at, written.answers
        try:
            with Interruption() as self._interrupted:
                reached_all = self._write({g: PendingRows(rows) for g, rows in groups.items()}, written)
            if self._interrupted and not reached_all:
                written.trouble = "interrupted: stopped before all groups were set"
        except JournalLost as error:
            # Without its journal a write could not be undone: none more is made, and what the last ones did is read.
            written.trouble = f"{error}: no more groups were begun"
            written.journal_gap = "what the cluster answered from then on, what was read back, and how this run ended"
        except Exception as error:
            # A client that cannot even be started, say. What was sent before is read back and reported.
            written.trouble = f"{no_answer(error).message}: no more groups were begun"
        return written

    def _write(self, left: Left, written: Written) -> bool:
        """Try until nothing is left, or no more may be tried; return True if nothing is left."""
        total = fewest = len(left)
        backoff = None
        while True:
            self._pass(left, written)
            left = _again(left, written.answers)
            if backoff is None or len(left) < fewest:
                backoff, fewest = Backoff(self._clock, *PAUSE_SECONDS, self._timeout), len(left)
            if not left or backoff.is_over or self._interrupted:
                return not left
            backoff.pause()
            self._admin = self._admin.renewed()
            self._take(written, self._look(left, [group for group in left if group in written.answers]))
            left = _again(left, written.answers)
            self._advance(total - len(left))
            if not left or self._interrupted:
                return not left

    def _pass(self, left: Left, written: Written) -> None:
        """Try every group once; the rest is left for another pass where nobody answers for a whole chunk."""
        for names in batches(list(left), self._chunk):
            if self._interrupted:
                return
            chunk = {group: left[group] for group in names}
            metadata = {group: texts for group, rows in chunk.items() if (texts := rows.metadata())}
            self._journal.intend({group: rows.planned() for group, rows in chunk.items()}, metadata)
            answers = self.attempt(chunk)
            self._take(written, answers)
            if all(is_passing(answer) for results in answers.values() for answer in results.values()):
                return

    def _take(self, written: Written, new: Answers) -> None:
        # First in memory: a journal that fails now must not lose what the cluster said.
        _merge(written.answers, new)
        for group, results in new.items():
            self._journal.outcome(group, results)
        if new:
            self._journal.sync()
            for group in new:
                passes = any(map(is_passing, written.answers[group].values()))
                (self._passing.add if passes else self._passing.discard)(group)
            self._advance(len(written.answers) - len(self._passing))

    def attempt(self, left: Left) -> Answers:
        """Try to write some groups, but for those that somebody has moved; return what the cluster answered."""
        answers = self.moved(left, left)
        return answers | self.alter({group: rows.commits() for group, rows in left.items() if group not in answers})

    def moved(self, left: Left, groups: Collection[str]) -> Answers:
        """Look again at groups whose last look is old, and answer as `_look` does."""
        now = self._clock.monotonic()
        return self._look(left, [g for g in groups if now - self._looked_at.get(g, self._judged_at) > FRESH_SECONDS])

    def _look(self, left: Left, groups: Collection[str]) -> Answers:
        """Read groups, and answer for what needs no write any more, or must have none.

        What is neither where the rows were judged by nor as planned is not ours to overwrite: where one row is not,
        none of its group is written, nor where the group cannot be read. A row whose write had no certain answer is
        done where it is found as planned, unless it needs an acknowledgement: then no reading is proof.
        """
        looked_at = self._clock.monotonic()
        # One that cannot be read now is looked at again before it is written.
        self._looked_at |= dict.fromkeys(groups, -math.inf)
        try:
            current = self.commits(groups)
        except Exception as error:
            unread = replace(no_answer(error), outcome_unknown=False)
            return {group: dict.fromkeys(left[group], unread) for group in groups}
        answers: Answers = {}
        for group, now in current.items():
            if isinstance(now, Failure):
                answers[group] = dict.fromkeys(left[group], now)
                continue
            self._looked_at[group], judged = looked_at, self._before.get(group, {})
            if has_same_offsets(now, judged):
                continue
            rows, known = left[group].by_partition(), self._answers.get(group, {})
            found: dict[TopicPartition, Answer] = {
                p: REMOVED if row.target_commit is None else SET
                for p, row in rows.items()
                if isinstance(answer := known.get(p), Failure) and answer.outcome_unknown
                if not row.needs_acknowledgement and is_committed_as_planned(row, now)
            }
            if not all(is_ours(row, now, judged) for row in rows.values()):
                found = {p: found.get(p, MOVED) for p in rows}
            if found:
                answers[group] = found
        return answers

    def alter(self, offsets: Mapping[str, Commits]) -> Answers:
        """Commit offsets, and return what the cluster answered; whatever breaks is an answer too."""
        if not offsets:
            return {}
        try:
            altered = self._admin.alter(offsets)
        except Exception as error:
            # Whatever broke: what was asked for may have been carried out.
            lost = no_answer(error)
            return {group: dict.fromkeys(commits, lost) for group, commits in offsets.items()}
        return {group: answered(altered.get(group, {}), commits, SET) for group, commits in offsets.items()}

    def commits(self, groups: Collection[str]) -> dict[str, Commits | Failure]:
        """Read groups; one that the answer leaves out is a failure, and no failure to read is a write in doubt."""
        read = answer_of_each(groups, self._admin.commits(list(groups)) if groups else {})
        return {g: Failure(a.code, a.message, a.retriable) if isinstance(a, Failure) else a for g, a in read.items()}


def _again(left: Left, answers: Answers) -> Left:
    """Return the rows that are worth another try, those that had none yet first."""
    fresh = {group: left[group] for group in left if group not in answers}
    passing = [group for group in left if any(map(is_passing, answers.get(group, {}).values()))]
    retry = {
        group: [
            row
            for p, row in left[group].by_partition().items()
            if (answer := answers[group].get(p)) and is_passing(answer)
        ]
        for group in passing
    }
    return fresh | {group: PendingRows(rows) for group, rows in retry.items() if rows}


def is_passing(answer: object) -> bool:
    """True for a failure that may be gone on another try."""
    return isinstance(answer, Failure) and answer.retriable


def _merge(answers: Answers, new: Answers) -> None:
    for group, results in new.items():
        known = answers.get(group)
        answers[group] = known | {p: _later(known.get(p), a) for p, a in results.items()} if known else dict(results)


def _later(before: Answer | None, answer: Answer) -> Answer:
    """Return the newer answer; a failure for sure does not tell what became of an earlier try that may be written.

    How the first such try ended stays in the message: that is why the outcome is unknown.
    """
    if not (isinstance(answer, Failure) and isinstance(before, Failure) and before.outcome_unknown):
        return answer
    first = before.first_doubt or before.message
    message = answer.message if answer.message == first else f"{first.rstrip('.')}. After that: {answer.message}"
    return replace(answer, message=message, outcome_unknown=True, first_doubt=first)


def is_ours(row: Row, now: Commits, judged: Commits) -> bool:
    """True if what is committed is what the row was judged by, was there before it, or is what it sets."""
    return is_committed_as_planned(row, now) or committed(row, now) in (committed(row, judged), row.target_prior)


def no_answer(error: Exception) -> Failure:
    """Return whatever broke as the answer of a write that may have been carried out."""
    what = error.problem if isinstance(error, MigrateError) else f"{type(error).__name__}: {error}"
    return Failure("NO_ANSWER", what, retriable=True, outcome_unknown=True)


def answered(
    outcomes: Mapping[TopicPartition, Failure | None], asked: Collection[TopicPartition], done: str
) -> dict[TopicPartition, Answer]:
    """Return each partition's answer; one that was left out of a group's outcomes is unknown."""
    if not any(outcomes.values()) and all(map(outcomes.__contains__, asked)):
        return dict.fromkeys(asked, done)
    return {partition: outcomes.get(partition, _LEFT_OUT) or done for partition in asked}
