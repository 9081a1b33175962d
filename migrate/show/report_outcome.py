"""What became of a plan, row by row, from its journal and from a later `verify`: the report's second half.

Invariant: a row counts as set only if the journal says that it was read back at its planned offset.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from migrate.apply.history import (
    APPLY,
    FAILED,
    NOTHING_DONE,
    REMOVED,
    ROLLBACK,
    SET,
    UNKNOWN,
    GroupTrace,
    JournalState,
)
from migrate.apply.outcome import RowStatus, State, state_of, status_of
from migrate.apply.runs import UNDONE
from migrate.apply.signatures import FilesBeside, names_of
from migrate.apply.verify import GOOD, MAKE_VERIFICATION, Standing
from migrate.clock import iso, ms_of
from migrate.errors import EXIT_DONE, EXIT_PARTLY, MigrateError, UsageError
from migrate.model import Commit, Decision, Failure, Row, TopicPartition
from migrate.plan.plan import SHORT_DIGITS, UNDO, Plan
from migrate.show.aftermath import Aftermath, Beside, Headline, Key, RowAfter
from migrate.show.lines import number, tally
from migrate.text import many

DONE = (RowStatus.SET, RowStatus.REMOVED, RowStatus.ALREADY)
AS_PLANNED = frozenset({*DONE, RowStatus.KEPT, RowStatus.SKIPPED, RowStatus.RESTORED})
_TO_WRITE = (RowStatus.FAILED, RowStatus.UNKNOWN, RowStatus.NOT_WRITTEN)
_UNTOLD = Failure("NOT_NOTED", "the journal does not say what was read back")


@dataclass(frozen=True, slots=True)
class Verified:
    """What `verify --format json` said: offsets by (group, target topic, partition), and its exit code.

    `looked_ms` is when the target was read, in ms since 1970. `records` is empty unless they were compared. `left_out`
    are the rows that were not written, `blocks` how many of the plan's blocks had no row.
    """

    exit_code: int
    looked_ms: int
    offsets: Mapping[Key, Mapping[str, Any]]
    records: Mapping[Key, Mapping[str, Any]]
    left_out: Mapping[Key, Mapping[str, Any]]
    blocks: int

    @property
    def standings(self) -> "Counter[str]":
        """Count the rows by `verify`'s word for them."""
        return Counter(str(entry["standing"]) for entry in self.offsets.values())


def verified_of(content: bytes, file: str, plan: Plan) -> Verified:
    """Return what `verify --format json` printed, the content of `file`.

    Raises `UsageError` if it is not that, or another plan's.
    """
    try:
        document = json.loads(content.decode())
        fingerprint, exit_code = str(document["fingerprint"]), int(document["exit_code"])
        looked_ms = ms_of(document["time"])
        offsets = {_place(entry): entry for entry in document["offsets"]}
        records = {_place(entry): entry for entry in document.get("records", ())}
        left_out = {_place(entry): entry for entry in document["left_out"]}
        blocks = len(document["blocks"])
        for entry in offsets.values():
            str(entry["standing"]), str(entry["sentence"]), entry["seen"]
        for entry in left_out.values():
            str(entry["why"]), str(entry["sentence"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{file} is not what `verify --format json` prints ({type(error).__name__}).",
            MAKE_VERIFICATION,
        ) from None
    if fingerprint != plan.fingerprint:
        raise UsageError(
            f"{file} verifies plan {fingerprint[:SHORT_DIGITS]}, not {plan.short_fingerprint}.",
            "Name the file that was made with this plan.",
        )
    return Verified(exit_code, looked_ms, offsets, records, left_out, blocks)


def beside_of(plan: Plan, found: FilesBeside | MigrateError) -> Beside | None:
    """Return what the files beside a plan say of it; of rules, which `table` shows by their own command, nothing."""
    if not plan.header.is_of_rows:
        return None
    if isinstance(found, MigrateError):
        # The plan is readable, and has to be shown; that it was not applied must not be said.
        text = f"NOT KNOWN WHETHER IT WAS APPLIED: {found.problem}"
        return Beside(Aftermath((Headline(text, "bad"),)))
    state, signatures = found
    return Beside(aftermath(plan, state, None), names_of(signatures))


def aftermath(plan: Plan, state: JournalState, verified: Verified | None) -> Aftermath:
    """Return what became of the plan's rows; nothing where there is neither a journal nor a verification."""
    if not state.runs and verified is None:
        return Aftermath()
    rows = {row.key: _with_verified(row, _after(row, state), verified) for row in plan.rows}
    counts = Counter(after.status for after in rows.values()) if state.runs else Counter[str]()
    verdicts = [_journal_verdict(plan, state, counts)] if counts or state.is_spent else []
    standings = Counter[str]() if verified is None else verified.standings
    if verified is not None:
        verdicts.append(verified_headline(plan, verified, state))
    return Aftermath(
        tuple(verdicts), state.runs, dict(sorted(counts.items())), rows, dict(sorted(standings.items())),
        state.is_spent, state.is_undone if state.is_spent else None, *_groups_after(rows, state),
        bool(counts) and _is_complete(state, counts), "" if verified is None else iso(verified.looked_ms),
    )  # fmt: skip


def _groups_after(
    rows: Mapping[Key, RowAfter], state: JournalState
) -> tuple[frozenset[str], frozenset[str], frozenset[str], bool]:
    """Return the groups that were rolled back alone, those of them not restored, and those that may still be set.

    And whether the last apply left the latter out itself: then the same command again may do so once more.
    """
    alone, last = state.spent_groups, state.last(APPLY)
    left = {key[0]: after.status for key, after in rows.items() if after.status in _TO_WRITE and key[0] not in alone}
    by_choice = last is not None and last.counts.get(RowStatus.LEFT_OUT, 0) and not last.counts.get(RowStatus.PLANNED)
    left_out = bool(by_choice) and set(left.values()) <= {RowStatus.NOT_WRITTEN}
    half = frozenset(group for group in alone if not state.is_restored(group))
    return alone, half, frozenset(left), left_out


def _after(row: Row, state: JournalState) -> RowAfter:
    partition, trace = row.target_partition, state.applied.get(row.group, NOTHING_DONE)
    undone = state.rolled_back.get(row.group)
    if undone is not None and partition in undone.planned:
        return _undone(row, undone, trace)
    shown, is_read = _shown(trace, partition), partition in trace.seen
    as_planned = is_read and trace.seen[partition] == row.target_offset
    # The journal notes the offset that was read back, and of its metadata only whether all of the group was as planned.
    untold = bool(row.target_metadata or row.target_prior_metadata) and as_planned and not trace.read_back
    if partition in trace.planned or partition in trace.results:
        answer, error = trace.results.get(partition, UNKNOWN), trace.errors.get(partition, "")
        found = _UNTOLD if untold or not is_read else _read(trace.seen[partition], row.target_metadata)
        status = status_of(row, state_of(row, trace, found), answer)
        if untold:
            error = error or "Whether its metadata was read back as planned was not noted."
        elif answer in (SET, REMOVED):
            error = "" if as_planned else "Written, but not read back."
            if is_read and not as_planned:
                error = f"Written, but read back {shown}: something else commits to this group."
        elif status is RowStatus.UNKNOWN:
            error = error or "It may have been written: no answer was noted."
        return RowAfter(status, shown, error)
    if row.decision is Decision.KEEP and is_read and trace.seen[partition] != row.target_prior and not trace.read_back:
        return RowAfter(RowStatus.FAILED, shown, f"Was to be kept at {row.target_prior}, and was read back at {shown}.")
    if row.decision in (Decision.KEEP, Decision.SKIP, Decision.BLOCK):
        kept = State.AS_PLANNED if row.decision is Decision.KEEP else State.NOT_HELD
        return RowAfter(status_of(row, kept, None), shown)
    last = state.last(APPLY)
    if as_planned or (last is not None and last.exit_code == EXIT_DONE):
        return RowAfter(RowStatus.ALREADY, shown, "It was there already.")
    return RowAfter(RowStatus.NOT_WRITTEN, shown, "The journal holds no write to this row.")


def _read(offset: int | None, metadata: str) -> Commit | None:
    return None if offset is None else Commit(offset, metadata)


def _shown(trace: GroupTrace, partition: TopicPartition) -> str:
    return number(trace.seen[partition], "none") if partition in trace.seen else ""


def _undone(row: Row, trace: GroupTrace, applied: GroupTrace) -> RowAfter:
    partition = row.target_partition
    # Where apply got no certain answer, its offset may appear after a reading that shows the prior one.
    proven = trace.is_certain(partition) or applied.is_certain(partition)
    shown, error = _shown(trace, partition), trace.errors.get(partition, "")
    if proven and partition in trace.seen and trace.seen[partition] == trace.planned[partition]:
        return RowAfter(RowStatus.RESTORED, shown)
    if trace.results.get(partition, UNKNOWN) == FAILED:
        return RowAfter(RowStatus.NOT_RESTORED, shown, error)
    why = "was not read back there" if proven else "the cluster has not acknowledged it"
    return RowAfter(RowStatus.UNDO_UNKNOWN, shown, error or f"It was to be restored, and {why}.")


def _with_verified(row: Row, after: RowAfter, verified: Verified | None) -> RowAfter:
    if verified is None:
        return after
    place = (row.group, row.target_topic, row.partition)
    offset = verified.offsets.get(place)
    if offset is None:
        unwritten = verified.left_out.get(place)
        # No standing: there was nothing to compare, and the row's status says already whether that is trouble.
        return after if unwritten is None else replace(after, verified=f"not verified: {unwritten['sentence']}")
    sentences = [str(offset["sentence"])]
    record = verified.records.get(place)
    if record is not None:
        sentences.append(f"next records: {record.get('verdict', '?')}")
    return RowAfter(after.status, after.seen, after.told, str(offset["standing"]), "; ".join(sentences))


def _journal_verdict(plan: Plan, state: JournalState, counts: Mapping[str, int]) -> Headline:
    done_word = "RESTORED" if plan.header.kind == UNDO else "APPLIED"
    # A rollback of single groups before has written here; an undo plan that was applied has a journal of its own.
    if state.is_spent and (state.spent_by != ROLLBACK or not state.rolled_back):
        undo = f"its undo {state.spent_by[:SHORT_DIGITS]} was begun, and the journal of that is not beside this plan"
        return Headline(f"SPENT: {'a rollback was begun' if state.spent_by == ROLLBACK else undo}", "warn")
    if state.is_spent:
        return _rollback_verdict(state, counts)
    last = state.last(APPLY)
    done = sum(counts.get(status, 0) for status in DONE)
    restored = sum(trace.read_back is True for trace in state.rolled_back.values())
    alone = f"; {many(restored, 'group')} ROLLED BACK alone" if restored else ""
    if _is_complete(state, counts):
        unseen = any(run.source_not_seen for run in state.runs if run.command == APPLY)
        word, colour = (", SOURCE NOT SEEN", "warn") if unseen else ("", "good")
        at = f" AT {last.ended}" if last is not None else ""
        rows = f"{many(done, 'offset')} {'is' if done == 1 else 'are'} as planned, read back"
        return Headline(f"{done_word}{at}{word}: {rows}{alone}", colour)
    left = [RowStatus.FAILED, RowStatus.UNKNOWN, RowStatus.NOT_WRITTEN, RowStatus.LEFT_OUT]
    left += [RowStatus.NOT_RESTORED, RowStatus.UNDO_UNKNOWN]
    rows = f"{done} as planned{_counted(counts, *left)}{alone}"
    if last is not None and last.exit_code is None:
        return Headline(f"NOT FINISHED: the last run noted no end; {rows}", "bad")
    may_be_written = done or counts.get(RowStatus.UNKNOWN)
    return Headline(f"{'PARTLY' if may_be_written else 'NOT'} {done_word}: {rows}", "bad")


def _rollback_verdict(state: JournalState, counts: Mapping[str, int]) -> Headline:
    last, restored = state.last(ROLLBACK), counts.get(RowStatus.RESTORED, 0)
    rest = _counted(counts, RowStatus.NOT_RESTORED, RowStatus.UNDO_UNKNOWN)
    if state.is_undone and not rest:
        # An undo plan has noted its end elsewhere.
        at = f" AT {last.ended}" if last is not None and last.ended and last is state.runs[-1] else ""
        text = f"ROLLED BACK{at}: {many(restored, 'offset')} restored, read back"
        return Headline(f"{text}; this plan is SPENT", "warn")
    return Headline(f"PARTLY ROLLED BACK: {restored} restored{rest}; this plan is SPENT", "bad")


def _counted(counts: Mapping[str, int], *statuses: str) -> str:
    return "".join(f", {counts[status]} {status}" for status in statuses if counts.get(status))


def _is_complete(state: JournalState, counts: Mapping[str, int]) -> bool:
    last = state.last(APPLY)
    ended_well = last is not None and last.exit_code == EXIT_DONE
    return ended_well and not any(n for status, n in counts.items() if status not in AS_PLANNED)


def _not_looked_at(plan: Plan, verified: Verified) -> int:
    """Return how many rows there was something to verify of that the verification does not have: it was of others."""
    expected = (r for r in plan.rows if r.decision in (Decision.SET, Decision.KEEP, Decision.REMOVE))
    places = ((row.group, row.target_topic, row.partition) for row in expected)
    return sum(place not in verified.offsets and place not in verified.left_out for place in places)


def verified_headline(plan: Plan, verified: Verified, state: JournalState) -> Headline:
    """Return in one sentence what a verification says of a plan, and whether it still does after these runs."""
    standings, not_looked_at = verified.standings, _not_looked_at(plan, verified)
    counted = tally(standings, sorted(standings)) or "no rows"
    if verified.exit_code not in (EXIT_DONE, EXIT_PARTLY) or not all(standing in GOOD for standing in standings):
        return Headline(f"VERIFY FOUND TROUBLE: {counted}; exit code {verified.exit_code}", "bad")
    if (why := _out_of_date(verified, state)) is not None:
        return Headline(f"VERIFIED {why}: {counted}", "warn")
    rest = [f"{many(not_looked_at, 'row')} not looked at"] * bool(not_looked_at)
    was = (entry["why"] == Standing.ROLLED_BACK for entry in verified.left_out.values())
    unwritten = Counter("rolled back" if undone else "not written" for undone in was)
    rest += [f"{many(unwritten[word], 'row')} {word}" for word in sorted(unwritten)]
    rest += [f"{many(verified.blocks, 'block')} of the plan open"] * bool(verified.blocks)
    if rest or verified.exit_code == EXIT_PARTLY:
        return Headline(f"VERIFIED IN PART: {counted}; {', '.join(rest) or 'exit code 4'}", "warn")
    return Headline(f"VERIFIED: {counted}", "good")


def _out_of_date(verified: Verified, state: JournalState) -> str | None:
    """Return how a verification stands to the last run where it may be older: what that run changed is not in it."""
    if not state.runs:
        return None
    last = state.runs[-1]
    if last.command == UNDONE:  # when that ended is not known here
        return f"BEFORE OR AMID THE LAST {UNDONE.upper()}"
    return f"BEFORE THE LAST {last.command.upper()}" if verified.looked_ms < ms_of(last.ended or last.began) else None


def _place(entry: Mapping[str, Any]) -> Key:
    return (str(entry["group"]), str(entry["target_topic"]), int(entry["partition"]))
