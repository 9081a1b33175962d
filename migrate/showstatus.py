"""A status as one screen of text: verdict, how far MM2 is topic by topic, who is alive, what is missing. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from migrate.attention import findings_of
from migrate.duration import duration_text
from migrate.lag import Lag
from migrate.model import Failure, GroupState, Level
from migrate.pace import Pace, TimeLeft
from migrate.producers import rate_text
from migrate.showtable import Page, finding_lines
from migrate.status import GroupStatus, Mm2TopicStatus, Status, TopicStatus
from migrate.table import Column, aligned, layout, wrapped
from migrate.terminal import Colour, many, name, paint, safe
from migrate.watching import Progress

BAR_WIDTH = 20
TOPICS_SHOWN = 40
GROUPS_SHOWN = 20
_WHY_NO_ESTIMATE = {
    Pace.TOO_EARLY: "too early to tell how long",
    Pace.STALLED: "nothing is being copied",
    Pace.GROWING: "producers are faster than MM2",
}
_COLUMNS = (
    Column("TOPIC", 0, right=False),
    Column("PART", 0),
    Column("SOURCE-END", 0),
    Column("COPIED", 0),
    Column("LAG", 0),
    Column("WAITING", 0),
    Column("WRITTEN", 0),
    Column("", 0, right=False),
)


def status_lines(
    status: Status, page: Page, forecast: str = "", progress: Mapping[str, Progress] | None = None, left: str = ""
) -> Iterator[str]:
    """Yield the screen. `progress` are the bars of a watch by topic, `left` what it says of the time left."""
    for line in wrapped(_verdict(status), page.width):
        yield paint(line, Colour.GREEN if status.is_ready else Colour.RED, page.colour)
    yield ""
    yield from aligned([(f"{label:<11}", text) for label, text in _facts(status, forecast, left)], page.width)
    yield ""
    if status.topics:
        yield from _topics(status, page, progress or {})
        yield ""
    yield from _groups(status, page)
    yield from _missing(status, page)


def left_text(told: TimeLeft, lag: Lag) -> str:
    """Return what is said of the time left: "about 40 s left (1200/s)", or why nobody can tell."""
    if told.pace is Pace.DONE or lag.records == 0:
        return "everything is copied"
    left = f"{_records(lag)} left"
    if told.seconds is None or told.per_second is None:
        return f"{left}: {_WHY_NO_ESTIMATE[told.pace]}"
    return f"{left}: about {duration_text(told.seconds)} ({rate_text(told.per_second).removeprefix('about ')})"


def progress_line(status: Status, progress: Mapping[str, Progress], left: str) -> str:
    """Return one line of a watch that has no terminal: what is left, and the topics that are not done."""
    going = [t for t in status.topics if not t.drained]
    parts = [
        f"{name(t.source_topic)} {progress[t.source_topic].percent}%" for t in going[:5] if t.source_topic in progress
    ]
    if len(going) > 5:
        parts.append(f"{len(going) - 5} more")
    blocks = sorted({c.check for c in status.blocks})
    copying = f"; {', '.join(parts)}" if parts else ""
    waiting = f"; not ready: {', '.join(blocks)}" if blocks else "; ready"
    return f"{left or 'the rest is not known'}{copying}{waiting}"


def _verdict(status: Status) -> str:
    if status.source_down and not status.commits:
        target = name(status.target_alias)
        return f"{name(status.source_alias)} DOES NOT ANSWER, and {target} has no checkpoint inside the filters"
    if not status.commits:
        return "NOTHING TO MOVE: no commit is inside the filters"
    if status.is_ready:
        return "READY: nothing that is known here keeps plan from being clean"
    names = dict.fromkeys(c.check for c in status.blocks)
    down = f"{name(status.source_alias)} DOES NOT ANSWER; " if status.source_down else ""
    return f"{down}NOT READY: {', '.join(names)}"


def _facts(status: Status, forecast: str, left: str) -> Iterator[tuple[str, str]]:
    read = datetime.fromtimestamp(status.time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    a, b = name(status.source_alias), name(status.target_alias)
    yield "Flow", f"{a} -> {b}, read {read}"
    if status.source_down:
        yield "Source", f"{safe(status.source_down)} What only {a} knows is shown as ?."
    yield "MM2", "; ".join(_age(topic, status.time_ms) for topic in status.mm2_topics)
    if status.positions_unknown:
        yield "", f"its own positions are not known: {safe(status.positions_unknown)}"
    if left:
        yield "To copy", left
    yield "Producers", _producers(status)
    on_source = "not known" if status.source_down else _alive([g.on_source for g in status.groups])
    yield (
        "Groups",
        (
            f"{len(status.groups)} with {many(status.commits, 'commit')}; on {a}: {on_source}; "
            f"on {b}: {_alive([g.on_target for g in status.groups])}, "
            f"{sum(1 for g in status.groups if g.target_offsets)} with offsets"
        ),
    )
    if forecast:
        yield "Forecast", forecast


def _age(topic: Mm2TopicStatus, now_ms: int) -> str:
    if topic.found is None:
        return f"newest {topic.what} not known: {name(topic.topic)} is on {name(topic.alias)}"
    if not topic.found:
        return f"no {topic.what}: there is no topic {name(topic.topic)} on {name(topic.alias)}"
    if topic.news.newest_ms is None:
        return f"no {topic.what} in {name(topic.topic)}"
    return f"newest {topic.what} {duration_text((now_ms - topic.news.newest_ms) / 1000)} ago"


def _producers(status: Status) -> str:
    if status.source_down:
        return "not known"
    told = [(t, t.written) for t in status.topics]
    writing = [(t, w) for t, w in told if w is not None and w.offsets]
    apart = min((w.seconds for _, w in told if w is not None), default=0.0)
    unknown = sum(1 for _, w in told if w is None)
    tail = f"; {many(unknown, 'topic')} not read twice" if unknown else ""
    between = f" in {duration_text(apart)}" if apart >= 1 else ""
    if writing:
        rate = sum(w.per_second for _, w in writing)
        return f"writing to {len(writing)} of {many(len(told), 'topic')}, {rate_text(rate)}{tail}"
    return f"no record written{between}{tail}" if between or not told else f"not watched long enough{tail}"


def _alive(states: Sequence[GroupState | Failure | None]) -> str:
    alive = [s for s in states if isinstance(s, GroupState) and not _stopped(s)]
    unread = sum(1 for s in states if not isinstance(s, GroupState))
    text = f"{len(alive)} alive" if alive else "none alive"
    if alive:
        text += f" ({many(sum(s.member_count for s in alive), 'member')})"
    return text + (f", {unread} not readable" if unread else "")


def _stopped(state: GroupState) -> bool:
    return state.is_stopped or state.state == "Absent"


def _topics(status: Status, page: Page, progress: Mapping[str, Progress]) -> Iterator[str]:
    # What is not done comes first, the furthest behind on top: a screen has an end.
    ordered = sorted(status.topics, key=lambda t: (bool(t.drained), -(t.lag.records or 0), t.source_topic))
    shown = ordered[:TOPICS_SHOWN]
    rows = [_row(topic, status, progress.get(topic.source_topic)) for topic in shown]
    columns = [
        Column(c.heading, max((len(row[i]) for row in rows), default=0), c.right) for i, c in enumerate(_COLUMNS)
    ]
    laid = layout(columns, page.width)
    for heading in laid.headings:
        yield paint(heading, Colour.DIM, page.colour)
    for topic, row in zip(shown, rows, strict=True):
        yield paint(laid.line(row), Colour.YELLOW, page.colour and not topic.drained)
    if len(ordered) > len(shown):
        rest = ordered[len(shown) :]
        yield f"and {many(len(rest), 'topic')} more, {sum(1 for t in rest if t.drained)} of them copied in full"


def _row(topic: TopicStatus, status: Status, progress: Progress | None) -> list[str]:
    since = topic.lag.waiting_since
    return [
        f"{name(topic.source_topic)} -> {name(topic.target_topic)}",
        str(len(topic.partitions)),
        _known(topic.source_end),
        _known(topic.copied),
        _lag(topic.lag),
        duration_text((status.time_ms - since) / 1000) if since else "-" if topic.drained else "?",
        _written(topic),
        _bar(topic, progress),
    ]


def _known(number: int | None) -> str:
    return "?" if number is None else str(number)


def _lag(lag: Lag) -> str:
    return "?" if lag.records is None else f"{'' if lag.is_counted else '~'}{lag.records}"


def _records(lag: Lag) -> str:
    if lag.records is None:
        return "an unknown number of records"
    return f"{'' if lag.is_counted else 'about '}{many(lag.records, 'record')}"


def _written(topic: TopicStatus) -> str:
    written = topic.written
    if written is None:
        return "?"
    if written.offsets:
        return rate_text(written.per_second).removeprefix("about ")
    return "no" if written.tells else "?"


def _bar(topic: TopicStatus, progress: Progress | None) -> str:
    verdict = {True: "copied", False: "copying", None: "not known"}[topic.drained]
    if progress is None:
        return verdict
    done = int(BAR_WIDTH * progress.part)
    return f"[{'#' * done}{'.' * (BAR_WIDTH - done)}] {progress.percent:3d}% {verdict}"


def _groups(status: Status, page: Page) -> Iterator[str]:
    living = [(g, side) for g in status.groups for side in _living(g, status)]
    if not living:
        return
    yield paint("GROUPS ALIVE", Colour.BOLD, page.colour)
    for group, side in living[:GROUPS_SHOWN]:
        yield from wrapped(f"{name(group.group)}: {side}", page.width, "  ", "    ")
    if len(living) > GROUPS_SHOWN:
        yield f"  and {len(living) - GROUPS_SHOWN} more: --format json has them"
    yield ""


def _living(group: GroupStatus, status: Status) -> Iterator[str]:
    for state, alias in ((group.on_source, status.source_alias), (group.on_target, status.target_alias)):
        if isinstance(state, Failure):
            yield f"its state on {name(alias)} could not be read ({state.code})"
        elif state is not None and not _stopped(state):
            who = f": {', '.join(safe(m) for m in state.members[:5])}" if state.members else ""
            more = ", ..." if len(state.members) > 5 else ""
            yield f"{state.state} on {name(alias)}, {many(state.member_count, 'member')}{who}{more}"


def _missing(status: Status, page: Page) -> Iterator[str]:
    found = findings_of(status.checks)
    yield paint("WHAT IS MISSING" if status.blocks else "NOTHING IS MISSING", Colour.BOLD, page.colour)
    for finding in found:
        yield from finding_lines(finding, page)
    other = {c.check for c in status.checks if c.level is not Level.PASS}
    fine = [check for check in dict.fromkeys(c.check for c in status.checks) if check not in other]
    if fine:
        yield from wrapped(f"Passed: {', '.join(fine)}", page.width, "", "  ")
