"""Restores what was there before an apply: removals first, then the same writing as an apply's.

Where nothing was committed before, an offset is taken away, which needs a look right before: what goes must be what
was there when it was judged. A write that nobody acknowledged may have left an append that no reading shows; it is
overtaken before anything is removed.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from migrate.apply.history import REMOVED, SET
from migrate.apply.outcome import committed
from migrate.apply.write import Answers, GroupWriter, Left, PendingRows, Written, answered, no_answer
from migrate.commit_table import has_same_offsets
from migrate.model import UNACKNOWLEDGED, Commit, Commits, Decision, Failure, Row, TopicPartition
from migrate.row_table import GroupRows


class GroupRestorer(GroupWriter):
    """Writes groups as a `GroupWriter` does, and takes offsets away before it sets others of the same group."""

    _whole: frozenset[str] = frozenset()

    def restore(self, groups: Mapping[str, Sequence[Row]], before: Mapping[str, Commits], looked_at: float) -> Written:
        """Write, or remove, the rows of each group; one is deleted only if it still holds nothing else."""
        self._whole = frozenset(g for g, rows in groups.items() if goes_whole(rows, before.get(g, {})))
        return self.write_offsets(groups, before, looked_at)

    def attempt(self, left: Left) -> Answers:
        """Remove, then write the rest; a group that has changed, or cannot be read, is left as it is: all of it."""
        removed = {group: removals for group, rows in left.items() if (removals := _only(rows, Decision.REMOVE))}
        if not removed:
            return super().attempt(left)
        answers = self._remove(left, removed)
        # Of groups with removals that look was made just now.
        answers |= self.moved(left, [group for group in left if group not in removed])
        offsets: dict[str, Commits] = {}
        for group, rows in left.items():
            setting, done = _only(rows, Decision.SET), answers.get(group, {})
            if setting and (rest := {p: c for p, c in setting.commits().items() if p not in done}):
                offsets[group] = rest
        for group, results in self.alter(offsets).items():
            answers.setdefault(group, {}).update(results)
        return answers

    def _remove(self, left: Left, removed: Left) -> Answers:
        """Delete groups, or single offsets of those that keep others, if what goes is what was there when judged.

        `removed` are the rows of `left` to remove. A group that has changed since, or that cannot be read, is answered
        with all its rows of `left`.
        """
        answers: Answers = {}
        empty: list[str] = []
        single: dict[str, list[TopicPartition]] = {}
        shown: set[str] = set()
        try:
            doubtful = {group: rows for group, rows in removed.items() if _need_acknowledgement(rows)}
            answers, shown = self._still_hidden(left, doubtful)
            asked = [group for group in removed if group not in answers]
            for group, now in self.commits(asked).items():
                rows, whole, judged = removed[group], group in self._whole, self._before.get(group, {})
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
                    changed = Failure("GROUP_CHANGED", "its offsets have changed since the check; left unchanged")
                    answers[group] = dict.fromkeys(left[group], changed)
                elif not going and not _need_acknowledgement(rows):
                    answers[group] = dict.fromkeys(rows, REMOVED)
                elif whole:
                    empty.append(group)
                else:
                    single[group] = sorted(rows)
            for group, failure in self._admin.delete_groups(empty).items() if empty else ():
                gone = failure is None or failure.code == "GROUP_ID_NOT_FOUND"
                answers[group] = dict.fromkeys(removed[group], REMOVED if gone or failure is None else failure)
            outcomes = self._admin.delete_offsets(single) if single else {}
            answers |= {g: answered(outcomes.get(g, {}), places, REMOVED) for g, places in single.items()}
        except Exception as error:
            lost = no_answer(error)
            answers = {group: answers.get(group, dict.fromkeys(left[group], lost)) for group in removed}
        # What was hidden is there now, by this run: it must not end as one that has written nothing.
        for group in shown & answers.keys():
            failed = {p: replace(a, outcome_unknown=True) for p, a in answers[group].items() if isinstance(a, Failure)}
            answers[group].update(failed)
        return answers

    def _still_hidden(self, left: Left, removed: Left) -> tuple[Answers, set[str]]:
        """Commit once more what unanswered writes may have left where nobody sees it; answer where that cannot be done.

        Returns also the groups of which something was committed.

        A coordinator up to Kafka 3.9 keeps such an append in its log and not in memory, and removes only what it has in
        memory: without a word it would come back when the coordinator moves.
        """
        answers: Answers = {}
        shown: set[str] = set()
        unseen: dict[str, Commits] = {}
        for group, now in self.commits(removed).items():
            if isinstance(now, Failure):
                # A second reading that succeeds would take what is hidden for removed.
                answers[group] = dict.fromkeys(left[group], now)
            elif hidden := {p: commit for p, commit in _doubted(removed[group]).items() if p not in now}:
                unseen[group] = hidden
        outcomes = self._admin.alter(unseen) if unseen else {}
        for group, commits in unseen.items():
            results = answered(outcomes.get(group, {}), commits, SET).values()
            if SET in results:
                shown.add(group)
            if failed := [answer for answer in results if isinstance(answer, Failure)]:
                answers[group] = dict.fromkeys(removed[group], failed[0])
        return answers, shown


def goes_whole(rows: Collection[Row], commits: Commits) -> bool:
    """True if removing these rows leaves nothing of the group: then it is deleted, which every client can do."""
    if any(decision is not Decision.REMOVE for decision in GroupRows.of(rows).column("decision")):
        return False
    return set(GroupRows.of(rows).target_partitions()).issuperset(commits)


def _only(rows: PendingRows, decision: Decision) -> PendingRows | None:
    """Return the rows with this decision; None if there is none."""
    those = rows.table.where("decision", decision.__eq__)
    return PendingRows(those) if those else None


def _need_acknowledgement(rows: PendingRows) -> bool:
    """True if only the cluster's own answer says that one of these rows is done."""
    return UNACKNOWLEDGED in rows.table.column("reason")


def _doubted(rows: PendingRows) -> dict[TopicPartition, Commit]:
    """Return what a write that nobody acknowledged may have committed for these rows, which are to be removed."""
    if not _need_acknowledgement(rows):
        return {}
    return {
        p: Commit(row.target_prior, row.target_prior_metadata)
        for p, row in rows.by_partition().items()
        if row.needs_acknowledgement and row.target_prior is not None
    }
