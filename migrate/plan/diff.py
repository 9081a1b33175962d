"""What changed between two plans of one flow: the rehearsal of weeks ago beside tonight's. Pure.

Rows are paired by group, source topic and partition. Offsets move all the time, so a row whose offsets alone moved
is told apart from one that is decided, graded or reasoned otherwise.
"""

import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import filterfalse

from migrate.checks.groups import groups_unknown
from migrate.errors import UsageError
from migrate.model import CheckResult, Level, Row
from migrate.plan.plan import Header, Plan
from migrate.survey.filters import Filters

KEY = ("group", "source_topic", "partition")
MOVING = (
    "source_committed", "source_log_start", "source_log_end", "target_log_start", "target_log_end", "target_prior",
    "target_offset", "rereads_at_most", "rereads_estimate", "checkpoint_source_offset", "checkpoint_target_offset",
    "missing_on_target", "live_source_offset", "lower_source_offset", "lower_target_offset", "upper_source_offset",
    "upper_target_offset",
)  # fmt: skip
FILTERS = ("group", "exclude-group", "topic", "exclude-topic")
# What it says, the other fields say.
TOLD = ("sentence",)
JUDGED = tuple(name for name in Row._fields if name not in {*KEY, *MOVING, *TOLD})


@dataclass(frozen=True, slots=True)
class RowChange:
    """One row in both plans that is not the same. `judged` and `moved` are the names of fields that differ."""

    before: Row
    now: Row
    judged: tuple[str, ...]
    moved: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Setting:
    """A choice or a name in the header that differs; "" where a plan has none."""

    name: str
    before: str
    now: str


@dataclass(frozen=True, slots=True)
class PlanDiff:
    """All that differs. `new` and `gone` are rows of one plan only; `found` and `mended` are checks' results.

    `outside` are rows of the earlier plan that the later one's filters leave out: what became of them is not known, and
    checks on them are in neither list.
    `found`: warnings and blocks that the earlier plan did not have, or had as something milder; `mended`: those
    that are not in the later one. `same_rows` counts rows that are equal in every field but their sentences.
    """

    before: Plan
    now: Plan
    settings: tuple[Setting, ...]
    judged: tuple[RowChange, ...]
    moved: tuple[RowChange, ...]
    new: tuple[Row, ...]
    gone: tuple[Row, ...]
    found: tuple[CheckResult, ...]
    mended: tuple[CheckResult, ...]
    same_rows: int
    outside: tuple[Row, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True if both plans say the same of every row, check and setting."""
        return not (self.settings or self.judged or self.moved or self.new or self.gone or self.found or self.mended)

    def of(self, rows: Iterable[Row]) -> "PlanDiff":
        """Return what of this concerns the given rows of either plan."""
        keys = {row.key for row in rows}
        both = self.before.rows, self.now.rows
        before, now = ({row.key: row for row in listed if row.key in keys} for listed in both)
        return replace(
            self,
            judged=tuple(c for c in self.judged if c.now.key in keys),
            moved=tuple(c for c in self.moved if c.now.key in keys),
            new=tuple(r for r in self.new if r.key in keys),
            gone=tuple(r for r in self.gone if r.key in keys),
            outside=tuple(r for r in self.outside if r.key in keys),
            same_rows=sum(
                key in before and not _differing((*JUDGED, *MOVING), before[key], row) for key, row in now.items()
            ),
        )


def diff(before: Plan, now: Plan) -> PlanDiff:
    """Return what changed; raises `UsageError` for plans that move groups between other clusters, or the other way."""
    _refuse_strangers(before, now)
    old = {row.key: row for row in before.rows}
    fresh = {row.key: row for row in now.rows}
    changes = [
        RowChange(old[key], row, _differing(JUDGED, old[key], row), _differing(MOVING, old[key], row))
        for key, row in fresh.items()
        if key in old
    ]
    judged = tuple(c for c in changes if c.judged)
    moved = tuple(c for c in changes if c.moved and not c.judged)
    gone = [row for key, row in old.items() if key not in fresh]
    is_outside = _left_out(now)
    outside = tuple(filter(is_outside, gone))
    gone = [*filterfalse(is_outside, gone)]
    inside = {name for row in (*now.rows, *gone) for name in _subjects(row)}
    unseen = {name for row in outside for name in _subjects(row)} - inside
    later = _troubles(now.header)
    earlier = {key: check for key, check in _troubles(before.header).items() if check.subject not in unseen}
    return PlanDiff(
        before=before,
        now=now,
        settings=_settings(before.header, now.header),
        judged=judged,
        moved=moved,
        new=tuple(row for key, row in fresh.items() if key not in old),
        gone=tuple(gone),
        found=tuple(c for key, c in later.items() if key not in earlier or _worse(c, earlier[key])),
        mended=tuple(c for key, c in earlier.items() if key not in later or _worse(c, later[key])),
        same_rows=len(changes) - len(judged) - len(moved),
        outside=outside,
    )


def _left_out(now: Plan) -> Callable[[Row], bool]:
    """Return whether a plan's own filters leave a row out; a groups file is known by what the plan has of it."""
    settings = now.header.settings
    groups, exclude_groups, topics, exclude_topics = (shlex.split(settings.get(name, "")) for name in FILTERS)
    filters = Filters.from_options(groups, exclude_groups, topics, exclude_topics)
    known = {*now.groups(), *(c.subject for c in now.header.checks if c.check == groups_unknown.name)}
    return lambda row: (
        filters.verdict(row.group, row.source_topic) in FILTERS
        or ("groups-file" in settings and row.group not in known)
    )


def _subjects(row: Row) -> tuple[str, ...]:
    return row.group, row.source_topic, row.target_topic


def moved_by(change: RowChange, name: str) -> int | None:
    """Return how far a field moved from the earlier plan to the later; None where either plan has none."""
    before, now = getattr(change.before, name), getattr(change.now, name)
    return None if before is None or now is None else now - before


def _refuse_strangers(before: Plan, now: Plan) -> None:
    for side in ("source", "target"):
        ids = [getattr(plan.header, f"{side}_cluster_id") for plan in (before, now)]
        if all(ids) and ids[0] != ids[1]:
            raise UsageError(
                f"These plans do not have the same {side}: cluster {ids[0]} and cluster {ids[1]}.",
                "Compare two plans of one flow, such as the rehearsal and tonight's.",
            )


def _differing(names: Iterable[str], before: Row, now: Row) -> tuple[str, ...]:
    return tuple(name for name in names if getattr(before, name) != getattr(now, name))


def _settings(before: Header, now: Header) -> tuple[Setting, ...]:
    pairs = [*_named("", before.settings, now.settings), *_named("MM2 ", before.flow, now.flow)]
    pairs.append(Setting("accept", ", ".join(before.waivers), ", ".join(now.waivers)))
    pairs.append(Setting("tool version", before.tool_version, now.tool_version))
    for old, new, where in (
        (before.target_topic_ids, now.target_topic_ids, ""),
        (before.source_topic_ids, now.source_topic_ids, f" on {now.source_alias}"),
    ):
        pairs += [Setting(f"topic id of {t}{where}", old[t], new[t]) for t in sorted(old.keys() & new.keys())]
    return tuple(s for s in pairs if s.before != s.now)


def _named(prefix: str, before: Mapping[str, str], now: Mapping[str, str]) -> list[Setting]:
    names = sorted(before.keys() | now.keys())
    return [Setting(prefix + name, before.get(name, ""), now.get(name, "")) for name in names]


def _troubles(header: Header) -> dict[tuple[str, str], CheckResult]:
    return {(c.check, c.subject): c for c in header.checks if c.level is not Level.PASS and not c.says_nothing}


def _worse(one: CheckResult, other: CheckResult) -> bool:
    return one.counts_as is Level.BLOCK and other.counts_as is not Level.BLOCK
