"""Checks whose subject is one committed offset: they report what `migrate.rows` decided."""

from collections import Counter
from collections.abc import Iterable

from migrate.checks import CheckFacts, result
from migrate.model import CheckResult, Decision, Grade, Level, Row, Scope
from migrate.policies import BEYOND_LOG_END, METADATA_TOO_LONG, Policies
from migrate.rows import LONGEST_METADATA, utf16_units
from migrate.terminal import many


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
    for row in rows:
        if row.decision is Decision.BLOCK and row.reason in expectations:
            expected, todo = expectations[row.reason]
            seen[row.reason] += 1
            yield result(Level.BLOCK, row.reason, Scope.ROW, row.subject, expected, row.sentence.rstrip("."), todo)
    for check in ("inside-target-log", "rewind", BEYOND_LOG_END):
        if rows and not seen[check]:
            yield result(Level.PASS, check, Scope.ROW, f"{len(rows)} rows", expectations[check][0], "all of them")


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
