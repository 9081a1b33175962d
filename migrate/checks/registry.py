"""All checks, in the order in which they are listed: what each says of itself, and the waivers that name them.

How a check judges lives in the module of its subject, under `@judges`; `migrate.checks.checklist` runs them. Pure.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from migrate.errors import UsageError
from migrate.model import CheckResult, Level, Scope
from migrate.survey.policies import (
    AS_OF_GONE,
    AS_OF_NONE,
    BEYOND_LOG_END,
    NO_CHECKPOINT,
    NOT_REPLICATED,
    PARTITION_MISSING,
    Waiver,
)
from migrate.survey.policies import SOURCE_TOPIC_MISSING as NO_SOURCE_TOPIC


class HoldsFor(StrEnum):
    """Whose commits or positions a check looks at; `ITS_SCOPE` leaves it to the scope."""

    ITS_SCOPE = "its-scope"
    GROUPS = "groups"
    BOTH = "both"


# Rows and topics are looked at in the same way, of whomever they are.
_SCOPES_OF_POSITIONS = frozenset({Scope.ROW, Scope.TOPIC, Scope.HOLDER})


@dataclass(frozen=True, slots=True)
class Check:
    """A named check, and its results.

    `scope` is what its subjects are, and `holds_for` whose. `can_be_accepted` is True where a waiver turns its blocks
    into warnings, False where none ever does, None where it blocks nothing or another option decides.
    `needs_records` says that only comparing records around every commit answers it: `status` leaves it to `plan`.
    `of_mm2` says that it is about MirrorMaker 2 itself: behind another replicator nobody asks.
    """

    name: str
    scope: Scope
    can_be_accepted: bool | None = None
    needs_records: bool = False
    of_mm2: bool = False
    holds_for: HoldsFor = HoldsFor.ITS_SCOPE

    @property
    def holds_for_positions(self) -> bool:
        """True if it looks at positions outside Kafka too, or at these alone."""
        if self.holds_for is HoldsFor.ITS_SCOPE:
            return self.scope in _SCOPES_OF_POSITIONS
        return self.holds_for is HoldsFor.BOTH

    def __str__(self) -> str:
        return self.name

    @property
    def on_cluster(self) -> "Check":
        """The same check where its subject is a cluster as a whole."""
        return replace(self, scope=Scope.CLUSTER)

    def result(self, level: Level, subject: str, expected: str, seen: str, todo: str = "") -> CheckResult:
        """Return a result whose level is also what decides."""
        return CheckResult(self.name, level, self.scope, subject, expected, seen, todo, False, level)

    def passes(self, subject: str, expected: str, seen: str) -> CheckResult:
        """Return a pass; one counts all subjects that are fine."""
        return self.result(Level.PASS, subject, expected, seen)

    def warns(self, subject: str, expected: str, seen: str, todo: str) -> CheckResult:
        """Return a warning."""
        return self.result(Level.WARN, subject, expected, seen, todo)

    def blocks(self, subject: str, expected: str, seen: str, todo: str) -> CheckResult:
        """Return a block."""
        return self.result(Level.BLOCK, subject, expected, seen, todo)

    def unseen(self, counts_as: Level, subject: str, expected: str, seen: str, todo: str) -> CheckResult:
        """Return a `not-visible` result that counts as `counts_as`: block or warn.

        `PASS` is for a check that can only ever refute: it found nothing, and that is no proof. Such a result is listed
        beside those that passed, never among them.
        """
        return CheckResult(self.name, Level.NOT_VISIBLE, self.scope, subject, expected, seen, todo, False, counts_as)


CLUSTERS_DIFFER = Check("clusters-differ", Scope.CLUSTER, can_be_accepted=False)
LISTING_COMPLETE = Check("listing-complete", Scope.CLUSTER, can_be_accepted=False)
CHECKPOINTED_GROUPS_LISTED = Check("checkpointed-groups-listed", Scope.CLUSTER)
LISTING_AGREES = Check("listing-agrees", Scope.GROUP, can_be_accepted=True)
COMMIT_UNDECODABLE = Check("commit-undecodable", Scope.GROUP, can_be_accepted=False)
TOPICS_VISIBLE = Check("topics-visible", Scope.CLUSTER, can_be_accepted=True, needs_records=True)
MM2_CHECKPOINTS_TOPIC = Check("mm2-checkpoints-topic", Scope.CLUSTER, can_be_accepted=True, of_mm2=True)
MM2_OFFSET_SYNCS_TOPIC = Check("mm2-offset-syncs-topic", Scope.CLUSTER, can_be_accepted=True, of_mm2=True)
NAMED_GROUPS_EXIST = Check("named-groups-exist", Scope.GROUP, can_be_accepted=True)
GROUP_NAME_UNUSABLE = Check("group-name-unusable", Scope.GROUP, can_be_accepted=False)
GROUP_NAME_SHARED = Check("group-name-shared", Scope.GROUP, can_be_accepted=True)
GROUP_UNDER_OLD_NAME = Check("group-under-old-name", Scope.GROUP)
GROUP_NAME_TAKEN = Check("group-name-taken", Scope.GROUP)
CHECKPOINTED_TOPICS_LISTED = Check("checkpointed-topics-listed", Scope.GROUP, can_be_accepted=True)
SOURCE_DOWN = Check("source-down", Scope.GROUP, can_be_accepted=True)
GROUPS_UNKNOWN = Check("groups-unknown", Scope.GROUP)
# Its rows have no place, and --untranslatable decides on these: to accept it would release nothing.
TARGET_TOPIC_EXISTS = Check("target-topic-exists", Scope.TOPIC)
TARGET_PARTITIONS = Check("target-partitions", Scope.TOPIC, can_be_accepted=True)
PRODUCERS_STOPPED = Check("producers-stopped", Scope.TOPIC, can_be_accepted=True)
NOT_DRAINED = Check("not-drained", Scope.TOPIC, can_be_accepted=True)
TARGET_RECREATED = Check("target-recreated", Scope.TOPIC, can_be_accepted=True, of_mm2=True)
TARGET_GROUP_EMPTY = Check("target-group-empty", Scope.GROUP, can_be_accepted=False)
SOURCE_GROUP_STOPPED = Check("source-group-stopped", Scope.GROUP, can_be_accepted=True)
TWO_LOOKS = Check("two-looks", Scope.CLUSTER, can_be_accepted=True)
PENDING_TRANSACTIONS = Check("pending-transactions", Scope.GROUP, can_be_accepted=True)
OFFSETS_EXPIRY = Check("offsets-expiry", Scope.GROUP, can_be_accepted=True)
MM2_TASKS = Check("mm2-tasks", Scope.CLUSTER, can_be_accepted=True, of_mm2=True)
GROUP_SYNC = Check("group-sync", Scope.GROUP, can_be_accepted=True, of_mm2=True)
SHARE_GROUP = Check("share-group", Scope.GROUP, can_be_accepted=True)
STREAMS_GROUP = Check("streams-group", Scope.GROUP, can_be_accepted=True)
INSIDE_TARGET_LOG = Check("inside-target-log", Scope.ROW, can_be_accepted=False, needs_records=True)
REWIND = Check("rewind", Scope.ROW, needs_records=True)
COMMIT_BEYOND_LOG_END = Check(BEYOND_LOG_END, Scope.ROW)
LOG_NOT_VISIBLE = Check("log-not-visible", Scope.ROW)
COMMIT_OF_ANOTHER_LOG = Check("commit-of-another-log", Scope.ROW, can_be_accepted=True)
METADATA_TOO_LONG = Check("metadata-too-long", Scope.ROW, can_be_accepted=True)
TOPIC_NOT_REPLICATED = Check(NOT_REPLICATED, Scope.ROW)
TARGET_PARTITION_MISSING = Check(PARTITION_MISSING, Scope.ROW)
SOURCE_TOPIC_MISSING = Check(NO_SOURCE_TOPIC, Scope.ROW)
SOURCE_GONE_WITHOUT_CHECKPOINT = Check(NO_CHECKPOINT, Scope.ROW)
COMMIT_AS_OF_GONE = Check(AS_OF_GONE, Scope.ROW)
NO_COMMIT_AS_OF = Check(AS_OF_NONE, Scope.ROW)
MISSING_ON_TARGET = Check("missing-on-target", Scope.ROW, can_be_accepted=True, needs_records=True)
UNREAD_ON_TARGET_ONLY = Check("unread-on-target-only", Scope.ROW, can_be_accepted=True, needs_records=True)
SYNC_UNGUARDED = Check("sync-unguarded", Scope.ROW, can_be_accepted=True, needs_records=True)
TIMESTAMPS_NOT_KEPT = Check("timestamps-not-kept", Scope.ROW, can_be_accepted=True, needs_records=True)
OPEN_TRANSACTION = Check("open-transaction", Scope.ROW, can_be_accepted=True, needs_records=True)
REREAD_LIMIT = Check("re-read-limit", Scope.GROUP, can_be_accepted=True, needs_records=True)
PARTITIONS_NEVER_COMMITTED = Check("partitions-never-committed", Scope.GROUP)
COMMITS_MOVING = Check("commits-moving", Scope.GROUP)
GROUP_PROTOCOL = Check("group-protocol", Scope.GROUP)
KAFKA_STREAMS = Check("kafka-streams", Scope.GROUP)
CONNECT_SINK = Check("connect-sink", Scope.GROUP)
CONNECT_INTERNAL_TOPICS = Check("connect-internal-topics", Scope.TOPIC, holds_for=HoldsFor.GROUPS)
VENDOR_GROUPS = Check("vendor-groups", Scope.CLUSTER)
MM2_GROUP_FILTER = Check("mm2-group-filter", Scope.GROUP, of_mm2=True)
OLD_OFFSET_SYNCS = Check("old-offset-syncs", Scope.CLUSTER, of_mm2=True)
OLD_CHECKPOINTS = Check("old-checkpoints", Scope.CLUSTER, of_mm2=True)
TARGET_TOPIC_DEDICATED = Check("target-topic-dedicated", Scope.TOPIC)
TARGET_RETENTION = Check("target-retention", Scope.ROW)
ESTIMATED_ROWS = Check("estimated-rows", Scope.CLUSTER, needs_records=True, holds_for=HoldsFor.BOTH)
SPARK_BATCH_OPEN = Check("spark-batch-open", Scope.HOLDER, can_be_accepted=True)
STATE_WOULD_COUNT_TWICE = Check("state-would-count-twice", Scope.HOLDER, can_be_accepted=True, needs_records=True)
SINK_REMEMBERS_BATCHES = Check("sink-remembers-batches", Scope.HOLDER, can_be_accepted=True)
POSITION_MOVES = Check("position-moves", Scope.HOLDER, can_be_accepted=True)
POSITIONS_DIFFER = Check("positions-differ", Scope.HOLDER, can_be_accepted=True)
HOLDER_PARTITIONS = Check("holder-partitions", Scope.HOLDER)
JAVA_NEEDED = Check("java-needed", Scope.CLUSTER)

CHECKS: tuple[Check, ...] = tuple(check for check in list(globals().values()) if isinstance(check, Check))
ACCEPTABLE_CHECKS = tuple(sorted(check.name for check in CHECKS if check.can_be_accepted))
NEVER_ACCEPTABLE = frozenset(check.name for check in CHECKS if check.can_be_accepted is False)


def parse_waiver(text: str) -> Waiver:
    """Read `CHECK[:SUBJECT]`; raises `UsageError` for a check that is unknown or cannot be waived."""
    check, colon, subject = text.partition(":")
    if check in NEVER_ACCEPTABLE:
        raise UsageError(
            f"--accept {text}: the check {check!r} can never be waived.",
            "Fix what it found, or leave the groups out with --exclude-group.",
        )
    if check not in ACCEPTABLE_CHECKS:
        raise UsageError(
            f"--accept {text}: there is no check {check!r} that can be waived.",
            f"Checks that can: {', '.join(ACCEPTABLE_CHECKS)}.",
        )
    return Waiver(check, subject if colon else None)
