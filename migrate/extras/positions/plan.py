"""The positions of a cutover: where each holder is to go on on the target, what was checked, and the file of all that.

Invariants, as of a plan of groups:
- Rows are sorted by (holder, source topic, partition); the holder's name is in the field `group`.
- The fingerprint is SHA-256 over every header field and every row; nothing in a file is outside it.
- A file is never edited: a changed mind is a new one.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import chain
from pathlib import Path
from typing import Any

from migrate import __version__
from migrate.checks.checklist import blocked_groups, blocked_rows
from migrate.clock import Clock
from migrate.errors import MigrateError, Refused, UnreadablePlan
from migrate.extras.positions.checks import judged
from migrate.extras.positions.held import (
    HeldPositions,
    HolderKind,
    Meaning,
    Origin,
    PositionReader,
    PositionsAsked,
    look_again,
    read_positions,
)
from migrate.model import GROUP_BLOCKED, CheckResult, Decision, Grade, Level, Row
from migrate.plan.build import flow_names
from migrate.plan.companions import is_no_ordinary_file
from migrate.plan.file import check_result, not_opened
from migrate.plan.plan import SHORT_DIGITS, canonical
from migrate.plan.rows import translate, with_blocks
from migrate.ports import Progress
from migrate.progress import in_batches
from migrate.row_table import GroupRows, Known, PlanRows
from migrate.survey.names import with_names
from migrate.survey.survey import Clusters, PlanRequest, Survey
from migrate.survey.take import take_survey
from migrate.text import many
from migrate.whole_file import refuse_unwritable, replacing, reporting_unwritable

FORMAT_VERSION = 1
FORMAT_KEY = "mm2-migrate positions"
HOLDER_BLOCKED = "holder-blocked"


@dataclass(frozen=True, slots=True)
class Header:
    """All but the rows, in plain values.

    `flow`, `settings`, `waivers` and topic ids are as in the header of a plan. `copies` says how many partitions each
    topic of the target has that a holder has positions on.
    """

    tool_version: str
    created_at_ms: int
    source_alias: str
    target_alias: str
    source_cluster_id: str
    target_cluster_id: str
    flow: Mapping[str, str]
    settings: Mapping[str, str]
    waivers: tuple[str, ...]
    source_topic_ids: Mapping[str, str]
    target_topic_ids: Mapping[str, str]
    copies: Mapping[str, int]
    origins: tuple[Origin, ...]
    checks: tuple[CheckResult, ...]


@dataclass(frozen=True)
class PositionPlan:
    """A header and the rows of holders, with the fingerprint computed from them.

    `last_meant` are the places (holder, source topic, partition) whose holder keeps the last record done.
    """

    header: Header
    rows: PlanRows
    last_meant: frozenset[tuple[str, str, int]] = frozenset()
    fingerprint: str = field(init=False)

    def __post_init__(self) -> None:
        digest = hashlib.sha256(canonical({FORMAT_KEY: FORMAT_VERSION, **asdict(self.header)}))
        for part in ({"last": sorted(self.last_meant)}, *(table.document() for table in self.holders().values())):
            digest.update(b"\n" + canonical(part))
        object.__setattr__(self, "fingerprint", digest.hexdigest())

    @property
    def short_fingerprint(self) -> str:
        """The first digits, to read."""
        return self.fingerprint[:SHORT_DIGITS]

    def holders(self) -> Mapping[str, GroupRows]:
        """Return the rows by holder, in the file's order."""
        return self.rows.groups()

    def blocked(self) -> list[str]:
        """Return the holders whose positions are not to be set."""
        return [holder for holder, rows in self.holders().items() if Decision.BLOCK in rows.column("decision")]

    def meaning(self, row: Row) -> Meaning:
        """Return what the row's holder means by the number that it keeps."""
        return Meaning.LAST if row.key in self.last_meant else Meaning.NEXT

    def checkpoint(self, holder: str) -> Origin | None:
        """Return the Spark checkpoint that a holder was read from; None for another holder."""
        return next((origin for origin in self.header.origins if origin.holder == holder), None)

    def without_place(self, holder: str) -> list[tuple[str, int]]:
        """Return the partitions of a holder's topics on the target that it has no offset for, sorted."""
        places = set(self.holders()[holder].values("target_topic", "partition", "target_offset"))
        placed = {(topic, partition) for topic, partition, offset in places if offset is not None}
        every = (
            (topic, p) for topic in sorted({t for t, _, _ in places}) for p in range(self.header.copies.get(topic, 0))
        )
        return [place for place in every if place not in placed]


def surveyed(
    request: PlanRequest,
    asked: PositionsAsked,
    reader: PositionReader,
    clusters: Clusters,
    clock: Clock,
    progress: Progress,
) -> tuple[Survey, HeldPositions]:
    """Read positions, then both clusters, then the positions again, at least a settle time later."""
    # First: where a log is pinned, every position that is to be placed in it lies below its end.
    held = read_positions(reader, asked, progress)
    request = with_names(replace(request, places=held.places), clusters)
    survey = take_survey(request, clusters, clock, progress)
    held = look_again(held, reader, asked, progress)
    namesakes, source = sorted(held.commits.groups().keys() & survey.source.listed), clusters.source
    if not namesakes or source is None:
        return survey, held
    progress.step(f"reading commits of {many(len(namesakes), 'group')} on {source.alias}")
    # What is committed so far, where a transaction is open.
    groups = in_batches(namesakes, lambda names: source.commits(names, require_stable=False), progress)
    return survey, replace(held, groups=groups)


def plan_of(survey: Survey, held: HeldPositions) -> PositionPlan:
    """Translate every position of a survey that was asked for them, run the checks, and lay their blocks over the rows.

    Raises `UsageError` where two positions of a holder would be one on the target.
    """
    flow, request = survey.flow, survey.request
    rows = PlanRows(translate(survey, held.commits))
    results = judged(held, survey, rows)
    topics = sorted({partition.topic for partition in held.commits.partitions()})
    copies, on_target = map(flow.policy.target_topic, topics), survey.target.topics
    header = Header(
        tool_version=__version__,
        created_at_ms=survey.taken_at_ms,
        source_alias=flow.source.alias,
        target_alias=flow.target.alias,
        source_cluster_id=survey.source.facts.cluster_id,
        target_cluster_id=survey.target.facts.cluster_id,
        flow=flow_names(flow),
        settings=request.settings,
        waivers=tuple(map(str, request.policies.waivers)),
        source_topic_ids=survey.source.topic_ids,
        target_topic_ids=survey.target.topic_ids,
        copies={copy: on_target[copy] for copy in copies if copy in on_target},
        origins=tuple(_origin(read, read.holder in held.stateful) for read in held.reads),
        checks=results,
    )
    # After the checks: a state is not of the batch that was not finished.
    told = with_open_batches(rows, chain.from_iterable(translate(survey, held.open_ends)), held)
    laid = with_blocks(told, blocked_groups(results, rows), blocked_rows(results))
    return PositionPlan(header, PlanRows.of(map(_of_holder, laid)), held.last_meant)


def _origin(read: Origin, is_stateful: bool) -> Origin:
    own = {each.name: getattr(read, each.name) for each in fields(Origin)}
    return Origin(**own | {"is_stateful": is_stateful})


def _of_holder(row: Row) -> Row:
    """Return a row that is blocked because of another one in words that fit a holder."""
    if row.reason != GROUP_BLOCKED:
        return row
    sentence = "Another position of this holder is blocked, and its positions are taken over whole or not at all."
    return row._replace(reason=HOLDER_BLOCKED, sentence=sentence)


def with_open_batches(rows: PlanRows, ends: Iterable[Row], held: HeldPositions) -> PlanRows:
    """Return positions that tell of the batch that was begun at them and not finished; `ends` are where it ends.

    Nobody knows what it has written. All of it may be, so that all of it counts as read twice.
    """
    batches = {read.holder: read.open_batch for read in held.reads if read.open_batch is not None}
    if not batches:
        return rows
    end_of = {end.key: end for end in ends}
    return PlanRows.of(
        _with_open_batch(row, batches[row.group], end_of.get(row.key)) if row.group in batches else row for row in rows
    )


def _with_open_batch(row: Row, batch: int, end: Row | None) -> Row:
    told = f"{row.sentence} Batch {batch} was begun and not finished"
    if row.target_offset is None:
        return row._replace(sentence=f"{told}.")
    if end is None or end.target_offset is None:
        why = "it does not name this partition" if end is None else f"its end has no place there ({end.reason})"
        return row._replace(
            sentence=f"{told}: it begins here, and {why}. What it has written is written twice.",
            rereads_at_most=None if end is not None else row.rereads_at_most,
        )
    # What lies before the end's offset on the target, and what is read again from there on.
    between = max(0, end.target_offset - row.target_offset)
    is_bounded = row.rereads_at_most is not None and end.rereads_at_most is not None
    beyond = end.rereads_estimate if end.rereads_at_most is None else end.rereads_at_most
    twice = None if beyond is None else between + beyond
    return row._replace(
        sentence=(
            f"{told}: it begins here and ends before {end.target_offset}. What it has written of that is written twice."
        ),
        rereads_at_most=twice if is_bounded else None,
        rereads_estimate=None if is_bounded else twice,
        grade=Grade.BOUNDED if row.grade is Grade.EXACT and twice != 0 else row.grade,
    )


def is_clean(plan: PositionPlan) -> bool:
    """True if `positions plan` exits 0: no holder is blocked, and no check blocks."""
    return not plan.blocked() and not any(c.counts_as is Level.BLOCK and not c.accepted for c in plan.header.checks)


def write(plan: PositionPlan, path: Path) -> None:
    """Write the file durably, readable by its owner only; raises as `refuse_out` does."""
    with (
        reporting_unwritable(path, f"The positions cannot be written to {path}"),
        replacing(path, lambda: refuse_out(path)) as file,
    ):
        file.writelines(f"{line}\n".encode("ascii") for line in _lines(plan))


def _lines(plan: PositionPlan) -> Iterator[str]:
    """Yield the JSON document: all but the holders on its first lines, then a line for each holder."""
    head = {
        FORMAT_KEY: FORMAT_VERSION,
        "fingerprint": plan.fingerprint,
        "header": asdict(plan.header),
        "last": sorted(plan.last_meant),
    }
    yield f'{json.dumps(head)[:-1]}, "holders": ['
    tables = [json.dumps(table.document()) for table in plan.holders().values()]
    yield from (f"{table}," for table in tables[:-1])
    yield from tables[-1:]
    yield "]}"


def read(path: Path) -> PositionPlan:
    """Read a file and recompute its fingerprint.

    Raises `UnreadablePlan` for one that is missing, another file, damaged or of an unknown format, and `Refused` for
    one whose contents are not those that its stored fingerprint was made of.
    """
    todo = "Name the file that `mm2-migrate positions plan` wrote (--out, by default positions.json)."
    try:
        if is_no_ordinary_file(path):
            raise UnreadablePlan(f"The positions {path} cannot be read: not a regular file.", todo)
        content = path.read_bytes()
    except OSError as error:
        raise not_opened(f"The positions {path}", error, todo) from error
    if not content.startswith(f'{{"{FORMAT_KEY}": '.encode()):
        raise UnreadablePlan(f"{path} is not a file of `positions plan`.", todo)
    try:
        document = json.loads(content)
        if document[FORMAT_KEY] != FORMAT_VERSION:
            raise UnreadablePlan(
                f"{path} has format {str(document[FORMAT_KEY])[:20]}; this version reads format {FORMAT_VERSION}.",
                "Use the version of mm2-migrate that made it, or plan again.",
            )
        known: Known = {}
        rows = PlanRows(GroupRows.of_table(table, known) for table in document["holders"])
        last = frozenset((holder, topic, partition) for holder, topic, partition in document["last"])
        plan, stored = PositionPlan(_header(document["header"]), rows, last), document["fingerprint"]
    except UnreadablePlan:
        raise
    except Exception as error:  # a damaged file can fail in any way: JSON, types, columns
        raise UnreadablePlan(
            f"{path} is damaged or cut short ({type(error).__name__}: {str(error)[:200]}).",
            "Get the file again from where it was made, or plan again.",
        ) from error
    if stored != plan.fingerprint:
        raise Refused(
            f"{path} was edited or damaged after it was made: its fingerprint says {str(stored)[:SHORT_DIGITS]}, its "
            f"contents give {plan.short_fingerprint}.",
            "A file of positions is never edited: get it again from where it was made, or plan again.",
        )
    return plan


def _header(document: dict[str, Any]) -> Header:
    document["waivers"] = tuple(document["waivers"])
    document["origins"] = tuple(Origin(**entry | {"kind": HolderKind(entry["kind"])}) for entry in document["origins"])
    document["checks"] = tuple(map(check_result, document["checks"]))
    return Header(**document)


def refuse_out(path: Path) -> None:
    """Raise `Refused` if something is at `path` that is not a whole file of positions: only such a file is replaced.

    Raises what `write` would where none can be written there, before a survey of minutes.
    """
    try:
        if path.exists() or path.is_symlink():
            read(path)
    except (Refused, UnreadablePlan) as error:
        raise Refused(
            f"{path} exists and is not a file of positions that can be read: it is not overwritten.",
            "Choose another --out, or move it away.",
        ) from error
    except OSError as error:
        raise MigrateError(f"{path} cannot be looked at: {error.strerror}.", "Choose another --out.") from error
    refuse_unwritable(path, f"The positions cannot be written to {path}")
