"""Checks whose subject is one committed offset: they report what `migrate.plan.rows` decided."""

from collections import Counter
from collections.abc import Iterable

from migrate.checks import registry as checks
from migrate.checks.check import CheckFacts, judges
from migrate.model import (
    LOG_START,
    CheckResult,
    Decision,
    Grade,
    GroupPartition,
    Level,
    Method,
    Row,
)
from migrate.row_table import PlanRows
from migrate.survey.policies import Policies
from migrate.text import many, utf16_units

# Kafka's default of `offset.metadata.max.bytes`, which counts UTF-16 units (OffsetMetadataManager).
LONGEST_METADATA = 4096


@judges(checks.INSIDE_TARGET_LOG, checks.REWIND, checks.COMMIT_BEYOND_LOG_END, checks.LOG_NOT_VISIBLE)
def row_blocks(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """One result per row that blocks by itself, under the check that its reason names."""
    expectations = {
        checks.INSIDE_TARGET_LOG: (
            "an offset inside the target's log",
            "Choose --rewind set where the group is beyond the log there; else plan again (docs/translation.md).",
        ),
        checks.REWIND: ("no committed offset beyond the planned one", "Choose --rewind keep or --rewind set."),
        checks.COMMIT_BEYOND_LOG_END: (
            "a committed offset inside the source's log",
            "Reset the group on the source, or choose --untranslatable commit-beyond-log-end=earliest|latest.",
        ),
        checks.LOG_NOT_VISIBLE: ("a log whose ends can be read", "Grant DESCRIBE on the topic, or try again."),
    }
    by_reason = {check.name: check for check in expectations}
    blocked = set()
    # What a check can say nothing of is no pass: a row without a place, or one whose log nobody read.
    placed = _known(rows, "target_offset", "target_log_end")
    ended = _known(rows, "source_committed", "source_log_end")
    judged = ((checks.INSIDE_TARGET_LOG, placed), (checks.REWIND, placed), (checks.COMMIT_BEYOND_LOG_END, ended))
    for row in rows.where("decision", _is_block):
        check = by_reason.get(row.reason)
        if check is not None:
            expected, todo = expectations[check]
            blocked.add(check)
            yield check.blocks(row.subject, expected, row.sentence.rstrip("."), todo)
    for check, fine in judged:
        if fine and check not in blocked:
            yield check.passes(many(fine, "row"), expectations[check][0], "all of them")
    if facts.source_down and rows:
        yield checks.COMMIT_BEYOND_LOG_END.on_cluster.unseen(
            Level.WARN, facts.source.alias, expectations[checks.COMMIT_BEYOND_LOG_END][0],
            "the source is down: its log ends were not read",
            "A checkpoint of a log that is gone looks like any other.",
        )  # fmt: skip


def _known(rows: PlanRows, *fields: str) -> int:
    """Count the rows of which all these fields are known."""
    return sum(None not in values for values in rows.values(*fields))


def _is_block(decision: Decision) -> bool:
    return decision is Decision.BLOCK


@judges(checks.COMMIT_OF_ANOTHER_LOG)
def commit_of_another_log(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Block rows whose commit was made on another log: its offset counts other records than those that are there.

    Where nothing refutes a commit, and no topic id proves it, that is said once, and is no pass
    (`migrate.survey.other_log`). One of an earlier time blocks then: a topic that is deleted takes the commits of now
    with it, as a rule, and never the records of those of then.
    """
    expected = "a commit that was made on the log which is there"
    skipped = [row for row in rows.where("decision", lambda d: d is Decision.SKIP) if row.source_committed is not None]
    open_ones = _known(rows, "source_committed") - len(skipped)
    on_source, on_target = facts.source.logs, facts.target.logs
    own = set(on_source.own.difference(GroupPartition(row.group, row.source_topic, row.partition) for row in skipped))
    refuted = on_source.others.keys() | on_target.others.keys()
    for row in rows if refuted or facts.is_as_of else ():
        if row.source_committed is None or row.decision is Decision.SKIP:
            continue
        key = GroupPartition(row.group, row.source_topic, row.partition)
        chosen = row.method is Method.EXPLICIT  # then the commit decides nothing
        proof, alias = None if chosen else on_source.others.get(key), facts.source.alias
        # A consumer that starts from such a commit is reset by the broker's word; one that is set anew has no epoch.
        if proof is None and row.decision is Decision.KEEP:
            proof, alias = on_target.others.get(key), facts.target.alias
        if proof is None:
            if facts.is_as_of and not chosen and key not in own:
                open_ones -= 1
                yield _of_unknown_log(row, expected)
            continue
        open_ones -= 1
        own.discard(key)
        todo = (
            f"The topic was deleted and created anew on {alias}, or somebody copied the commit from another cluster. "
            f"Reset the group there, or waive with --accept {checks.COMMIT_OF_ANOTHER_LOG}:GROUP/TOPIC/PARTITION if "
            "its offset is right all the same."
        )
        seen = proof.sentence(f"its commit on {alias}")
        yield checks.COMMIT_OF_ANOTHER_LOG.blocks(row.subject, expected, seen, todo)
    open_ones -= len(own)
    if own:
        seen = "made on the topics that are there, by the ids that the brokers stored with them"
        yield checks.COMMIT_OF_ANOTHER_LOG.passes(many(len(own), "commit"), expected, seen)
    if open_ones:
        yield checks.COMMIT_OF_ANOTHER_LOG.on_cluster.unseen(
            Level.PASS, facts.source.alias, expected,
            f"nothing refutes {many(open_ones, 'commit')}, which is no proof: a new log reaches every epoch in time, "
            "and a commit need not carry one", "",
        )  # fmt: skip


def _of_unknown_log(row: Row, expected: str) -> CheckResult:
    return checks.COMMIT_OF_ANOTHER_LOG.unseen(
        Level.BLOCK, row.subject, expected,
        "nothing tells which topic this commit of an earlier time was made on: only a topic id does, which brokers "
        "store from Kafka 4.1 on, and not with a commit that was made in a transaction",
        f"If {row.source_topic} was not deleted and created anew since, waive with --accept "
        f"{checks.COMMIT_OF_ANOTHER_LOG}:GROUP/TOPIC/PARTITION.",
    )  # fmt: skip


@judges(checks.METADATA_TOO_LONG)
def metadata_too_long(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Block metadata that the target's brokers refuse by default: the rest of the group would be set without it."""
    for row in rows.where("target_metadata", bool):
        length = utf16_units(row.target_metadata)
        if row.decision is Decision.SET and length > LONGEST_METADATA:
            yield checks.METADATA_TOO_LONG.blocks(
                row.subject,
                f"metadata of at most {LONGEST_METADATA} characters, as offset.metadata.max.bytes has it by default",
                many(length, "character"),
                f"Raise offset.metadata.max.bytes on the target's brokers, then --accept {checks.METADATA_TOO_LONG}.",
            )  # fmt: skip


UNTRANSLATABLE = (
    checks.TOPIC_NOT_REPLICATED, checks.TARGET_PARTITION_MISSING, checks.SOURCE_TOPIC_MISSING,
    checks.SOURCE_GONE_WITHOUT_CHECKPOINT, checks.COMMIT_AS_OF_GONE, checks.NO_COMMIT_AS_OF,
)  # fmt: skip


@judges(*UNTRANSLATABLE)
def untranslatable_rows(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Report commits that no law translates, under the check that their reason names."""
    by_reason = {check.name: check for check in UNTRANSLATABLE}
    for row in rows.where("decision", _is_block):
        if row.reason in by_reason:
            yield by_reason[row.reason].blocks(
                row.subject, "a commit that can be translated", row.sentence.rstrip("."),
                f"Choose --untranslatable {row.reason}=skip (or another choice), or --exclude-topic.",
            )  # fmt: skip


@judges(checks.TARGET_RETENTION)
def target_retention(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Name rows that had to move up to the target's log start, and were not compared: nobody knows what is missing."""
    for row in rows.where("missing_on_target", lambda missing: missing is None):
        start, sync = row.target_log_start, row.lower_target_offset
        passed = start is not None and sync is not None and sync < start
        if passed and row.target_offset == start:
            yield checks.TARGET_RETENTION.warns(
                row.subject, "a target log that still holds what is owed",
                f"it starts at {start}, behind the nearest sync at {sync}",
                "Retention on the target may have deleted owed records: let records be compared (no --no-match), or "
                "let the group read on the source first.",
            )  # fmt: skip


@judges(checks.ESTIMATED_ROWS)
def estimated(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Count the rows whose offset rests on unproven syncs, and say under which premise they hold."""
    on_syncs, on_nothing = Counter[str](), Counter[str]()
    for grade, why, lower_kind in rows.values("grade", "why", "lower_kind"):
        if grade is not Grade.ESTIMATED:
            continue
        if facts.mm2.copies and lower_kind != LOG_START:
            on_syncs[why or "not-compared"] += 1
        else:
            on_nothing[why or "not-compared"] += 1
    expected, target = "rows proven by their records", facts.target.alias
    if on_syncs:
        yield checks.ESTIMATED_ROWS.warns(
            target, expected, _resting(on_syncs, "MM2's syncs alone"),
            "Loss-free while those syncs tell the truth: not after a target topic was re-created without MM2 having "
            "written a sync since.",
        )  # fmt: skip
    if on_nothing:
        yield checks.ESTIMATED_ROWS.warns(
            target, expected, _resting(on_nothing, "no record"),
            "They stand at the target's log start, or by timestamps: much is read twice. Let records be compared.",
        )  # fmt: skip


def _resting(reasons: Counter[str], ground: str) -> str:
    """Return how many rows rest on something, and for which reasons."""
    why = ", ".join(f"{n} {reason}" for reason, n in sorted(reasons.items()))
    return f"{many(reasons.total(), 'row')} {'rests' if reasons.total() == 1 else 'rest'} on {ground}: {why}"
