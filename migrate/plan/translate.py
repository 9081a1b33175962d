"""Where one committed offset belongs on the target, how that was found, and how much is proven about it. Pure.

Records decide where they were compared (Law 4 of docs/translation.md); else the window of syncs does, with
timestamps as a guard (Law 2); with the source gone, MM2's newest checkpoint. What the policies make of a place
is `migrate.plan.rows`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from migrate.match.equality import Equality
from migrate.match.place_table import PlaceTable
from migrate.match.protocol import Matched, OffsetPair, Unmatched, Why, WhyUnmatched
from migrate.mm2.chain import Window, lower_end, rereads_estimate
from migrate.model import (
    LOG_START,
    PROVEN_SYNC,
    Commit,
    Failure,
    Grade,
    LogRange,
    Method,
    OffsetSync,
    TopicPartition,
)
from migrate.survey.commits_source import FROM_COORDINATORS, CommitsSource
from migrate.survey.policies import (
    AS_OF_GONE,
    AS_OF_NONE,
    BEYOND_LOG_END,
    NO_CHECKPOINT,
    NOT_REPLICATED,
    PARTITION_MISSING,
    SOURCE_TOPIC_MISSING,
    TOPIC_MISSING,
    Policies,
)
from migrate.text import capital, many

TRANSLATED = "translated"


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds for every row of a plan. `syncs_read` is False where no offset sync could be read.

    With `by_timestamp` no sync was asked for, whatever was read.
    """

    policies: Policies
    commits: CommitsSource = FROM_COORDINATORS
    syncs_read: bool = True
    by_timestamp: bool = False


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """What the rows of one partition share: thousands of groups may read it.

    `target` is its copy. `source_log` is None while the source is down, or where its topic is gone; a `Failure` where
    the cluster did not report it. `target_partitions` is None where the target has no such topic. `not_replicated` is
    "" or says why MM2 does not copy the topic. `places` is what comparing the records gave for each committed offset
    that was compared; `window_at` gives the window around one that no records place, `NO_WINDOW` where none was asked
    for. `equality` is what the topic's records had to agree in, None where that is not known.
    """

    target: TopicPartition
    source_log: LogRange | Failure | None
    target_log: LogRange | Failure | None
    target_partitions: int | None
    not_replicated: str
    places: PlaceTable
    window_at: Callable[[int], Window]
    equality: Equality | None


class RowFacts(NamedTuple):
    """All that is known of one committed offset. A tuple, as a place is: a plan makes as many as it has rows.

    `shared` is what is known of its partition. `commit` is None for a partition the group never committed. `answer` is
    what comparing the records gave, None where nothing was compared; `around` the window of syncs, `NO_WINDOW` where
    none was asked for. `checkpoint` is MM2's newest, its source and target offset: a number to compare with, and the
    last resort when the source is gone. In a plan of commits as of an earlier time, `live_source_offset` is what is
    committed now, and `missing_then` why there is no commit of then, as a code of `UNTRANSLATABLE_REASONS`, "" where
    there is one. `target_group` is as in a row.
    """

    group: str
    source: TopicPartition
    shared: PartitionFacts
    commit: Commit | None
    answer: Matched | Unmatched | None
    around: Window
    prior: Commit | None
    checkpoint: OffsetPair | None
    live_source_offset: int | None = None
    missing_then: str = ""
    target_group: str = ""


class Place(NamedTuple):
    """A target offset and how it was found; `why` is the code of what comparing said, "" where nothing did.

    `rereads_at_most` is a proven bound, `rereads_estimate` bounds nothing; a place has one of them at most.
    `missing` counts owed records without a copy, None where records were not compared, or not all.
    """

    target_offset: int
    method: Method
    grade: Grade | None
    reason: str
    sentence: str
    lower_kind: str
    lower: OffsetPair | None = None
    upper: OffsetPair | None = None
    rereads_at_most: int | None = None
    rereads_estimate: int | None = None
    missing: int | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Nowhere:
    """No law places this commit: why, as a code of `UNTRANSLATABLE_REASONS` or one that always blocks."""

    reason: str
    sentence: str
    always_blocks: bool = False


_MISSING_THEN = {
    AS_OF_GONE: "Compaction has left no record of this commit from before the time of --commits-as-of: what stood "
    "there then is not known.",
    AS_OF_NONE: "The group had no commit here at the time of --commits-as-of, and has one now.",
}


def place(facts: RowFacts, rules: Rules) -> Place | Nowhere:  # noqa: PLR0911 - the laws in their order
    """Return where the commit belongs on the target, or why no law says."""
    shared, source = facts.shared, facts.source
    if facts.missing_then:
        return Nowhere(facts.missing_then, _MISSING_THEN[facts.missing_then])
    if shared.not_replicated:
        return Nowhere(NOT_REPLICATED, shared.not_replicated)
    if shared.target_partitions is None:
        return Nowhere(TOPIC_MISSING, f"The target has no topic {shared.target.topic}.")
    if source.partition >= shared.target_partitions:
        return Nowhere(
            PARTITION_MISSING,
            f"The target's {shared.target.topic} has {many(shared.target_partitions, 'partition')}: "
            f"there is no partition {source.partition}.",
        )
    if not isinstance(shared.target_log, LogRange):
        return not_visible("target", shared.target_log)
    if not rules.commits.asks_source:
        return _without_source(facts, rules, shared.target_log)
    if isinstance(shared.source_log, Failure):
        return not_visible("source", shared.source_log)
    if shared.source_log is None:
        return Nowhere(SOURCE_TOPIC_MISSING, f"The source no longer has {source}.")
    assert facts.commit is not None, "only with the source down is a place without a commit translated"
    if facts.commit.offset > shared.source_log.end:
        return Nowhere(
            BEYOND_LOG_END,
            f"The group's committed offset {facts.commit.offset} lies beyond the source's end "
            f"{shared.source_log.end} (last stable offset): the topic was re-created or truncated, "
            "or a transaction is open.",
        )
    if isinstance(facts.answer, Matched):
        return _by_records(facts.answer, facts.commit.offset, shared.target_log)
    if isinstance(facts.answer, Unmatched):
        return _by_guarded_window(facts, rules, facts.answer, facts.commit.offset, shared.target_log)
    return _by_window(facts, rules, facts.around, facts.commit.offset, shared.target_log)


def not_visible(side: str, why: Failure | None) -> Nowhere:
    """Return the place of a commit whose log on `side` is not known: blocked, whatever the policies say."""
    detail = "no answer" if why is None else str(why)
    return Nowhere("log-not-visible", f"The {side} returned no log range for this partition: {detail}.", True)


def _by_records(answer: Matched, source_committed: int, target_log: LogRange) -> Place:
    if answer.why is Why.LEAST_TIMESTAMP:
        return _by_timestamp(answer)
    if answer.lower == (source_committed, answer.target_offset):
        method = Method.SYNC
    elif answer.target_offset == target_log.end:
        method = Method.END
    else:
        method = Method.MATCH
    return Place(
        answer.target_offset,
        method,
        Grade.EXACT if answer.exact else Grade.BOUNDED,
        str(answer.why),
        _matched_sentence(answer.why, answer.exact, answer.rereads_at_most, answer.missing_on_target),
        PROVEN_SYNC if answer.lower else LOG_START,
        answer.lower,
        answer.upper,
        rereads_at_most=answer.rereads_at_most,
        # Where not all was read, none was looked for.
        missing=None if answer.why is Why.NOT_ALL_READ else answer.missing_on_target,
        why=str(answer.why),
    )


def _by_timestamp(answer: Matched) -> Place:
    """Place a row by Law 2b."""
    return Place(
        answer.target_offset,
        Method.TIMESTAMP,
        Grade.BOUNDED,
        str(answer.why),
        _matched_sentence(answer.why, False, answer.rereads_at_most, 0),
        "timestamp",
        rereads_at_most=answer.rereads_at_most,
        why=str(answer.why),
    )


@lru_cache(maxsize=4096)
def _matched_sentence(why: Why, is_exact: bool, rereads_at_most: int, missing: int) -> str:
    """Return what is said of a commit that the records place."""
    parts, are = [_WHY[why]], "is" if rereads_at_most == 1 else "are"
    if missing:
        parts.append(f"{many(missing, 'record')} of those owed {'has' if missing == 1 else 'have'} no copy there.")
    if is_exact and rereads_at_most:
        parts.append(f"{many(rereads_at_most, 'record')} from there on {are} read twice.")
    elif not is_exact:
        parts.append(f"At most {many(rereads_at_most, 'record')} {are} read twice.")
    return " ".join(parts)


_WHY = {
    Why.PROVEN: "The records of both sides were compared: all that the group is owed lies at or after this offset, "
    "and no later offset would do.",
    Why.UNKNOWN_RECORD: "A record on the target that equals none of the source may be an owed one in another shape: "
    "the row is before it.",
    Why.BELOW_LOG_START: "The commit lies below the source's log start; what retention removed there the target may "
    "still have, and is owed.",
    Why.CHANGED_IN_FLIGHT: "Records are changed on the way: they were compared by timestamp and key alone.",
    Why.NOT_COPIED_YET: "Not all records before the commit are copied yet; those that still come are read again.",
    Why.RETENTION: "Retention has removed records that would prove the offset.",
    Why.LOOK_ALIKES: "Records around the commit are alike in all that was compared: the row is where "
    "none of them is missed.",
    Why.NOT_ALL_READ: "Not all records around the commit were read (limits, or a log that could not be read): the "
    "row is where nothing can have been skipped.",
    Why.LEAST_TIMESTAMP: "Placed by timestamps (--by timestamp): nothing that the group is owed is older than what the "
    "target has from this offset on. What is copied there later comes on top.",
}


def _by_window(facts: RowFacts, rules: Rules, around: Window, source_committed: int, target_log: LogRange) -> Place:
    """Place a row at its window's lower end (Law 2), without a guard."""
    target_offset = lower_end(around, source_committed, target_log)
    if around.lower is None:
        none = "no sync lies at or below the committed offset" if rules.syncs_read else "there is no offset sync"
        if rules.by_timestamp:
            none = "no sync counts with --by timestamp"
        kind, why = LOG_START, f"{none}: the target's log start"
    elif around.lower.target_offset < target_log.start:
        kind, why = LOG_START, "the target's retention has passed the nearest sync: the target's log start"
    elif around.lower.source_offset == source_committed:
        kind, why = "sync", f"a sync is at the committed offset: {around.lower.target_offset}"
    else:
        kind = "sync"
        why = (
            f"the nearest sync below is source {around.lower.source_offset} at target "
            f"{around.lower.target_offset}: the offset after it"
        )
    method = Method.SYNC if around.lower and target_offset == around.lower.target_offset else Method.WINDOW
    source_log = facts.shared.source_log if isinstance(facts.shared.source_log, LogRange) else None
    return Place(
        target_offset,
        method,
        Grade.ESTIMATED,
        TRANSLATED,
        capital(why) + ".",
        kind,
        sync_pair(around.lower),
        sync_pair(around.upper),
        rereads_estimate=rereads_estimate(around, source_committed, target_offset, source_log, target_log),
    )


def _by_guarded_window(
    facts: RowFacts, rules: Rules, answer: Unmatched, source_committed: int, target_log: LogRange
) -> Place:
    """Place a row that records could not place: the smaller of the window's lower end and the guard (Law 2)."""
    around = facts.around
    if answer.lower is not None:
        around = Window(OffsetSync(0, *answer.lower), around.upper)
    elif answer.refuted:
        around = Window(None, around.upper)
    placed = _by_window(facts, rules, around, source_committed, target_log)
    if answer.refuted:
        placed = placed._replace(sentence="The nearest sync names two records that differ: the target's log start.")
    if answer.lower is not None and placed.lower_kind == "sync":
        placed = placed._replace(lower_kind=PROVEN_SYNC)
    guard = None if answer.guard_offset is None else max(answer.guard_offset, target_log.start)
    if guard is not None and guard < placed.target_offset:
        below = placed.target_offset - guard
        placed = placed._replace(
            target_offset=guard,
            method=Method.TIMESTAMP,
            sentence=f"The first owed record's timestamp is found at target {guard}, {below} before the nearest "
            "sync: the smaller of the two is taken.",
            lower_kind="timestamp",
            rereads_estimate=(placed.rereads_estimate or 0) + below,
        )
    code = f" ({answer.error_code})" if answer.error_code else ""
    sentence = f"{_UNMATCHED[answer.reason]}{code}. {placed.sentence}"
    return placed._replace(reason=str(answer.reason), why=str(answer.reason), sentence=sentence)


NOT_COMPARED = "The records were not compared"
_UNMATCHED: Mapping[str, str] = {
    WhyUnmatched.NO_MATCH: "Records were not compared (--no-match)",
    WhyUnmatched.MATCH_LIMIT: "Beyond what --match-limit and --max-fetch allow to read",
    WhyUnmatched.NOT_READABLE: "The records could not be read",
    WhyUnmatched.TIMESTAMPS_NOT_KEPT: "Timestamps place nothing here: nothing shows that the target's are the source's",
    WhyUnmatched.RECORDS_CHANGED: "Records are changed on the way, so that they cannot be compared",
}


def why_text(why: str) -> str:
    """Return the sentence of a row's `why`: what comparing the records showed, or why they were not compared."""
    return next((text for code, text in _WHY.items() if code == why), "") or f"{_UNMATCHED.get(why, NOT_COMPARED)}."


def _without_source(facts: RowFacts, rules: Rules, target_log: LogRange) -> Place | Nowhere:
    """Place a row from the target alone (docs/translation.md, "Source gone"): the smaller of two hints."""
    if facts.checkpoint is None:
        return Nowhere(NO_CHECKPOINT, "The source is down, and MM2 left no checkpoint for this partition.")
    hint_source, hint_target = facts.checkpoint
    if rules.syncs_read:
        # An empty chain speaks too: MM2 wrote syncs, and later ones contradict all that this checkpoint rests on.
        by_window = lower_end(facts.around, hint_source, target_log)
        if by_window < hint_target:
            placed = _by_window(facts, rules, facts.around, hint_source, target_log)
            sentence = f"Source down; {placed.sentence[:1].lower()}{placed.sentence[1:]}"
            return placed._replace(reason="source-down", sentence=sentence)
    if not target_log.start <= hint_target <= target_log.end:
        return Nowhere(
            "inside-target-log",
            f"MM2's checkpoint says {hint_target}, outside the target's log [{target_log.start}, {target_log.end}].",
            always_blocks=True,
        )
    committed = facts.commit.offset if facts.commit else None
    return Place(
        hint_target,
        Method.CHECKPOINT,
        Grade.ESTIMATED,
        "source-down",
        f"Source down; MM2's newest checkpoint (source {hint_source}) says {hint_target}.",
        "checkpoint",
        sync_pair(facts.around.lower),
        sync_pair(facts.around.upper),
        rereads_estimate=None
        if committed is None
        else rereads_estimate(facts.around, committed, hint_target, None, target_log),
    )


def sync_pair(sync: OffsetSync | None) -> OffsetPair | None:
    """Return a sync's two offsets."""
    return None if sync is None else (sync.source_offset, sync.target_offset)
