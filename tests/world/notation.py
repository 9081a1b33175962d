"""Worlds as text, in the notation of the laws' cases: `u@d` is a copy of the source record at u, at d on the target.

`3A@4` was altered on the way, `5!` was aborted, `5?` stands in (or behind) an open transaction, `|` is a control
marker, `~2` was written and is no longer there; `2..4@10..12` is a run. Other names than numbers are records of
local writers or of an earlier log. Times are ms after the first.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from migrate.match.equality import Content, Equality
from migrate.match.protocol import Matched
from migrate.mm2.chain import chain
from migrate.model import LogRange, OffsetSync
from tests.integration.oracle import Written
from tests.world.judge import Judgement
from tests.world.model import Entry, World
from tests.world.runner import Run

START_MS = 1_000
STEP_MS = 10
# A record of another partition of the topic, where all went well.
_SISTER = Content(START_MS, b"key", b"value", ())


def hand(
    source: str,
    target: str,
    syncs: Sequence[tuple[int, int]] = (),
    commits: Sequence[int] = (),
    *,
    source_start: int | None = None,
    source_end: int | None = None,
    times: Mapping[str, int] | None = None,
    like: Mapping[str, str] | None = None,
    reached: int | None = None,
    last_copied_offset: int | None = None,
    retention: Sequence[tuple[int, bool, int]] = (),
) -> World:
    """Build a world from text; `source_end` is the log's end (high watermark), where later than the last record.

    `times` sets timestamps by identity (default: 10 ms per source offset, and those of other records as their
    neighbour on the target); `like` makes one identity's content equal another's. `commits`: all of them by default.
    """
    lone = [(identity, mark, int(identity)) for identity, mark, _ in _words(source) if identity]
    made = _Contents(times or {}, like or {})
    source_entries = [_entry(u, i, mark, made.of(i)) for i, mark, u in lone if mark != "~"]
    target_entries = [_entry(d, i, mark, made.of(i, altered=mark == "A")) for i, mark, d in _words(target)]
    source_pin = _pin(source_entries, source_end)
    target_pin = _pin(target_entries)
    least = min((e.offset for e in source_entries), default=source_pin) if source_start is None else source_start
    if source_start is None and not any(mark == "~" for _, mark, _ in lone):
        least = 0
    numbers = [int(e.identity) for e in target_entries if e.identity.isdigit()]
    return World(
        seed=0,
        troubles=frozenset({"changes"} if any(e.altered for e in target_entries) else ()),
        source_log=LogRange(least, source_pin),
        target_log=LogRange(0, target_pin),
        source=_cut(source_entries, source_pin),
        target=_cut(target_entries, target_pin),
        written=tuple(Written(u, i, mark != "!") for i, mark, u in lone),
        syncs=tuple(OffsetSync(i, u, d) for i, (u, d) in enumerate(syncs)),
        commits=tuple(commits) or tuple(range(source_pin + 1)),
        reached=reached if reached is not None else (numbers[-1] + 1 if numbers else 0),
        last_copied_offset=last_copied_offset,
        retention=tuple(retention),
        elsewhere=((_SISTER, _SISTER),) * 5,
    )


class _Contents:
    def __init__(self, times: Mapping[str, int], like: Mapping[str, str]) -> None:
        self.times, self.like = times, like
        self.newest = START_MS

    def of(self, identity: str, altered: bool = False) -> Content:
        name = self.like.get(identity, identity)
        usual = START_MS + STEP_MS * int(name) if name.isdigit() else self.newest
        self.newest = self.times.get(name, usual)
        return Content(self.newest, b"k" + name.encode(), (b"changed " if altered else b"v") + name.encode(), ())


def _words(text: str) -> Iterable[tuple[str, str, int]]:
    """Yield (identity, mark, offset); on the source the offset is the identity."""
    for word in text.split():
        left, _, right = word.partition("@")
        found = re.fullmatch(r"(~?)(\|?)([^!?A~|]*)([!?A]?)", left)
        if not found:
            raise ValueError(f"not understood: {word!r}")
        gone, marker, names, mark = found.groups()
        if marker:
            yield "", "|", int(right or names)
            continue
        whom = _run(names)
        where = _run(right) if right else whom
        if len(whom) != len(where):
            raise ValueError(f"two runs of different length: {word!r}")
        for identity, offset in zip(whom, where, strict=True):
            yield identity, gone or mark, int(offset)


def _run(text: str) -> list[str]:
    first, dots, last = text.partition("..")
    return [str(n) for n in range(int(first), int(last) + 1)] if dots else [text]


def _entry(offset: int, identity: str, mark: str, content: Content) -> Entry:
    shown = mark in ("", "A")
    return Entry(offset, identity, content, visible=shown, pending=mark == "?", altered=mark == "A")


def _pin(entries: Sequence[Entry], end: int | None = None) -> int:
    """The last stable offset: below the first open record, else the log's end."""
    behind = max((e.offset + 1 for e in entries), default=0)
    return min([*(e.offset for e in entries if e.pending), behind if end is None else end])


def _cut(entries: Sequence[Entry], pin: int) -> tuple[Entry, ...]:
    """Hide what lies behind an open transaction."""
    return tuple(
        e if e.offset < pin else Entry(e.offset, e.identity, e.content, False, e.pending or e.visible, e.altered)
        for e in entries
    )


def drawn(world: World) -> str:
    """The whole world in a few lines that a person can debug with."""
    kept = chain(world.syncs, world.source_log.end, world.target_log.end)
    there = {e.offset for e in world.source}
    gone = [w for w in world.written if w.offset not in there]
    lines = [
        f"seed {world.seed}, troubles: {' '.join(sorted(world.troubles)) or 'none'}",
        f"source [{world.source_log.start},{world.source_log.end}): {_runs(_marks(world.source, on_target=False))}",
        f"target [{world.target_log.start},{world.target_log.end}): {_runs(_marks(world.target, on_target=True))}",
        f"syncs  {_pairs(world.syncs)}  chain {_pairs(kept)}",
        f"MM2    next {world.reached}, committed {world.last_copied_offset}; commits {list(world.commits)}",
    ]
    if gone:
        lines.insert(2, f"gone from the source: {' '.join('~' + w.identity for w in gone)}")
    lines += _time_lines(world) + _alike_lines(world)
    if world.retention:
        lines.append(f"retention while reading (round, source, start): {list(world.retention)}")
    return "\n".join(lines)


def explained(judgement: Judgement, run: Run, kind: str | None = None) -> str:
    """A judged world: its logs, its answers, and what is wrong with them."""
    guilty = {v.source_committed for v in judgement.violations if kind is None or v.kind == kind}
    lines = [drawn(judgement.world), f"equality {run.question.equality}, {run.answer.tail}, {run.rounds} rounds"]
    for row in judgement.rows:
        place = row.place
        if isinstance(place, Matched):
            what = (
                f"at {place.target_offset} {place.why} rereads<={place.rereads_at_most} "
                f"missing {place.missing_on_target} window {place.lower}..{place.upper}"
            )
            what += f"; best {row.best}, really rereads {row.rereads}"
        else:
            what = f"unmatched: {place.reason}; best {row.best}"
        lines.append(f"{'>>' if row.source_committed in guilty else '  '} g={row.source_committed}: {what}")
    for v in judgement.violations:
        at = "the tail" if v.source_committed is None else f"g={v.source_committed}"
        lines.append(f"!! {v.kind} {at}: {v.detail}")
    return "\n".join(lines)


def _marks(entries: Iterable[Entry], on_target: bool) -> list[tuple[str, str, int | None]]:
    """Name, mark and, on the target, offset of each entry."""
    found: list[tuple[str, str, int | None]] = []
    for e in entries:
        mark = ("A" if e.altered and on_target else "") if e.visible else "?" if e.pending else "!"
        name = e.identity or ("|" if on_target else f"|{e.offset}")
        found.append((name, mark if e.identity else "", e.offset if on_target else None))
    return found


def _runs(marks: Sequence[tuple[str, str, int | None]]) -> str:
    """Join runs of consecutive numbers at consecutive offsets: 0..5@2..7."""
    runs: list[list[tuple[str, str, int | None]]] = []
    for mark in marks:
        if runs and _follows(mark, runs[-1][-1]):
            runs[-1].append(mark)
        else:
            runs.append([mark])
    return " ".join(map(_run_text, runs)) or "(empty)"


def _follows(mark: tuple[str, str, int | None], before: tuple[str, str, int | None]) -> bool:
    numbers = mark[0].isdigit() and before[0].isdigit() and int(mark[0]) == int(before[0]) + 1
    return numbers and mark[1] == before[1] and (mark[2] is None or before[2] is None or mark[2] == before[2] + 1)


def _run_text(run: Sequence[tuple[str, str, int | None]]) -> str:
    (first, mark, start), (last, _, end) = run[0], run[-1]
    if len(run) == 1:
        return first + mark + ("" if start is None else f"@{start}")
    return f"{first}..{last}{mark}" + ("" if start is None else f"@{start}..{end}")


def _pairs(syncs: Iterable[OffsetSync]) -> str:
    return " ".join(f"({s.source_offset},{s.target_offset})" for s in syncs) or "none"


def _time_lines(world: World) -> list[str]:
    lines = []
    for name, entries in (("source", world.source), ("target", world.target)):
        times = [e.content.timestamp for e in entries if e.identity]
        if times != sorted(times):
            origin = min(times)
            shown = " ".join(f"{e.offset}:{e.content.timestamp - origin}" for e in entries if e.identity)
            lines.append(f"{name} times, out of order: {shown}")
    if world.survives is not Equality.ALL:
        lines.append(f"of a record the way keeps: {world.survives}")
    return lines


def _alike_lines(world: World) -> list[str]:
    sets: dict[int, set[str]] = defaultdict(set)
    for identity, alike in world.alike.items():
        sets[alike].add(identity)
    several = [sorted(s, key=lambda i: (len(i), i)) for s in sets.values() if len(s) > 1]
    return [f"equal records: {'; '.join('='.join(s) for s in sorted(several))}"] if several else []
