"""Checks whose subject is one committed offset: they report what `migrate.plan.rows` decided."""

from collections import Counter
from collections.abc import Iterable

from migrate.checks.check import Check, check
from migrate.model import (
    LOG_START,
    CheckResult,
    Decision,
    Grade,
    GroupPartition,
    Level,
    Method,
    Row,
    Scope,
)
from migrate.row_table import PlanRows
from migrate.survey.other_log import proofs_on_source, proofs_on_target
from migrate.survey.policies import BEYOND_LOG_END, TOPIC_MISSING, UNTRANSLATABLE_REASONS
from migrate.survey.survey import Case, Survey
from migrate.text import many, utf16_units

# Kafka's default of `offset.metadata.max.bytes`, which counts UTF-16 units (OffsetMetadataManager).
LONGEST_METADATA = 4096


@check("inside-target-log", Scope.ROW, can_be_accepted=False, needs_records=True)
def inside_target_log(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block rows whose offset lies outside the target's log."""
    expected = "an offset inside the target's log"
    todo = "Plan again (docs/translation.md)."
    if not survey.request.places:
        todo = "Choose --rewind set where the group is beyond the log there; else plan again (docs/translation.md)."
    blocks = list(_blocked_for(inside_target_log, rows, expected, todo))
    # What a check can say nothing of is no pass: a row without a place, or one whose log nobody read.
    return blocks or _passes_known(inside_target_log, rows, expected, "target_offset", "target_log_end")


@check("rewind", Scope.ROW, needs_records=True)
def rewind(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block rows whose group has committed further on the target."""
    expected = "no committed offset beyond the planned one"
    blocks = list(_blocked_for(rewind, rows, expected, "Choose --rewind keep or --rewind set."))
    return blocks or _passes_known(rewind, rows, expected, "target_offset", "target_log_end")


@check(BEYOND_LOG_END, Scope.ROW)
def commit_beyond_log_end(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block rows whose commit lies beyond the end of the source's log."""
    expected = "a committed offset inside the source's log"
    todo = "Reset the group on the source, or choose --untranslatable commit-beyond-log-end=earliest|latest."
    blocks = list(_blocked_for(commit_beyond_log_end, rows, expected, todo))
    yield from blocks or _passes_known(commit_beyond_log_end, rows, expected, "source_committed", "source_log_end")
    if Case.SOURCE_DOWN in survey.case and rows:
        yield commit_beyond_log_end.on_cluster.unseen(
            Level.WARN, survey.flow.source.alias, expected, "the source is down: its log ends were not read",
            "A checkpoint of a log that is gone looks like any other.",
        )  # fmt: skip


@check("log-not-visible", Scope.ROW)
def log_not_visible(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block rows of a log whose ends a cluster did not report."""
    todo = "Grant DESCRIBE on the topic, or try again."
    return _blocked_for(log_not_visible, rows, "a log whose ends can be read", todo)


def _blocked_for(check: Check, rows: PlanRows, expected: str, todo: str) -> Iterable[CheckResult]:
    """Yield a block for each row that blocks by itself, for the reason that bears the check's name."""
    for row in rows.where("reason", check.name.__eq__):
        if row.decision is Decision.BLOCK:
            yield check.blocks(row.subject, expected, row.sentence.rstrip("."), todo)


def _passes_known(check: Check, rows: PlanRows, expected: str, *fields: str) -> list[CheckResult]:
    """Return a pass of the rows of which all these fields are known; none where there are no such rows."""
    fine = _known(rows, *fields)
    return [check.passes(many(fine, "row"), expected, "all of them")] if fine else []


def _known(rows: PlanRows, *fields: str) -> int:
    """Count the rows of which all these fields are known."""
    return sum(None not in values for values in rows.values(*fields))


@check("commit-of-another-log", Scope.ROW, can_be_accepted=True)
def commit_of_another_log(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block rows whose commit was made on another log: its offset counts other records than those that are there.

    Where nothing refutes a commit, and no topic id proves it, that is said once, and is no pass
    (`migrate.survey.other_log`). One of an earlier time blocks then: a topic that is deleted takes the commits of now
    with it, as a rule, and never the records of those of then.
    """
    expected = "a commit that was made on the log which is there"
    skipped = [row for row in rows.where("decision", lambda d: d is Decision.SKIP) if row.source_committed is not None]
    open_ones = _known(rows, "source_committed") - len(skipped)
    on_source, on_target = proofs_on_source(survey), proofs_on_target(survey)
    is_of_then = survey.selected.now is not None
    own = set(on_source.own.difference(GroupPartition(row.group, row.source_topic, row.partition) for row in skipped))
    refuted = on_source.others.keys() | on_target.others.keys()
    for row in rows if refuted or is_of_then else ():
        if row.source_committed is None or row.decision is Decision.SKIP:
            continue
        key = GroupPartition(row.group, row.source_topic, row.partition)
        chosen = row.method is Method.EXPLICIT  # then the commit decides nothing
        proof, alias = None if chosen else on_source.others.get(key), survey.flow.source.alias
        # A consumer that starts from such a commit is reset by the broker's word; one that is set anew has no epoch.
        if proof is None and row.decision is Decision.KEEP:
            proof, alias = on_target.others.get(key), survey.flow.target.alias
        if proof is None:
            if is_of_then and not chosen and key not in own:
                open_ones -= 1
                yield _of_unknown_log(row, expected)
            continue
        open_ones -= 1
        own.discard(key)
        todo = (
            f"The topic was deleted and created anew on {alias}, or the commit was copied from another cluster. "
            f"Reset the group there, or waive with --accept {commit_of_another_log}:GROUP/TOPIC/PARTITION if "
            "its offset is right all the same."
        )
        yield commit_of_another_log.blocks(row.subject, expected, f"its commit on {alias} {proof}", todo)
    open_ones -= len(own)
    if own:
        seen = "made on the topics that are there, by the ids that the brokers stored with them"
        yield commit_of_another_log.passes(many(len(own), "commit"), expected, seen)
    if open_ones:
        yield commit_of_another_log.on_cluster.unseen(
            Level.PASS, survey.flow.source.alias, expected,
            f"no topic id proves on which log {many(open_ones, 'commit')} {'was' if open_ones == 1 else 'were'} made, "
            "and no leader epoch refutes it",
            "Only if a topic was deleted and created anew since its groups committed: reset them there, then plan "
            "again.",
        )  # fmt: skip


def _of_unknown_log(row: Row, expected: str) -> CheckResult:
    return commit_of_another_log.unseen(
        Level.BLOCK, row.subject, expected,
        "it is unknown which topic this commit of an earlier time was made on: only a topic id shows it, which brokers "
        "store from Kafka 4.1 on, and not with a commit that was made in a transaction",
        f"If {row.source_topic} was not deleted and created anew since, waive with --accept "
        f"{commit_of_another_log}:GROUP/TOPIC/PARTITION.",
    )  # fmt: skip


@check("metadata-too-long", Scope.ROW, can_be_accepted=True)
def metadata_too_long(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block metadata that the target's brokers refuse by default: the rest of the group would be set without it."""
    for row in rows.where("target_metadata", bool):
        length = utf16_units(row.target_metadata)
        if row.decision is Decision.SET and length > LONGEST_METADATA:
            yield metadata_too_long.blocks(
                row.subject,
                f"metadata of at most {LONGEST_METADATA} characters, as offset.metadata.max.bytes has it by default",
                many(length, "character"),
                f"Raise offset.metadata.max.bytes on the target's brokers, then --accept {metadata_too_long}.",
            )  # fmt: skip


def _untranslatable(reason: str) -> Check:
    """Return the check of commits that no law translates, for a reason of `migrate.survey.policies`."""

    @check(reason, Scope.ROW)
    def judge(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
        todo = f"Choose --untranslatable {reason}=skip (or another choice), or {survey.request.way_to_leave_out}."
        return _blocked_for(judge, rows, "a commit that can be translated", todo)

    return judge


# Of the other two reasons `target_topic_exists` and `commit_beyond_log_end` say more.
UNTRANSLATABLE = tuple(
    _untranslatable(reason) for reason in UNTRANSLATABLE_REASONS if reason not in (TOPIC_MISSING, BEYOND_LOG_END)
)


@check("target-retention", Scope.ROW)
def target_retention(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Name rows that had to move up to the target's log start, and were not compared: nobody knows what is missing."""
    for row in rows.where("missing_on_target", lambda missing: missing is None):
        start, sync = row.target_log_start, row.lower_target_offset
        passed = start is not None and sync is not None and sync < start
        if passed and row.target_offset == start:
            yield target_retention.warns(
                row.subject, "a target log that still holds what is owed",
                f"it starts at {start}, behind the nearest sync at {sync}",
                "Retention on the target may have deleted owed records: let records be compared (no --no-match), or "
                "let the group read on the source first.",
            )  # fmt: skip


@check("estimated-rows", Scope.CLUSTER, needs_records=True)
def estimated_rows(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Count the rows whose offset rests on unproven syncs, and say under which premise they hold."""
    on_syncs, on_nothing = Counter[str](), Counter[str]()
    for grade, why, lower_kind in rows.values("grade", "why", "lower_kind"):
        if grade is not Grade.ESTIMATED:
            continue
        if survey.flow.by_mm2 and lower_kind != LOG_START:
            on_syncs[why or "not-compared"] += 1
        else:
            on_nothing[why or "not-compared"] += 1
    expected, target = "rows proven by their records", survey.flow.target.alias
    if on_syncs:
        yield estimated_rows.warns(
            target, expected, _resting(on_syncs, "MM2's syncs alone"),
            "Loss-free while those syncs tell the truth: not after a target topic was re-created without MM2 having "
            "written a sync since.",
        )  # fmt: skip
    if on_nothing:
        yield estimated_rows.warns(
            target, expected, _resting(on_nothing, "no record"),
            "They are at the target's log start, or placed by timestamps: much is read twice. Let records be compared.",
        )  # fmt: skip


def _resting(reasons: Counter[str], ground: str) -> str:
    """Return how many rows rest on something, and for which reasons."""
    why = ", ".join(f"{n} {reason}" for reason, n in sorted(reasons.items()))
    return f"{many(reasons.total(), 'row')} {'rests' if reasons.total() == 1 else 'rest'} on {ground}: {why}"
