"""Writes batches of groups: intent, write, outcome, and again what failed in passing, until a deadline.

A commit of absolute offsets can be repeated, so an unknown outcome is settled by reading back and, where the
offset is not there, by writing once more. A second try takes a new client: librdkafka never forgets a
coordinator that has moved.
"""

from collections.abc import Collection, Mapping, Sequence

from migrate.clock import Clock
from migrate.drift import stands
from migrate.errors import ClusterError
from migrate.history import REMOVED, SET
from migrate.journal import JournalWriter
from migrate.model import Commit, Commits, Decision, Failure, Row, TopicPartition
from migrate.ports import ClusterAdmin

FIRST_PAUSE_SECONDS = 0.25
LONGEST_PAUSE_SECONDS = 5.0

_LEFT_OUT = Failure("NO_ANSWER", "the answer leaves this partition out", True, True)

Answer = str | Failure
Answers = dict[str, dict[TopicPartition, Answer]]


class GroupWriter:
    """Writes groups to one cluster and tells the journal before and after.

    `group_timeout_seconds` is how long a batch may be tried again; the first try is always made.
    """

    def __init__(self, admin: ClusterAdmin, journal: JournalWriter, clock: Clock, group_timeout_seconds: float) -> None:
        self._admin = admin
        self._journal = journal
        self._clock = clock
        self._timeout = group_timeout_seconds

    def write(self, batch: Mapping[str, Sequence[Row]], before: Mapping[str, Commits]) -> Answers:
        """Write the rows of each group; return "set", "removed" or the last failure per partition.

        `before` are the commits that the rows to remove were judged by: a group is deleted only if it still
        holds nothing else.
        """
        left = {g: {r.target_partition: r for r in rows} for g, rows in batch.items()}
        answers: Answers = {group: {} for group in batch}
        whole = {group for group, rows in left.items() if goes_whole(rows.values(), before.get(group, {}))}
        deadline = self._clock.monotonic() + self._timeout
        pause = FIRST_PAUSE_SECONDS
        while True:
            self._journal.intend({g: {p: row.target_offset for p, row in rows.items()} for g, rows in left.items()})
            self._take(answers, self._attempt(left, before, whole))
            left = _again(left, answers)
            remaining = deadline - self._clock.monotonic()
            if not left or remaining <= 0:
                return answers
            self._clock.wait(min(pause, remaining))
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
            self._admin = self._admin.renewed()
            self._take(answers, self._settled(left, answers))
            left = _again(left, answers)
            if not left:
                return answers

    def _take(self, answers: Answers, new: Answers) -> None:
        for group, results in new.items():
            answers[group] |= results
            self._journal.outcome(group, results)
        self._journal.sync()

    def _attempt(
        self, left: Mapping[str, Mapping[TopicPartition, Row]], before: Mapping[str, Commits], whole: Collection[str]
    ) -> Answers:
        wanted: dict[str, dict[TopicPartition, Commit]] = {}
        results: Answers = {group: {} for group in left}
        for group, rows in left.items():
            commits = {p: r.target_commit for p, r in rows.items() if r.target_commit is not None}
            if commits:
                wanted[group] = commits
            removals = {p: r for p, r in rows.items() if r.decision is Decision.REMOVE}
            if removals:
                results[group] = self._remove(group, removals, before.get(group, {}), group in whole)
        if wanted:
            try:
                altered = self._admin.alter(wanted)
            except ClusterError as error:
                lost = Failure("NO_ANSWER", error.problem, retriable=True, outcome_unknown=True)
                altered = {group: dict.fromkeys(commits, lost) for group, commits in wanted.items()}
            for group, commits in wanted.items():
                results[group] |= {p: _answer(altered, group, p) for p in commits}
        return results

    def _remove(
        self, group: str, rows: Mapping[TopicPartition, Row], before: Commits, whole: bool
    ) -> dict[TopicPartition, Answer]:
        """Remove offsets, or the `whole` group, if what goes is what was there when it was judged, just now."""
        answer: Answer
        try:
            now = self._admin.commits([group])[group]
            if isinstance(now, Failure):
                answer = Failure(now.code, now.message, now.retriable)
            elif not any(whole or p in rows for p in now):
                answer = REMOVED
            elif any(_offset(now, p) != _offset(before, p) for p in now if whole or p in rows):
                answer = Failure("GROUP_CHANGED", "its offsets changed meanwhile: not deleted")
            elif whole:
                failure = self._admin.delete_group(group)
                gone = failure is None or failure.code == "GROUP_ID_NOT_FOUND"
                answer = REMOVED if gone or failure is None else failure
            else:
                told = self._admin.delete_offsets(group, sorted(rows))
                return {p: REMOVED if (one := _answer(told, group, p)) == SET else one for p in rows}
        except ClusterError as error:
            answer = Failure("NO_ANSWER", error.problem, retriable=True, outcome_unknown=True)
        return dict.fromkeys(rows, answer)

    def _settled(self, left: Mapping[str, Mapping[TopicPartition, Row]], answers: Answers) -> Answers:
        """Return what turns out to be written of the rows whose outcome is unknown."""
        unknown = [
            group
            for group, rows in left.items()
            if any(isinstance(a := answers[group].get(p), Failure) and a.outcome_unknown for p in rows)
        ]
        if not unknown:
            return {}
        try:
            seen = self._admin.commits(unknown)
        except ClusterError:
            return {}
        settled: Answers = {}
        for group in unknown:
            commits = seen[group]
            if isinstance(commits, Failure):
                continue
            there = {
                p: REMOVED if row.target_commit is None else SET
                for p, row in left[group].items()
                if stands(row, commits)
            }
            if there:
                settled[group] = dict(there)
        return settled


def goes_whole(rows: Collection[Row], commits: Commits) -> bool:
    """True if removing these rows leaves nothing of the group: then it is deleted, which every client can do."""
    removed = {row.target_partition for row in rows if row.decision is Decision.REMOVE}
    return len(removed) == len(rows) and commits.keys() <= removed


def read_commits(
    admin: ClusterAdmin, groups: Sequence[str], clock: Clock, timeout_seconds: float
) -> dict[str, Commits | Failure]:
    """Read groups with a fresh client, and again what failed in passing; never raises `ClusterError`."""
    deadline = clock.monotonic() + timeout_seconds
    found: dict[str, Commits | Failure] = {}
    left = list(groups)
    pause = FIRST_PAUSE_SECONDS
    while True:
        try:
            found |= admin.renewed().commits(left)
        except ClusterError as error:
            found |= dict.fromkeys(left, Failure("NO_ANSWER", error.problem, retriable=True))
        left = [g for g in left if isinstance(answer := found[g], Failure) and answer.retriable]
        remaining = deadline - clock.monotonic()
        if not left or remaining <= 0:
            return found
        clock.wait(min(pause, remaining))
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


def _again(left: Mapping[str, Mapping[TopicPartition, Row]], answers: Answers) -> dict[str, dict[TopicPartition, Row]]:
    """Return the rows that are worth another try."""
    retry = {
        group: {
            p: row
            for p, row in rows.items()
            if isinstance(answer := answers[group].get(p), Failure) and answer.retriable
        }
        for group, rows in left.items()
    }
    return {group: rows for group, rows in retry.items() if rows}


def _offset(commits: Commits, partition: TopicPartition) -> int | None:
    commit = commits.get(partition)
    return None if commit is None else commit.offset


def _answer(
    altered: Mapping[str, Mapping[TopicPartition, Failure | None]], group: str, partition: TopicPartition
) -> Answer:
    """Return one partition's answer; one that was left out of the answer says nothing: unknown."""
    return altered.get(group, {}).get(partition, _LEFT_OUT) or SET
