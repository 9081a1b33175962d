"""From facts about one committed offset to its row: the translation, then what the policies make of it.

Pure. Every commit becomes exactly one row with a decision, a reason code and a sentence (promise 3). Blocks
that come from checks on groups, topics and clusters are laid over the rows afterwards (`with_blocks`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from migrate.model import Commit, Decision, Failure, Grade, GroupPartition, LogRange, Method, Row
from migrate.policies import (
    BEYOND_LOG_END,
    NO_CHECKPOINT,
    NOT_REPLICATED,
    PARTITION_MISSING,
    SOURCE_TOPIC_MISSING,
    TOPIC_MISSING,
    Policies,
    Rewind,
    Untranslatable,
)
from migrate.terminal import capital
from migrate.translation import Window, lower_end, rereads_estimate

METADATA_NEEDS_JAVA = "metadata-needs-java-admin"
GROUP_BLOCKED = "group-blocked"


@dataclass(frozen=True, slots=True)
class CheckpointHint:
    """MM2's newest checkpoint: a number to compare with, the last resort when the source is gone."""

    source_offset: int
    target_offset: int


@dataclass(frozen=True, slots=True)
class RowFacts:
    """All that is known of one committed offset.

    `commit` is None for a partition the group never committed. `source_log` is None while the source is
    down, or where its topic is gone; a `Failure` where the cluster would not tell. `target_partitions` is
    None where the target has no such topic. `not_replicated` is "" or says why MM2 does not copy the topic.
    """

    key: GroupPartition
    target_topic: str
    commit: Commit | None
    source_log: LogRange | Failure | None
    target_log: LogRange | Failure | None
    target_partitions: int | None
    not_replicated: str
    prior: Commit | None
    around: Window
    checkpoint: CheckpointHint | None
    # False where no offset syncs could be read at all: then, with the source down, only the checkpoint tells.
    syncs_read: bool = True


@dataclass(frozen=True, slots=True)
class _Place:
    """A target offset and how it was found."""

    target_offset: int
    method: Method
    grade: Grade | None
    reason: str
    sentence: str
    lower_kind: str


@dataclass(frozen=True, slots=True)
class _Nowhere:
    """No law places this commit: why, as a code of `UNTRANSLATABLE_REASONS` or one that always blocks."""

    reason: str
    sentence: str
    always_blocks: bool = False


def build_row(facts: RowFacts, policies: Policies, source_down: bool) -> Row:
    """Return the row for one commit, before the checks on its group, topic and clusters are laid over it."""
    placed = _place(facts, source_down)
    if isinstance(placed, _Nowhere):
        return _untranslatable(facts, placed, policies)
    return _decide(facts, placed, policies)


def uncommitted_row(facts: RowFacts, policies: Policies) -> Row:
    """Return the row of a partition that the group never committed, for `--uncommitted earliest`."""
    if isinstance(facts.target_log, Failure):
        return _untranslatable(facts, _not_visible("target", facts.target_log), policies)
    if facts.target_log is None:
        return _untranslatable(facts, _Nowhere(PARTITION_MISSING, "The target has no such partition."), policies)
    place = _Place(
        facts.target_log.start,
        Method.EXPLICIT,
        None,
        "never-committed",
        "The group never committed this partition; --uncommitted earliest sets it to the target's log start.",
        "log-start",
    )
    return _decide(facts, place, policies)


def _place(facts: RowFacts, source_down: bool) -> _Place | _Nowhere:
    key = facts.key
    if facts.not_replicated:
        return _Nowhere(NOT_REPLICATED, facts.not_replicated)
    if facts.target_partitions is None:
        return _Nowhere(TOPIC_MISSING, f"The target has no topic {facts.target_topic}.")
    if key.partition >= facts.target_partitions:
        return _Nowhere(
            PARTITION_MISSING,
            f"The target's {facts.target_topic} has {facts.target_partitions} partitions: "
            f"there is no partition {key.partition}.",
        )
    if not isinstance(facts.target_log, LogRange):
        return _not_visible("target", facts.target_log)
    if source_down:
        return _place_without_source(facts, facts.target_log)
    if isinstance(facts.source_log, Failure):
        return _not_visible("source", facts.source_log)
    if facts.source_log is None:
        return _Nowhere(SOURCE_TOPIC_MISSING, f"The source no longer has {key.topic}-{key.partition}.")
    if facts.commit is None:
        return _Nowhere(NO_CHECKPOINT, "There is no committed offset.")
    if facts.commit.offset > facts.source_log.end:
        return _Nowhere(
            BEYOND_LOG_END,
            f"The group's committed offset {facts.commit.offset} lies beyond the source's end "
            f"{facts.source_log.end} (last stable offset): the topic was re-created or truncated, "
            "or a transaction is open.",
        )
    return _place_by_window(facts.around, facts.commit.offset, facts.target_log)


def _place_by_window(around: Window, source_committed: int, target_log: LogRange) -> _Place:
    target_offset = lower_end(around, source_committed, target_log)
    if around.lower is None:
        kind, why = "log-start", "no sync lies at or below the committed offset: the target's log start"
    elif around.lower.target_offset < target_log.start:
        kind, why = "log-start", "the target's retention has passed the nearest sync: the target's log start"
    elif around.lower.source_offset == source_committed:
        kind, why = "sync", f"a sync stands on the committed offset: {around.lower.target_offset}"
    else:
        kind = "sync"
        why = (
            f"the nearest sync below is source {around.lower.source_offset} at target "
            f"{around.lower.target_offset}: the offset after it"
        )
    method = Method.SYNC if around.lower and target_offset == around.lower.target_offset else Method.WINDOW
    return _Place(target_offset, method, Grade.ESTIMATED, "translated", capital(why) + ".", kind)


def _place_without_source(facts: RowFacts, target_log: LogRange) -> _Place | _Nowhere:
    """Place a row from the target alone (docs/translation.md, "Source gone"): the smaller of two hints."""
    hint = facts.checkpoint
    if hint is None:
        return _Nowhere(NO_CHECKPOINT, "The source is down, and MM2 left no checkpoint for this partition.")
    if facts.syncs_read:
        # An empty chain speaks too: MM2 wrote syncs, and later ones contradict all that this checkpoint rests on.
        by_window = lower_end(facts.around, hint.source_offset, target_log)
        if by_window < hint.target_offset:
            place = _place_by_window(facts.around, hint.source_offset, target_log)
            return replace(place, reason="source-down", sentence=f"Source down; {_small(place.sentence)}")
    if not target_log.start <= hint.target_offset <= target_log.end:
        return _Nowhere(
            "inside-target-log",
            f"MM2's checkpoint says {hint.target_offset}, outside the target's log "
            f"[{target_log.start}, {target_log.end}].",
            always_blocks=True,
        )
    return _Place(
        hint.target_offset,
        Method.CHECKPOINT,
        Grade.ESTIMATED,
        "source-down",
        f"Source down; MM2's newest checkpoint (source {hint.source_offset}) says {hint.target_offset}.",
        "checkpoint",
    )


def _not_visible(side: str, why: Failure | None) -> _Nowhere:
    detail = "no answer" if why is None else f"{why.code}: {why.message}"
    return _Nowhere("log-not-visible", f"The {side} did not tell this partition's log: {detail}.", True)


def _untranslatable(facts: RowFacts, nowhere: _Nowhere, policies: Policies) -> Row:
    choice = Untranslatable.BLOCK if nowhere.always_blocks else policies.for_reason(nowhere.reason)
    if choice is Untranslatable.BLOCK or (
        choice is not Untranslatable.SKIP and not isinstance(facts.target_log, LogRange)
    ):
        return _row(facts, Decision.BLOCK, None, nowhere.reason, nowhere.sentence)
    if choice is Untranslatable.SKIP:
        sentence = f"{nowhere.sentence} Left alone, as --untranslatable says."
        return _row(facts, Decision.SKIP, None, nowhere.reason, sentence)
    assert isinstance(facts.target_log, LogRange)
    offset = facts.target_log.start if choice is Untranslatable.EARLIEST else facts.target_log.end
    sentence = f"{nowhere.sentence} Set to the target's {choice} offset, as --untranslatable says."
    place = _Place(offset, Method.EXPLICIT, None, nowhere.reason, sentence, f"log-{choice}")
    return _decide(facts, place, policies)


def _decide(facts: RowFacts, place: _Place, policies: Policies) -> Row:
    """Lay the prior target offset over a place: already there, ahead, behind, or new."""
    assert isinstance(facts.target_log, LogRange)
    log = facts.target_log
    if not log.start <= place.target_offset <= log.end:
        sentence = f"Offset {place.target_offset} lies outside the target's log [{log.start}, {log.end}]."
        return _row(facts, Decision.BLOCK, place, "inside-target-log", sentence)
    prior = facts.prior.offset if facts.prior else None
    if prior == place.target_offset:
        sentence = "The target group already stands there."
        if facts.commit is not None and facts.prior and facts.commit.metadata != facts.prior.metadata:
            sentence += " Its commit metadata differs from the source's, which is not carried over."
        return _row(facts, Decision.KEEP, place, "already-there", sentence)
    if prior is not None and prior > place.target_offset and policies.rewind is not Rewind.SET:
        ahead = (
            f"The target group stands at {prior}, {prior - place.target_offset} beyond the planned "
            f"{place.target_offset}"
        )
        if policies.rewind is Rewind.KEEP:
            sentence = f"{ahead}; kept by --rewind keep, which may skip records."
            return _row(facts, Decision.KEEP, place, "ahead-kept", sentence)
        sentence = f"{ahead}: setting it would rewind. Choose --rewind set or --rewind keep."
        return _row(facts, Decision.BLOCK, place, "rewind", sentence)
    if facts.commit is not None and facts.commit.metadata:
        sentence = "The commit carries metadata, which the present client can not write byte for byte."
        return _row(facts, Decision.BLOCK, place, METADATA_NEEDS_JAVA, sentence)
    if prior is not None and prior > place.target_offset:
        sentence = f"{place.sentence} Rewinds the target group from {prior}, as --rewind set says."
        return _row(facts, Decision.SET, place, "rewound", sentence)
    return _row(facts, Decision.SET, place, place.reason, place.sentence)


def _row(facts: RowFacts, decision: Decision, place: _Place | None, reason: str, sentence: str) -> Row:
    source_log = facts.source_log if isinstance(facts.source_log, LogRange) else None
    target_log = facts.target_log if isinstance(facts.target_log, LogRange) else None
    committed = facts.commit.offset if facts.commit else None
    estimate = None
    if place is not None and place.method is Method.EXPLICIT and target_log:
        # No law bounds it: all that the group will read from there on.
        estimate = target_log.end - place.target_offset
    elif place is not None and place.grade is Grade.ESTIMATED and target_log and committed is not None:
        estimate = rereads_estimate(facts.around, committed, place.target_offset, source_log, target_log)
    lower, upper = facts.around.lower, facts.around.upper
    return Row(
        group=facts.key.group,
        source_topic=facts.key.topic,
        target_topic=facts.target_topic,
        partition=facts.key.partition,
        source_committed=committed,
        source_metadata=facts.commit.metadata if facts.commit else "",
        source_log_start=source_log.start if source_log else None,
        source_log_end=source_log.end if source_log else None,
        target_log_start=target_log.start if target_log else None,
        target_log_end=target_log.end if target_log else None,
        target_prior=facts.prior.offset if facts.prior else None,
        target_prior_metadata=facts.prior.metadata if facts.prior else "",
        decision=decision,
        target_offset=place.target_offset if place else None,
        method=place.method if place else None,
        grade=place.grade if place else None,
        rereads_at_most=None,
        rereads_estimate=estimate,
        reason=reason,
        sentence=sentence,
        lower_kind=place.lower_kind if place else "",
        lower_source_offset=lower.source_offset if lower else None,
        lower_target_offset=lower.target_offset if lower else None,
        upper_source_offset=upper.source_offset if upper else None,
        upper_target_offset=upper.target_offset if upper else None,
        checkpoint_source_offset=facts.checkpoint.source_offset if facts.checkpoint else None,
        checkpoint_target_offset=facts.checkpoint.target_offset if facts.checkpoint else None,
    )


def with_blocks(rows: Iterable[Row], blocked_groups: Mapping[str, tuple[str, str]]) -> tuple[Row, ...]:
    """Lay the checks' blocks over the rows: a group is set whole or not at all.

    `blocked_groups` maps a group to the (check, sentence) that blocks it. Rows that block by themselves keep
    their own reason; the other rows of a group with such a row become blocks with reason `group-blocked`,
    so that a plan's `set` rows are exactly what `apply` writes. `target_offset` still shows the translation.
    """
    listed = list(rows)
    own = {row.group: row for row in reversed(listed) if row.decision is Decision.BLOCK}
    laid = []
    for row in listed:
        if row.decision is not Decision.BLOCK:
            if row.group in blocked_groups:
                check, sentence = blocked_groups[row.group]
                row = replace(row, decision=Decision.BLOCK, reason=check, sentence=sentence)
            elif row.group in own:
                first = own[row.group]
                sentence = (
                    f"{first.source_topic}-{first.partition} of this group is blocked ({first.reason}), "
                    "and a group is set whole or not at all."
                )
                row = replace(row, decision=Decision.BLOCK, reason=GROUP_BLOCKED, sentence=sentence)
        laid.append(row)
    return tuple(sorted(laid, key=lambda r: r.key))


def _small(text: str) -> str:
    return text[:1].lower() + text[1:]
