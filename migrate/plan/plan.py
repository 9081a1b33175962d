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
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from migrate.model import CheckResult, Decision, Level, Row, Scope, may_skip, rewinds
from migrate.row_table import GroupRows, PlanRows, row_document

FORMAT_VERSION = 6
# Plans of these formats can be read; what a later one added is empty there. Only the newest is applied.
READABLE_FORMATS = (3, 4, 5, 6)
# From this one on, file and fingerprint hold a table for each group; before, a document for each row.
TABLES_SINCE = 5
ADDED_IN = {"source_topic_ids": 4, "undoes_events": 4, "undoes_digest": 4}
# The same of rows.
ROW_FIELDS_ADDED_IN = {"live_source_offset": 6}
# Names the time whose commits a plan translates, where these are not those of now.
AS_OF_SETTING = "commits-as-of"
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
    """A group's state on one side when the plan was made; "Absent" where two listings did not show it."""

    side: str
    group: str
    state: str
    member_count: int
    kind: str


@dataclass(frozen=True, slots=True)
class Header:
    """All of a plan but its rows. Plain values only, so that it serialises canonically.

    `kind` is "plan" or "undo". Cluster ids are "" where that cluster was not read (source down). `flow` are the names
    used (policy, separator, MM2 topics), `settings` the options chosen (filters, policies, limits) and `waivers` the
    `--accept` values. `counts` hold "commits_read", "rows", "uncommitted_added" and one "filtered:<filter>" per filter
    that took something; `mm2_counts` what was read from MM2's topics, rejects by reason included. `timings` are seconds
    per step. `comparison` is what comparing records cost, empty where none were compared: "partitions", "left_out", and
    per side "<side>_bytes_estimated", "<side>_bytes_fetched", "<side>_records_estimated", "<side>_records_read". `sums`
    add up the rows (`migrate.plan.totals.sums_of`): by grade, re-reads, what MM2's newest checkpoints would cost.
    `undoes` is the fingerprint of the plan that an undo undoes, `undoes_events` and `undoes_digest` are the state of
    that plan's journal that it was made from (`migrate.apply.undo.refuse_stale`); "", 0 and "" in any other plan.
    `source_topic_ids` and `target_topic_ids` are those of the topics, as far as the clusters report them: a topic that
    is deleted and created anew under a plan has another id. A field that `ADDED_IN` names belongs to plans from that
    `format_version` on.
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
    undoes: str = ""
    failback: bool = False
    comparison: Mapping[str, int] = field(default_factory=dict)
    sums: Mapping[str, int] = field(default_factory=dict)
    source_topic_ids: Mapping[str, str] = field(default_factory=dict)
    undoes_events: int = 0
    undoes_digest: str = ""


@dataclass(frozen=True)
class Plan:
    """A header and its rows, with the fingerprint computed from them."""

    header: Header
    rows: PlanRows
    fingerprint: str = field(init=False)
    _accepted: frozenset[tuple[str, str]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
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

    def blocked_groups(self) -> frozenset[str]:
        """Return the groups that `apply` will not touch: a group is set whole or not at all."""
        return frozenset(group for group, rows in self.groups().items() if Decision.BLOCK in rows.column("decision"))

    def skipping(self) -> Iterator[Row]:
        """Yield the rows that may skip records, in their order."""
        for rows in self.groups().values():
            # Most groups' columns rule it out, without a look at each of a million rows.
            decisions = set(rows.column("decision"))
            if "log-latest" in rows.column("lower_kind") or decisions - {Decision.SET, Decision.BLOCK}:
                yield from filter(may_skip, rows)

    def rewinding(self) -> Iterator[Row]:
        """Yield the rows that set a group back behind where it is; none for an undo, which does so by its nature."""
        for rows in self.groups().values():
            if self.header.kind == "plan" and any(prior is not None for prior in rows.column("target_prior")):
                yield from filter(rewinds, rows)

    def blocks(self) -> tuple[CheckResult, ...]:
        """Return the check results that block something and were not accepted."""
        return tuple(c for c in self.header.checks if c.counts_as is Level.BLOCK and not c.accepted)

    def blocks_without_rows(self) -> tuple[CheckResult, ...]:
        """Return the blocks, but those of a whole cluster, that no blocked row shows.

        A name in the groups file that no group has, a share group: `apply` would leave them out without a word.
        """
        blocked = self.blocked_groups()
        in_blocked = [row for group in blocked for row in self.groups()[group]]
        rows = {row.subject for row in in_blocked}
        topics = {t for row in in_blocked for t in (row.source_topic, row.target_topic)}
        shown = {Scope.GROUP: blocked, Scope.TOPIC: topics, Scope.ROW: rows}
        return tuple(c for c in self.blocks() if c.scope is not Scope.CLUSTER and c.subject not in shown[c.scope])

    def is_clean(self) -> bool:
        """True if `plan` exits 0: no row is blocked, and no check blocks."""
        return not self.blocked_groups() and not self.blocks()

    def cluster_blocks(self) -> tuple[CheckResult, ...]:
        """Return the blocks of a cluster as a whole: each blocks everything."""
        return tuple(c for c in self.blocks() if c.scope is Scope.CLUSTER)


def header_document(header: Header) -> dict[str, Any]:
    """Return the header as plain JSON-able values, with the fields of its format: what the fingerprint is made of."""
    return {name: value for name, value in asdict(header).items() if ADDED_IN.get(name, 0) <= header.format_version}


def row_fields_after(format_version: int) -> frozenset[str]:
    """Return the fields of rows that plans of a format do not have yet."""
    return frozenset(name for name, since in ROW_FIELDS_ADDED_IN.items() if since > format_version)


def canonical(document: Mapping[str, Any]) -> bytes:
    """Return the one byte form of a document that is hashed: sorted keys, no spaces, UTF-8."""
    # surrogatepass: a group's name may come from bytes that are not UTF-8; it must still hash to something.
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


def fingerprint(header: Header, rows: PlanRows) -> str:
    """Return the SHA-256, in hex, over every header field and row, in the form of the header's format."""
    digest = hashlib.sha256(canonical(header_document(header)))
    without = row_fields_after(header.format_version)
    tables = (table.document(without) for table in rows.groups().values())
    of_rows = (row_document(row, without) for row in rows)
    for document in tables if header.format_version >= TABLES_SINCE else of_rows:
        digest.update(b"\n")
        digest.update(canonical(document))
    return digest.hexdigest()


def approves(approval: str, plan: Plan) -> bool:
    """True if `approval` names this plan: its fingerprint, or the first 32 digits of it or more.

    Whoever makes plans finds two that share 12 digits in minutes: one to be read, the other to be applied.
    """
    given = approval.strip().lower()
    return len(given) >= MIN_APPROVAL_DIGITS and plan.fingerprint.startswith(given)
