"""Checks whose subject is one committed offset: they report what `migrate.plan.rows` decided."""

from collections import Counter
from collections.abc import Iterable

from migrate.checks.check import CheckFacts, result, unseen
from migrate.model import (
    LONGEST_METADATA,
    CheckResult,
    Decision,
    Grade,
    GroupPartition,
    Level,
    Method,
    Row,
    Scope,
    utf16_units,
)
from migrate.survey.policies import BEYOND_LOG_END, METADATA_TOO_LONG, OTHER_LOG, Policies
from migrate.text import many


def row_blocks(facts: CheckFacts, rows: tuple[Row, ...], policies: Policies) -> Iterable[CheckResult]:
    """One result per row that blocks by itself, under the check that its reason names."""
    expectations = {
        "inside-target-log": ("an offset inside the target's log", "Plan again; see docs/translation.md."),
        "rewind": ("no committed offset beyond the planned one", "Choose --rewind keep or --rewind set."),
        BEYOND_LOG_END: (
            "a committed offset inside the source's log",
            "Reset the group on the source, or choose --untranslatable commit-beyond-log-end=earliest|latest.",
        ),
        "log-not-visible": ("a log whose ends can be read", "Grant DESCRIBE on the topic, or try again."),
    }
    seen: dict[str, int] = dict.fromkeys(expectations, 0)
    # What a check can say nothing of is no pass: a row without a place, or one whose log nobody read.
    placed = [row for row in rows if row.target_offset is not None and row.target_log_end is not None]
    ended = [row for row in rows if row.source_committed is not None and row.source_log_end is not None]
    judged = {"inside-target-log": len(placed), "rewind": len(placed), BEYOND_LOG_END: len(ended)}
    for row in rows:
        if row.decision is Decision.BLOCK and row.reason in expectations:
            expected, todo = expectations[row.reason]
            seen[row.reason] += 1
            yield result(Level.BLOCK, row.reason, Scope.ROW, row.subject, expected, row.sentence.rstrip("."), todo)
    for check, count in judged.items():
        if count and not seen[check]:
            yield result(Level.PASS, check, Scope.ROW, many(count, "row"), expectations[check][0], "all of them")
    if facts.source_down and rows:
        yield unseen(
            Level.WARN, BEYOND_LOG_END, Scope.CLUSTER, facts.source_alias, expectations[BEYOND_LOG_END][0],
            "the source is down: its log ends were not read",
            "A checkpoint of a log that is gone looks like any other.",
        )  # fmt: skip


def commit_of_another_log(facts: CheckFacts, rows: tuple[Row, ...], policies: Policies) -> Iterable[CheckResult]:
    """Block rows whose commit was made on another log: its offset counts other records than those that are there.

    Where nothing refutes a commit that is said once, and is no pass (`migrate.survey.other_log`).
    """
    expected = "a commit whose leader epoch the log has reached"
    judged = [row for row in rows if row.source_committed is not None and row.decision is not Decision.SKIP]
    open_ones = 0
    for row in judged:
        key = GroupPartition(row.group, row.source_topic, row.partition)
        chosen = row.method is Method.EXPLICIT  # then the commit decides nothing
        on_source = None if chosen else facts.other_logs.get(key)
        # A consumer that starts from such a commit is reset by the broker's word; one that is set anew has no epoch.
        on_target = facts.target_other_logs.get(key) if row.decision is Decision.KEEP else None
        proof, alias = (on_source, facts.source_alias) if on_source else (on_target, facts.target_alias)
        if proof is None:
            open_ones += 1
            continue
        todo = (
            f"The topic was deleted and created anew on {alias}, or somebody copied the commit from another cluster. "
            f"Reset the group there, or waive with --accept {OTHER_LOG}:GROUP/TOPIC/PARTITION if its offset is right "
            "all the same."
        )
        seen = (
            f"its commit on {alias} has leader epoch {proof.commit_epoch}, and the log there has not come further than "
            f"{proof.log_epoch}"
        )
        yield result(Level.BLOCK, OTHER_LOG, Scope.ROW, row.subject, expected, seen, todo)
    if open_ones:
        yield unseen(
            Level.PASS, OTHER_LOG, Scope.CLUSTER, facts.source_alias, expected,
            f"nothing refutes {many(open_ones, 'commit')}, which is no proof: a new log reaches every epoch in time, "
            "and a commit need not carry one",
            "",
        )  # fmt: skip


def metadata_too_long(facts: CheckFacts, rows: tuple[Row, ...], policies: Policies) -> Iterable[CheckResult]:
    """Block metadata that the target's brokers refuse by default: the rest of the group would be set without it."""
    for row in rows:
        length = utf16_units(row.target_metadata)
        if row.decision is Decision.SET and length > LONGEST_METADATA:
            yield result(
                Level.BLOCK, METADATA_TOO_LONG, Scope.ROW, row.subject,
                f"metadata of at most {LONGEST_METADATA} characters, as offset.metadata.max.bytes has it by default",
                many(length, "character"),
                f"Raise offset.metadata.max.bytes on the target's brokers, then --accept {METADATA_TOO_LONG}.",
            )  # fmt: skip


def untranslatable_rows(facts: CheckFacts, rows: tuple[Row, ...], policies: Policies) -> Iterable[CheckResult]:
    """Report commits that no law translates, under the check that their reason names."""
    reasons = {
        "topic-not-replicated", "target-partition-missing", "source-topic-missing",
        "source-gone-without-checkpoint",
    }  # fmt: skip
    for row in rows:
        if row.decision is Decision.BLOCK and row.reason in reasons:
            yield result(
                Level.BLOCK, row.reason, Scope.ROW, row.subject, "a commit that can be translated",
                row.sentence.rstrip("."),
                f"Choose --untranslatable {row.reason}=skip (or another choice), or --exclude-topic.",
            )  # fmt: skip


def target_retention(facts: CheckFacts, rows: tuple[Row, ...], policies: Policies) -> Iterable[CheckResult]:
    """Name rows that had to move up to the target's log start, and were not compared: nobody knows what is missing."""
    for row in rows:
        passed = (
            row.lower_target_offset is not None
            and row.target_log_start is not None
            and row.lower_target_offset < row.target_log_start
        )
        if passed and row.missing_on_target is None and row.target_offset == row.target_log_start:
            yield result(
                Level.WARN, "target-retention", Scope.ROW, row.subject, "a target log that still holds what is owed",
                f"it starts at {row.target_log_start}, behind the nearest sync at {row.lower_target_offset}",
                "Retention on the target may have deleted owed records: let records be compared (no --no-match), or "
                "let the group read on the source first.",
            )  # fmt: skip


def estimated(facts: CheckFacts, rows: tuple[Row, ...], policies: Policies) -> Iterable[CheckResult]:
    """Count the rows whose offset rests on unproven syncs, and say under which premise they hold."""
    found = Counter(row.why or "not-compared" for row in rows if row.grade is Grade.ESTIMATED)
    if found:
        why = ", ".join(f"{n} {reason}" for reason, n in sorted(found.items()))
        yield result(
            Level.WARN, "estimated-rows", Scope.CLUSTER, facts.target_alias, "rows proven by their records",
            f"{many(found.total(), 'row')} rest on MM2's syncs alone: {why}",
            "Loss-free while those syncs tell the truth: not after a target topic was re-created "
            "without MM2 having written a sync since.",
        )  # fmt: skip
