"""What clusters tell of their groups beyond states and commits, and a memory of it. Pure.

Nothing rests on these facts alone, so whatever is forbidden or slow is a `Failure`, never an error of the command.
"""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TypeVar, cast

from migrate.clock import Clock
from migrate.model import Failure
from migrate.survey.cluster import BrokerSettings
from migrate.survey.offsets_topic import GroupRecord, LogMemory
from migrate.text import duration_text, many

T = TypeVar("T")
# A watch that shows what was true longer ago keeps a block that a consumer has long ended.
REMEMBERED_SECONDS = 60.0
NOT_ASKED = Failure("NOT_ASKED", "not asked")
TOO_MANY_RECORDS = "TOO_MANY_RECORDS"
# A second or two of reading, while a plan waits for its second look anyway.
MOST_RECORDS = 500_000
NOT_TOLD = Failure("NOT_TOLD", "its records were not to be seen")


@dataclass(frozen=True)
class GroupFacts:
    """What was asked of both clusters.

    `source_kinds` are the kinds of all groups on the source. `target_records` are those of the plan's groups that
    are on the target. `newest_sync_ms` is the time of MM2's newest offset sync, None where there is none.
    `moving` names, by group, the commits that changed between two readings while the group had no member: on the
    source, on the target. `unread` says of such groups, by side, why their commits were not read a second time.
    `source_records` are those of the plan's groups on the source: when they committed last, and how often.
    """

    source_kinds: Mapping[str, str] | Failure = NOT_ASKED
    target_settings: BrokerSettings | Failure = NOT_ASKED
    target_records: Mapping[str, GroupRecord] | Failure = NOT_ASKED
    newest_sync_ms: int | None | Failure = NOT_ASKED
    moving_on_source: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    moving_on_target: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unread_on_source: Mapping[str, str] = field(default_factory=dict)
    unread_on_target: Mapping[str, str] = field(default_factory=dict)
    source_records: Mapping[str, GroupRecord] | Failure = NOT_ASKED

    def source_record(self, group: str) -> GroupRecord | Failure:
        """Return what the records tell of one group on the source, or why they do not."""
        if isinstance(self.source_records, Failure):
            return self.source_records
        return self.source_records.get(group, NOT_TOLD)


def cadence_text(record: GroupRecord | Failure) -> str:
    """Return how often a group commits, which is what it reads twice after a hard stop; "" where nobody can tell.

    Its last commit before such a stop is up to one such step behind what it has processed.
    """
    if isinstance(record, Failure):
        return ""
    return pace_text(record.seconds_between_commits, record.records_between_commits)


def pace_text(seconds: float | None, records: int | None) -> str:
    """Return `cadence_text` of a group that commits every so many seconds; "" where that is not known."""
    if seconds is None:
        return ""
    step = many(records or 0, "record")
    often = f"about every {duration_text(seconds)}" if seconds >= 1 else "more than once a second"
    return f"commits {often}, each time {step} of a partition: a hard stop reads them twice"


class AnswerMemory:
    """What a cluster answered about its groups a short while ago: for a watch, which looks every other second.

    A `Failure` is never kept: one slow answer would hide a block from every later look. Nothing is kept for longer
    than `REMEMBERED_SECONDS`, but for `logs`: what was read of the offsets topic is read on.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.logs = LogMemory()
        # By question and what it is about: the answer, and when it was asked for.
        self._kept: dict[tuple[str, tuple[str, ...]], tuple[object, float]] = {}

    def forget(self) -> None:
        """Ask everything afresh from now on; an answer to what was asked before is not kept any more."""
        self._kept = {}

    def answer(self, what: str, about: Collection[str], ask: Callable[[], T]) -> T:
        """Return the answer to a question about these names, from memory or by `ask`."""
        question, memory, asked_at = (what, tuple(sorted(about))), self._kept, self._clock.monotonic()
        value, at = memory.get(question, (None, -math.inf))
        if asked_at - at < REMEMBERED_SECONDS:
            return cast(T, value)
        answer = ask()
        # A look that failed may have left this question behind, and a later one have asked it again, and been answered.
        if memory.get(question, (None, -math.inf))[1] <= asked_at:
            memory.pop(question, None)
            if _is_whole(answer):
                memory[question] = answer, asked_at
        return answer


def _is_whole(answer: object) -> bool:
    """Return whether nothing in an answer is a `Failure`."""
    parts = [answer, *(answer.values() if isinstance(answer, Mapping) else ())]
    return not any(isinstance(part, Failure) for part in parts)
