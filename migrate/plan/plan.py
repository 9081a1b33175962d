"""The plan: a header, rows and check results, and the fingerprint that people approve.

Invariants:
- Rows are sorted by (group, source topic, partition), and no two have the same key.
- rows + filtered = commits read + rows added by `--uncommitted` (promise 3).
- The fingerprint is SHA-256 over every header field and every row; nothing in a plan is outside it. It covers values,
  not bytes of the file: it depends on no version of an Avro library.
- A plan is never edited: a changed mind is a new plan.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from migrate.errors import Refused, UsageError
from migrate.mm2.flow import MM2, REPLICATORS, Replicator, RuntimeWord
from migrate.model import (
    LOG_LATEST,
    CheckResult,
    Decision,
    Level,
    Row,
    Scope,
    may_skip,
    rewinds,
)
from migrate.row_table import GroupRows, PlanRows
from migrate.survey.commits_source import AS_OF_SETTING
from migrate.text import name

# Of the plan file, its fingerprint and its journal.
FORMAT_VERSION = 1
# The kinds of plans that have rows: what `plan` makes, and what a rollback makes of it. Any other kind is the name of
# the commands that its rules are for.
CUTOVER, UNDO = "plan", "undo"
# A setting of an undo: what becomes of offsets that consumers have moved since.
MOVED_SETTING, REFUSE_MOVED, RESTORE_MOVED = "moved", "refuse", "restore"
# A setting of an undo: the command that set what it takes back, where that was not `apply`.
SET_BY_SETTING = "set-by"
REQUIRED_SETTING = "require-signatures"
MIN_APPROVAL_DIGITS = 32
SHORT_DIGITS = 12


@dataclass(frozen=True, slots=True)
class PinnedRange:
    """A log range that the plan was made from; `apply` reads it again (drift)."""

    side: str
    topic: str
    partition: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class PlannedGroupState:
    """A group's state on one side when the plan was made; "Absent" where two listings did not show it.

    `group` is its name on the source, on either side.
    """

    side: str
    group: str
    state: str
    member_count: int
    kind: str


@dataclass(frozen=True, slots=True)
class PlannedActivity:
    """When a group on the source committed last, and how often, as its own records told when the plan was made.

    `last_commit_ms` is ms since 1970. What lies between two commits on a partition are medians, in ms and in records,
    None where fewer than two commits of one partition were left to read.
    """

    group: str
    last_commit_ms: int
    ms_between_commits: int | None
    records_between_commits: int | None


@dataclass(frozen=True, slots=True)
class Header:
    """All of a plan but its rows. Plain values only, so that it serialises canonically.

    `kind` is `CUTOVER` or `UNDO`, or the name of the commands that are to go by the settings: such a plan has no rows.
    Cluster ids are "" where that cluster was not read (source down). `flow` are the names used (policy, separator, MM2
    topics), `settings` the options chosen (filters, their expressions quoted as for a shell, policies, limits) and
    `waivers` the `--accept` values. `counts` hold "commits_read", "rows", "uncommitted_added" and one
    "filtered:<filter>" per filter that took something; `mm2_counts` what was read from MM2's topics, rejects by reason
    included. `timings` are seconds per step.
    `comparison` is what comparing records cost, empty where none were compared: "partitions", "left_out", and
    per side "<side>_bytes_estimated", "<side>_bytes_fetched", "<side>_records_estimated", "<side>_records_read".
    `undoes` is the fingerprint of the plan that an undo undoes, `undoes_events` and `undoes_digest` are the state of
    that plan's journal that it was made from (`migrate.apply.undo.refuse_stale`); "", 0 and "" in any other plan.
    `source_topic_ids` and `target_topic_ids` are those of the topics, as far as the clusters report them: a topic that
    is deleted and created anew under a plan has another id. `activity` has those groups of the plan whose own records
    could be read.
    """

    format_version: int
    tool_version: str
    kind: str
    created_at_ms: int
    source_alias: str
    target_alias: str
    source_cluster_id: str
    target_cluster_id: str
    source_down: bool
    flow: Mapping[str, str]
    settings: Mapping[str, str]
    waivers: tuple[str, ...]
    target_topic_ids: Mapping[str, str]
    pinned: tuple[PinnedRange, ...]
    group_states: tuple[PlannedGroupState, ...]
    checks: tuple[CheckResult, ...]
    counts: Mapping[str, int]
    mm2_counts: Mapping[str, int]
    timings: Mapping[str, float]
    undoes: str
    failback: bool
    comparison: Mapping[str, int]
    source_topic_ids: Mapping[str, str]
    undoes_events: int
    undoes_digest: str
    activity: tuple[PlannedActivity, ...]

    @property
    def is_of_rows(self) -> bool:
        """True for a plan of rows; any other holds rules in its settings."""
        return self.kind in (CUTOVER, UNDO)

    @property
    def by_mm2(self) -> bool:
        """True unless another replicator copies: then nothing of MM2's is known, and nothing to be done to it."""
        return self.replicator == MM2

    @property
    def replicator(self) -> Replicator:
        """Who copies."""
        return REPLICATORS[self.flow.get(RuntimeWord.REPLICATOR, MM2.word)]

    @property
    def asks_source(self) -> bool:
        """True if what the source has must be as the plan found it: False of an undo, and with the source down."""
        return self.kind != UNDO and not self.source_down

    @property
    def as_of(self) -> str:
        """The time whose commits it translates; "" where these are those of when it was made."""
        return self.settings.get(AS_OF_SETTING, "")

    @property
    def restores_moved(self) -> bool:
        """True for an undo that also takes back what others have committed since, as its reviewer chose."""
        return self.kind == UNDO and self.settings.get(MOVED_SETTING) == RESTORE_MOVED

    @property
    def set_by(self) -> str:
        """The command whose offsets an undo takes back."""
        return self.settings.get(SET_BY_SETTING, "apply")

    @property
    def has_checkpoints(self) -> bool:
        """True where rows can be compared with MM2's checkpoints: it makes none for the way back, nor for an undo."""
        return self.by_mm2 and not self.failback and self.kind != UNDO


@dataclass(frozen=True)
class Plan:
    """A header and rows, with the fingerprint computed from them.

    Raises ValueError for two groups of one name on the target.
    """

    header: Header
    rows: PlanRows
    fingerprint: str = field(init=False)
    _accepted: frozenset[tuple[str, str]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        refuse_shared_names(self.rows)
        object.__setattr__(self, "fingerprint", fingerprint(self.header, self.rows))
        accepted = frozenset((c.check, c.subject) for c in self.header.checks if c.accepted)
        object.__setattr__(self, "_accepted", accepted)

    def accepted(self, check: str, subject: str) -> bool:
        """True if the plan found this check's trouble on this subject, and it was waived.

        A waiver for all subjects says nothing of those that were fine when the plan was made.
        """
        return (check, subject) in self._accepted

    @property
    def short_fingerprint(self) -> str:
        """The first 12 digits: to read, never to approve with, because two plans can be made to share them."""
        return self.fingerprint[:SHORT_DIGITS]

    def decisions(self) -> Counter[Decision]:
        """Count rows by decision."""
        return self.rows.tally("decision")

    def groups(self) -> Mapping[str, GroupRows]:
        """Return rows by group, in the plan's order."""
        return self.rows.groups()

    def group_called(self, name: str) -> str:
        """Return the source's name of the group with that name on either side, the source's first; else `name`."""
        called = {target_name: group for group, target_name in self.rows.renamed().items()}
        return name if name in self.groups() else called.get(name, name)

    def blocked_groups(self) -> frozenset[str]:
        """Return the groups that `apply` will not touch: a group is set whole or not at all."""
        return frozenset(group for group, rows in self.groups().items() if Decision.BLOCK in rows.column("decision"))

    def skipping(self) -> Iterator[Row]:
        """Yield the rows that may skip records, in their order."""
        for rows in self.groups().values():
            # Most groups' columns rule it out, without a look at each of a million rows.
            decisions = set(rows.column("decision"))
            if LOG_LATEST in rows.column("lower_kind") or decisions - {Decision.SET, Decision.BLOCK}:
                yield from filter(may_skip, rows)

    def rewinding(self) -> Iterator[Row]:
        """Yield the rows that set a group back behind where it is; none for an undo, which does so by its nature."""
        for rows in self.groups().values():
            if self.header.kind == CUTOVER and any(prior is not None for prior in rows.column("target_prior")):
                yield from filter(rewinds, rows)

    def blocks(self) -> tuple[CheckResult, ...]:
        """Return the check results that block something and were not accepted."""
        return tuple(c for c in self.header.checks if c.counts_as is Level.BLOCK and not c.accepted)

    def blocks_without_rows(self) -> tuple[CheckResult, ...]:
        """Return the blocks, but those of a whole cluster, that no blocked row shows.

        A name in the groups file that no group has, a share group: `apply` would leave them out without a word.
        """
        blocked, groups = self.blocked_groups(), self.groups()
        in_blocked = [row for group in blocked for row in groups[group]]
        rows = {row.subject for row in in_blocked}
        topics = {t for row in in_blocked for t in (row.source_topic, row.target_topic)}
        shown = {Scope.GROUP: blocked, Scope.TOPIC: topics, Scope.ROW: rows}
        return tuple(c for c in self.blocks() if c.scope is not Scope.CLUSTER and c.subject not in shown[c.scope])

    def is_clean(self) -> bool:
        """True if `plan` exits 0: it plans something, no row is blocked, and no check blocks."""
        return not (self.is_empty or self.blocked_groups() or self.blocks())

    @property
    def is_empty(self) -> bool:
        """True if nothing was inside the filters of a cutover: most likely they are wrong, and would move nobody."""
        return self.header.kind == CUTOVER and not self.rows

    def is_clean_to_apply(self) -> bool:
        """True if nothing keeps `apply` from any group."""
        return not (self.blocked_groups() or self.cluster_blocks() or self.blocks_without_rows())

    @property
    def is_rehearsal(self) -> bool:
        """True if groups were alive when it was made: what they commit from then on is not in it."""
        return any(c.check in ("source-group-stopped", "target-group-empty") for c in self.blocks())

    def cluster_blocks(self) -> tuple[CheckResult, ...]:
        """Return the blocks of a cluster as a whole: each blocks everything."""
        return tuple(c for c in self.blocks() if c.scope is Scope.CLUSTER)


def refuse_empty(plan: Plan, command: str) -> None:
    """Raise `Refused` for a plan of nothing: `command` would say that all is well over groups that nobody moved."""
    if plan.is_empty:
        raise Refused(
            f"Plan {plan.short_fingerprint} is empty: no commit was inside its filters. There is nothing to {command}.",
            "See them with `show`, and make a new plan.",
        )


def refuse_rules(plan: Plan, command: str) -> None:
    """Raise `UsageError` for a plan of rules: it has no rows, and `command` would say that there is nothing to do."""
    if not plan.header.is_of_rows:
        raise UsageError(
            f"Plan {plan.short_fingerprint} holds rules for `{plan.header.kind}`, and {command} is for rows.",
            f"Use the commands of `mm2-migrate {plan.header.kind}`, `show` or `sign`.",
        )


def refuse_shared_names(rows: PlanRows) -> None:
    """Raise ValueError if two groups have one name on the target, or one has two."""
    taken: dict[str, str] = {}
    for group, table in rows.groups().items():
        if len(set(table.column("target_group"))) > 1:
            raise ValueError(f"group {group!r} has two names on the target")
        # One would overwrite the other's offsets, and a rollback of one would take both away.
        if (other := taken.setdefault(table.group_on_target, group)) != group:
            raise ValueError(f"groups {other!r} and {group!r} have one name on the target")


def canonical(document: Mapping[str, Any]) -> bytes:
    """Return the one byte form of a document that is hashed: sorted keys, no spaces, UTF-8."""
    # surrogatepass: a group's name may come from bytes that are not UTF-8; it must still hash to something.
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


def fingerprint(header: Header, rows: PlanRows) -> str:
    """Return the SHA-256, in hex, over every header field, and the table of each group."""
    digest = hashlib.sha256(canonical(asdict(header)))
    for table in rows.groups().values():
        digest.update(b"\n")
        digest.update(canonical(table.document()))
    return digest.hexdigest()


def approves(approval: str, plan: Plan) -> bool:
    """True if `approval` names this plan: its fingerprint, or the first 32 digits of it or more.

    Whoever makes plans finds two that share 12 digits in minutes: one to be read, the other to be applied.
    """
    given = approval.strip().lower()
    return len(given) >= MIN_APPROVAL_DIGITS and plan.fingerprint.startswith(given)


def signatures_required(settings: Mapping[str, str]) -> int:
    """Return how many different names have to sign what was made with these settings."""
    return int(settings.get(REQUIRED_SETTING, "0"))


def signed_so_far(settings: Mapping[str, str], names: Sequence[str]) -> str:
    """Return "1 of 2 (Ada)": how many different names have signed, and how many are asked for."""
    required = signatures_required(settings)
    listed = f" ({', '.join(map(name, names))})" if names else ""
    return f"{len(names)}{f' of {required}' if required else ', none is required'}{listed}"
