"""One try at writing some groups: where it matters, what they hold is looked at again; then they are set or removed."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from migrate.apply.drift import committed, is_committed_as_planned
from migrate.apply.history import REMOVED, SET
from migrate.apply.outcome import Answer
from migrate.apply.pending import PendingRows
from migrate.commit_table import has_same_offsets
from migrate.errors import MigrateError
from migrate.model import Commit, Commits, Failure, Row, TopicPartition
from migrate.survey.cluster import ClusterAdmin
from migrate.survey.groups import answer_of_each

Answers = dict[str, dict[TopicPartition, Answer]]
Left = Mapping[str, PendingRows]
MOVED = Failure("GROUP_CHANGED", "somebody else has committed there meanwhile: not written again")
_LEFT_OUT = Failure("NO_ANSWER", "the answer leaves this partition out", True, True)


@dataclass(frozen=True)
class Attempt:
    """A try at the rows of some groups, `left`.

    `before` are the commits that they were judged by, and `is_fresh` says that these were read just now; `whole` are
    the groups that are deleted, since nothing of them stays.
    """

    admin: ClusterAdmin
    left: Left
    before: Mapping[str, Commits]
    whole: frozenset[str]
    is_fresh: bool

    def run(self) -> Answers:
        """Write, and return what the cluster answered; whatever breaks is an answer too."""
        left = self.left
        wanted = {group: rows.commits() for group, rows in left.items()}
        removed = {group: removals for group, rows in left.items() if (removals := rows.removals())}
        results = self._removals(removed) if removed else {}
        # A group that has changed, or cannot be read, is left as it is: all of it, not only what would be removed.
        offsets: dict[str, Commits] = {
            group: rest
            for group, commits in wanted.items()
            if (rest := {p: c for p, c in commits.items() if p not in results[group]} if group in results else commits)
        }
        # Of groups with removals that look was made just now.
        if moved := self._moved([group for group in offsets if group not in removed]):
            results |= moved
            offsets = {group: commits for group, commits in offsets.items() if group not in moved}
        if offsets:
            try:
                altered = self.admin.alter(offsets)
            except Exception as error:
                # Whatever broke: what was asked for may have been carried out.
                lost = no_answer(error)
                altered = {group: dict.fromkeys(commits, lost) for group, commits in offsets.items()}
            for group, commits in offsets.items():
                results.setdefault(group, {}).update(_answered(altered.get(group, {}), commits, SET))
        return results

    def _moved(self, offsets: Collection[str]) -> Answers:
        """Answer for groups that somebody has committed for since they were judged, or that cannot be read any more.

        Nothing where that look is fresh.
        """
        if self.is_fresh or not offsets:
            return {}
        left = self.left
        try:
            current = self._commits(offsets)
        except Exception as error:
            unread = replace(no_answer(error), outcome_unknown=False)
            return {group: dict.fromkeys(left[group], unread) for group in offsets}
        moved: Answers = {}
        for group, now in current.items():
            judged = self.before.get(group, {})
            if isinstance(now, Failure):
                moved[group] = dict.fromkeys(left[group], now)
            elif not has_same_offsets(now, judged) and not all(
                is_ours(row, now, judged) for row in left[group].by_partition().values()
            ):
                moved[group] = dict.fromkeys(left[group], MOVED)
        return moved

    def _removals(self, removed: Left) -> Answers:
        """Delete groups, or single offsets of those that keep others, if what goes is what was there when judged.

        `removed` are the rows of `left` to remove. A group that has changed since, or that cannot be read, is answered
        with all its rows of `left`.
        """
        left = self.left
        answers: Answers = {}
        empty: list[str] = []
        single: dict[str, list[TopicPartition]] = {}
        try:
            answers |= self._still_hidden({g: rows for g, rows in removed.items() if rows.need_acknowledgement})
            asked = [group for group in removed if group not in answers]
            for group, now in self._commits(asked).items():
                rows, whole, judged = removed[group], group in self.whole, self.before.get(group, {})
                places, doubted = set(rows), _doubted(rows)
                going = [] if isinstance(now, Failure) else [p for p in now if whole or p in places]
                if isinstance(now, Failure):
                    answers[group] = dict.fromkeys(left[group], now)
                elif not has_same_offsets(now, judged) and (
                    any(now[p].offset != (judged[p].offset if p in judged else None) for p in going if p not in doubted)
                    or any(
                        committed(row, now) not in (committed(row, judged), row.target_offset)
                        and (p not in doubted or now[p].offset != doubted[p].offset)
                        for p, row in left[group].by_partition().items()
                    )
                ):
                    changed = Failure("GROUP_CHANGED", "its offsets changed meanwhile: left as they are")
                    answers[group] = dict.fromkeys(left[group], changed)
                elif not going and not rows.need_acknowledgement:
                    answers[group] = dict.fromkeys(rows, REMOVED)
                elif whole:
                    empty.append(group)
                else:
                    single[group] = sorted(rows)
            for group, failure in self.admin.delete_groups(empty).items() if empty else ():
                gone = failure is None or failure.code == "GROUP_ID_NOT_FOUND"
                answers[group] = dict.fromkeys(removed[group], REMOVED if gone or failure is None else failure)
            outcomes = self.admin.delete_offsets(single) if single else {}
            answers |= {g: _answered(outcomes.get(g, {}), places, REMOVED) for g, places in single.items()}
        except Exception as error:
            lost = no_answer(error)
            answers = {group: answers.get(group, dict.fromkeys(left[group], lost)) for group in removed}
        return answers

    def _still_hidden(self, removed: Left) -> Answers:
        """Commit once more what unanswered writes may have left where nobody sees it; answer where that cannot be done.

        A coordinator up to Kafka 3.9 keeps such an append in its log and not in memory, and removes only what it has in
        memory: without a word it would come back when the coordinator moves.
        """
        answers: Answers = {}
        unseen: dict[str, Commits] = {}
        for group, now in self._commits(removed).items():
            if isinstance(now, Failure):
                # A second reading that succeeds would take what is hidden for removed.
                answers[group] = dict.fromkeys(self.left[group], now)
            elif hidden := {p: commit for p, commit in _doubted(removed[group]).items() if p not in now}:
                unseen[group] = hidden
        outcomes = self.admin.alter(unseen) if unseen else {}
        for group, commits in unseen.items():
            shown = _answered(outcomes.get(group, {}), commits, SET).values()
            if failed := [answer for answer in shown if isinstance(answer, Failure)]:
                answers[group] = dict.fromkeys(removed[group], failed[0])
        return answers

    def _commits(self, groups: Collection[str]) -> dict[str, Commits | Failure]:
        """Read groups; one that the answer leaves out is a failure, and no failure to read is a write in doubt."""
        answers = self.admin.commits(list(groups)) if groups else {}
        read = answer_of_each(groups, answers)
        return {g: Failure(a.code, a.message, a.retriable) if isinstance(a, Failure) else a for g, a in read.items()}


def _doubted(rows: PendingRows) -> dict[TopicPartition, Commit]:
    """Return what a write that nobody acknowledged may have committed for these rows, which are to be removed."""
    if not rows.need_acknowledgement:
        return {}
    return {
        p: Commit(row.target_prior, row.target_prior_metadata)
        for p, row in rows.by_partition().items()
        if row.needs_acknowledgement and row.target_prior is not None
    }


def is_ours(row: Row, now: Commits, judged: Commits) -> bool:
    """True if what is committed is what the row was judged by, was there before it, or is what it sets."""
    return is_committed_as_planned(row, now) or committed(row, now) in (committed(row, judged), row.target_prior)


def no_answer(error: Exception) -> Failure:
    """Return whatever broke as the answer of a write that may have been carried out."""
    what = error.problem if isinstance(error, MigrateError) else f"{type(error).__name__}: {error}"
    return Failure("NO_ANSWER", what, retriable=True, outcome_unknown=True)


def _answered(
    outcomes: Mapping[TopicPartition, Failure | None], asked: Collection[TopicPartition], done: str
) -> dict[TopicPartition, Answer]:
    """Return each partition's answer; one that was left out of a group's outcomes is unknown."""
    if not any(outcomes.values()) and all(map(outcomes.__contains__, asked)):
        return dict.fromkeys(asked, done)
    return {partition: outcomes.get(partition, _LEFT_OUT) or done for partition in asked}
