"""What the reviewer chose: waivers, and what becomes of rows that the laws do not vouch for.

Values parsed from the command line's words; unknown names are refused, because a misspelt waiver that
silently waives nothing is found at 3 a.m.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from migrate.errors import UsageError

TOPIC_MISSING = "target-topic-missing"
PARTITION_MISSING = "target-partition-missing"
NOT_REPLICATED = "topic-not-replicated"
BEYOND_LOG_END = "commit-beyond-log-end"
NO_CHECKPOINT = "source-gone-without-checkpoint"
SOURCE_TOPIC_MISSING = "source-topic-missing"
AS_OF_GONE = "commit-as-of-gone"
AS_OF_NONE = "no-commit-as-of"
UNTRANSLATABLE_REASONS = (
    TOPIC_MISSING,
    BEYOND_LOG_END,
    NOT_REPLICATED,
    PARTITION_MISSING,
    SOURCE_TOPIC_MISSING,
    NO_CHECKPOINT,
    AS_OF_GONE,
    AS_OF_NONE,
)
NOWHERE_TO_SET = (TOPIC_MISSING, PARTITION_MISSING)


class Untranslatable(StrEnum):
    """What to do with a commit that no law translates."""

    BLOCK = "block"
    SKIP = "skip"
    EARLIEST = "earliest"
    LATEST = "latest"


class Rewind(StrEnum):
    """What to do where the target group is beyond the planned offset."""

    BLOCK = "block"
    KEEP = "keep"
    SET = "set"


class CommitsFrom(StrEnum):
    """Where a plan's commits are read."""

    ADMIN = "admin"
    CONSUMER_OFFSETS = "consumer-offsets"


class Uncommitted(StrEnum):
    """What to do with partitions of a group's topics that it never committed."""

    IGNORE = "ignore"
    EARLIEST = "earliest"


@dataclass(frozen=True, slots=True)
class Waiver:
    """One `--accept CHECK[:SUBJECT]`; without a subject it covers every subject of the check."""

    check: str
    subject: str | None = None

    def covers(self, check: str, subject: str) -> bool:
        """True if this waiver turns that block into a warning."""
        return self.check == check and self.subject in (None, subject)

    def __str__(self) -> str:
        return self.check if self.subject is None else f"{self.check}:{self.subject}"


@dataclass(frozen=True)
class Policies:
    """All choices that shape a plan's decisions. `max_rereads` is per group, in records."""

    waivers: tuple[Waiver, ...] = ()
    untranslatable: Untranslatable = Untranslatable.BLOCK
    untranslatable_by_reason: Mapping[str, Untranslatable] = field(default_factory=dict)
    rewind: Rewind = Rewind.BLOCK
    uncommitted: Uncommitted = Uncommitted.IGNORE
    max_rereads: int = 1_000_000

    def for_reason(self, reason: str) -> Untranslatable:
        """Return what to do with a commit that is untranslatable for `reason`.

        A policy for all reasons cannot place an offset on a partition that does not exist: a block.
        """
        if reason in self.untranslatable_by_reason:
            return self.untranslatable_by_reason[reason]
        if reason in NOWHERE_TO_SET and self.untranslatable is Untranslatable.EARLIEST:
            return Untranslatable.BLOCK
        return self.untranslatable

    def accepts(self, check: str, subject: str) -> bool:
        """True if a waiver covers this check's block on this subject."""
        return any(w.covers(check, subject) for w in self.waivers)


def parse_untranslatable(texts: Iterable[str]) -> tuple[Untranslatable, dict[str, Untranslatable]]:
    """Read `[REASON=]block|skip|earliest|latest` values into the default and those by reason.

    Raises `UsageError` for unknown words, `latest` without a reason (it skips records: it must be chosen by
    name), and a place asked for on a partition that does not exist.
    """
    default, by_reason = Untranslatable.BLOCK, dict[str, Untranslatable]()
    for text in texts:
        reason, equals, word = text.rpartition("=")
        if word not in list(Untranslatable):
            raise UsageError(
                f"--untranslatable {text}: {word!r} is not a choice.", f"Choose {', '.join(Untranslatable)}."
            )
        choice = Untranslatable(word)
        if not equals:
            if choice is Untranslatable.LATEST:
                raise UsageError(
                    "--untranslatable latest needs a reason: it skips records, so name what it is for.",
                    f"For example --untranslatable {BEYOND_LOG_END}=latest. "
                    f"Reasons: {', '.join(UNTRANSLATABLE_REASONS)}.",
                )
            default = choice
            continue
        if reason not in UNTRANSLATABLE_REASONS:
            raise UsageError(
                f"--untranslatable {text}: {reason!r} is not a reason.",
                f"Reasons: {', '.join(UNTRANSLATABLE_REASONS)}.",
            )
        if reason in NOWHERE_TO_SET and choice in (Untranslatable.EARLIEST, Untranslatable.LATEST):
            raise UsageError(
                f"--untranslatable {text}: there is no partition on the target to set an offset on.",
                "Choose block or skip for this reason.",
            )
        by_reason[reason] = choice
    return default, by_reason
