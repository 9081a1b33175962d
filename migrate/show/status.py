"""A status as one screen of text: verdict, how far MM2 is, who is alive, what is missing; and as JSON. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from migrate.clock import CLOCKS_APART_MS, minute
from migrate.mm2.flow import NOT_MM2
from migrate.model import Failure, GroupState, LogRange
from migrate.plan.attention import Attention, AttentionKind, findings_of
from migrate.plan.status import GroupStatus, Mm2TopicStatus, PartitionStatus, Status, TopicStatus
from migrate.plan.totals import Forecast
from migrate.plan.watch import CopyProgress, Pace, TimeLeft
from migrate.show.lines import aligned, at_most, number, wrapped
from migrate.show.plan_table import LABELS, Page, attention_lines, passed_lines
from migrate.show.table import INDENT, UNSEEN, Column, Table, fields_of
from migrate.survey.drain import Lag
from migrate.survey.group_facts import TOO_MANY_RECORDS, cadence_text
from migrate.survey.offsets_topic import GroupRecord
from migrate.survey.producers import Growth, rate_text
from migrate.text import Colour, both_names, duration_text, many, name, paint, safe
from migrate.watch import Freshness, Glance

BAR_WIDTH = 10
TOPICS_SHOWN = 40
GROUPS_SHOWN = 20
NAMES_SHOWN = 12
_WHY_NO_ESTIMATE = {
    Pace.TOO_EARLY: "too early to tell how long",
    Pace.STALLED: "nothing is being copied: restart MM2, or your replicator",
    Pace.GROWING: "producers are faster than MM2",
}
TOPIC: Column[TopicStatus] = Column("TOPIC", lambda t: f"{name(t.source_topic)} -> {name(t.target_topic)}")


def status_lines(
    status: Status,
    page: Page,
    forecast: str = "",
    progress: Mapping[str, CopyProgress] | None = None,
    left: str = "",
    freshness: Freshness | None = None,
) -> Iterator[str]:
    """Yield the screen. `progress` are the bars of a watch by topic, `left` what it says of the time left.

    `freshness` says how fresh the status is; a verdict that is not the newest look's is given as one of the past, and a
    glance's READY as none.
    """
    stale = None if freshness is None or freshness.is_current else freshness
    settling = freshness is not None and freshness.settling
    verdict = _verdict(status, settling)
    if stale is not None:
        yield from _late(stale, page)
        verdict = f"Seen {duration_text(stale.age_seconds)} ago: {verdict}"
    colour = Colour.GREEN if status.is_ready else Colour.RED if status.blocks or status.source_down else Colour.YELLOW
    yield from wrapped(verdict, page.width, colour=colour if page.colour and not (stale or settling) else None)
    yield ""
    yield from aligned(_facts(status, forecast, left, freshness), page.width, LABELS)
    yield ""
    found = findings_of(status.checks)
    # Before what may be long: a screen of 24 lines must show it.
    yield from _missing(status, page, stale, [each for each in found if each.kind is AttentionKind.BLOCK])
    yield ""
    if status.topics:
        yield from _topics(status, page, progress or {})
        yield ""
    yield from _groups(status, page)
    others = [each for each in found if each.kind is not AttentionKind.BLOCK]
    if others:
        yield paint("WARNINGS", Colour.BOLD, page.colour)
    yield from attention_lines(others, status.checks, page, "--format json", NAMES_SHOWN)
    yield from passed_lines(status.checks, page)


def first_look_lines(freshness: Freshness, page: Page) -> Iterator[str]:
    """Yield the screen of a watch that has not seen anything yet."""
    yield paint("LOOKING for the first time: nothing is known yet", Colour.BOLD, page.colour)
    yield from _late(freshness, page)


def late_text(freshness: Freshness) -> str:
    """Return in one sentence what keeps a newer status from coming: who does not answer, to what, for how long."""
    parts = [safe(freshness.problem)] if freshness.problem else []
    if freshness.waiting is not None:
        waited = duration_text(freshness.waiting.seconds)
        parts.append(f"NO ANSWER for {waited}: {safe(freshness.waiting.question)}")
    return " ".join(parts)


def late_line(glance: Glance[Any], what: str) -> str:
    """Return what a log says of a newer look that does not come, and how old `what` is that there is."""
    fresh = glance.freshness
    is_late = glance.seen is not None and (fresh.waiting is not None or fresh.problem)
    age = f"; the last {what} is {duration_text(fresh.age_seconds)} old" if is_late else ""
    return (glance.note if fresh.waiting is None else late_text(fresh)) + age


def _late(freshness: Freshness, page: Page) -> Iterator[str]:
    if text := late_text(freshness):
        yield from wrapped(text, page.width, colour=Colour.RED if page.colour else None)


def left_text(time: TimeLeft, lag: Lag) -> str:
    """Return what is said of the time left: "about 40 s left (1200/s)", or why nobody can tell."""
    if lag.records == 0:
        return "everything is copied"
    left = f"{_records(lag)} left"
    if lag.records is None:
        # What an earlier look knew says nothing of what this one could not see.
        return left
    if time.seconds is None or time.per_second is None:
        return f"{left}: {_WHY_NO_ESTIMATE[time.pace]}"
    return f"{left}: about {duration_text(time.seconds)} ({rate_text(time.per_second).removeprefix('about ')})"


def progress_line(status: Status, progress: Mapping[str, CopyProgress], left: str) -> str:
    """Return one line of a watch that has no terminal: what is left, and the topics that are not done."""
    going = [t for t in status.topics if not t.drained]
    shown = [t.source_topic for t in going[:5] if t.source_topic in progress]
    parts = [f"{name(topic)} {progress[topic].percent}%" for topic in shown]
    parts += [f"{len(going) - 5} more"] * (len(going) > 5)
    blocks = sorted({c.check for c in status.blocks})
    copying = f"; {', '.join(parts)}" if parts else ""
    down = [f"{name(status.source_alias)} does not answer"] * bool(status.source_down)
    missing = [*["no commit is inside the filters"] * (not status.commits), *down, *blocks]
    waiting = f"; not ready: {', '.join(missing)}" if missing else "; ready"
    return f"{left or 'the rest is not known'}{copying}{waiting}"


def _verdict(status: Status, settling: bool) -> str:
    if status.source_down and not status.commits:
        target = name(status.target_alias)
        return f"{name(status.source_alias)} DOES NOT ANSWER, and {target} has no checkpoint inside the filters"
    if not status.commits:
        return "NOTHING TO MOVE: no commit is inside the filters"
    if status.is_ready and settling:
        return "NOT YET READY: nothing is missing at a glance; a look over the whole settle time decides"
    if status.is_ready:
        return "READY: no blocking check failed"
    names = ", ".join(dict.fromkeys(c.check for c in status.blocks)) or "what only it knows was not looked at"
    down = f"{name(status.source_alias)} DOES NOT ANSWER; " if status.source_down else ""
    return f"{down}NOT READY: {names}"


def _facts(status: Status, forecast: str, left: str, freshness: Freshness | None) -> Iterator[tuple[str, str]]:
    read = datetime.fromtimestamp(status.time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    if freshness is not None:
        read += f", {duration_text(freshness.age_seconds)} ago"
    a, b = name(status.source_alias), name(status.target_alias)
    yield "Flow", f"{a} -> {b}, read {read}"
    if status.source_down:
        yield "Source", f"{safe(status.source_down)} What only {a} knows is shown as ?."
    yield "MM2", "; ".join(_age(topic, status.time_ms) for topic in status.mm2_topics) or NOT_MM2
    if status.positions_unknown and status.mm2_topics:
        yield "", f"its own positions are not known: {safe(status.positions_unknown)}"
    if left:
        yield "To copy", left
    yield "Producers", _producers(status)
    on_source = "not known" if status.source_down else _alive([g.on_source for g in status.groups])
    on_target = _alive([g.on_target for g in status.groups])
    offsets = sum(1 for g in status.groups if g.target_offsets)
    counted = f"{len(status.groups)} with {many(status.commits, 'commit')}"
    yield "Groups", f"{counted}; on {a}: {on_source}; on {b}: {on_target}, {offsets} with offsets"
    if last := _last_commit(status):
        yield "", last
    if forecast:
        yield "Forecast", forecast


def _age(topic: Mm2TopicStatus, now_ms: int) -> str:
    if topic.found is None:
        return f"newest {topic.what} not known: {name(topic.topic)} is on {name(topic.alias)}"
    if not topic.found:
        return f"no {topic.what}: there is no topic {name(topic.topic)} on {name(topic.alias)}"
    if topic.news.newest_ms is None:
        return f"no {topic.what} in {name(topic.topic)}"
    if topic.news.newest_ms - now_ms > CLOCKS_APART_MS:
        return f"newest {topic.what} of {minute(topic.news.newest_ms)}, which this machine's clock has not come to"
    return f"newest {topic.what} {duration_text((now_ms - topic.news.newest_ms) / 1000)} ago"


def _producers(status: Status) -> str:
    if status.source_down:
        return "not known"
    if not status.topics:
        return "not looked at: no topic inside the filters"
    known = [t.written for t in status.topics if t.written is not None]
    writing = [growth.per_second for growth in known if growth.offsets]
    apart = min((growth.seconds for growth in known), default=0.0)
    unknown = len(status.topics) - len(known)
    tail = f"; {many(unknown, 'topic')} not read twice" if unknown else ""
    if writing:
        return f"writing to {len(writing)} of {many(len(status.topics), 'topic')}, {rate_text(sum(writing))}{tail}"
    if apart < 1:
        return f"not watched long enough{tail}"
    return f"no record written in {duration_text(apart)}{tail}"


def _last_commit(status: Status) -> str:
    """Return when the last of the stopped groups committed, or that there was too much to read, else "".

    Of a group that is alive a watch may remember less than it has committed by now.
    """
    stopped = [(g.source_record, g.group) for g in status.groups if g.is_stopped_on_source]
    known = [(r.last_commit_ms, group) for r, group in stopped if isinstance(r, GroupRecord) and r.last_commit_ms]
    if not known:
        return _too_many(status)
    last_ms, group = max(known)
    ago = duration_text(max(0, status.time_ms - last_ms) / 1000)
    unknown = len(stopped) - len(known)
    tail = f"; of {many(unknown, 'group')} not known" if unknown else ""
    return f"stopped groups on {name(status.source_alias)} committed last {ago} ago ({name(group)}){tail}"


def _too_many(status: Status) -> str:
    """Return that groups' records were not read because there are too many, else ""."""
    reasons = (group.source_record for group in status.groups)
    why = next((r.message for r in reasons if isinstance(r, Failure) and r.code == TOO_MANY_RECORDS), None)
    return f"their commits on {name(status.source_alias)} were not looked at: {safe(why)}" if why is not None else ""


def _alive(states: Sequence[GroupState | Failure | None]) -> str:
    alive = [s for s in states if isinstance(s, GroupState) and not s.is_stopped]
    unread = sum(1 for s in states if not isinstance(s, GroupState))
    text = f"{len(alive)} alive ({many(sum(s.member_count for s in alive), 'member')})" if alive else "none alive"
    return text + (f", {unread} not readable" if unread else "")


def _topics(status: Status, page: Page, progress: Mapping[str, CopyProgress]) -> Iterator[str]:
    # What is not done comes first, the furthest behind on top: a screen has an end.
    ordered = sorted(status.topics, key=lambda t: (bool(t.drained), -(t.lag.records or 0), t.source_topic))
    shown, rest = ordered[:TOPICS_SHOWN], ordered[TOPICS_SHOWN:]
    yield from _table(shown, status, page, progress)
    if rest:
        yield f"and {many(len(rest), 'topic')} more, {sum(1 for t in rest if t.drained)} of them copied in full"


def _table(
    topics: Sequence[TopicStatus], status: Status, page: Page, progress: Mapping[str, CopyProgress]
) -> Iterator[str]:
    """Yield the topics, each with its bar at the end of the line; on a narrow page the name above and the bar below."""
    numbers = _numbers(status)
    bar: Column[TopicStatus] = Column("", lambda topic: _bar(topic, progress.get(topic.source_topic)))
    table = Table((TOPIC, *numbers, bar), topics, page.width)
    if table.fits:
        return table.lines(page.colour, _shade)
    table = Table(numbers, topics, page.width, INDENT)
    return table.lines(page.colour, _shade, TOPIC.cell, lambda topic: [INDENT + bar.cell(topic)])


def _numbers(status: Status) -> tuple[Column[TopicStatus], ...]:
    def waiting(topic: TopicStatus) -> str:
        since = topic.lag.waiting_since
        return duration_text((status.time_ms - since) / 1000) if since else "-" if topic.drained else UNSEEN

    return (
        Column("PART", lambda topic: len(topic.partitions), right=True),
        Column("SOURCE-END", lambda topic: number(topic.source_end, UNSEEN), right=True),
        Column("COPIED", lambda topic: number(topic.copied, UNSEEN), right=True),
        Column("LAG", lambda topic: _lag(topic.lag), right=True),
        Column("WAITING", waiting, right=True),
        Column("WRITTEN", _written, right=True),
    )


def _shade(topic: TopicStatus) -> Colour | None:
    return None if topic.drained else Colour.YELLOW


def _lag(lag: Lag) -> str:
    return UNSEEN if lag.records is None else f"{'' if lag.is_counted else '~'}{lag.records}"


def _records(lag: Lag) -> str:
    if lag.records is None:
        return "an unknown number of records"
    return f"{'' if lag.is_counted else 'about '}{many(lag.records, 'record')}"


def _written(topic: TopicStatus) -> str:
    written = topic.written
    if written is None:
        return UNSEEN
    if written.offsets:
        return rate_text(written.per_second).removeprefix("about ")
    return "no" if written.is_conclusive else UNSEEN


def _bar(topic: TopicStatus, progress: CopyProgress | None) -> str:
    verdict = {True: "copied", False: _motion(progress), None: "not known"}[topic.drained]
    if progress is None or topic.source_end is None:  # a bar of an earlier look would pass for this one's
        return verdict
    done = int(BAR_WIDTH * progress.part)
    return f"[{'#' * done}{'.' * (BAR_WIDTH - done)}] {progress.percent:3d}% {verdict}"


def _motion(progress: CopyProgress | None) -> str:
    """Return what looks have seen of a topic that is not copied in full: one look sees no motion."""
    if progress is None or progress.still_seconds is None:
        return "behind"
    return "copying" if progress.is_copying else f"no progress for {duration_text(progress.still_seconds)}"


def _groups(status: Status, page: Page) -> Iterator[str]:
    living = [(g, side) for g in status.groups for side in _living(g, status)]
    if not living:
        return
    yield paint("GROUPS ALIVE", Colour.BOLD, page.colour)
    texts = [f"{both_names(group.group, group.target_group or group.group)}: {side}" for group, side in living]
    yield from at_most(texts, GROUPS_SHOWN, page.width, "more: --format json has them")
    yield ""


def _living(group: GroupStatus, status: Status) -> Iterator[str]:
    cadence = cadence_text(group.source_record)
    sides = (
        (group.on_source, status.source_alias, f"; {cadence}" if cadence else ""),
        (group.on_target, status.target_alias, ""),
    )
    for state, alias, pace in sides:
        if isinstance(state, Failure):
            yield f"its state on {name(alias)} could not be read ({state.code})"
        elif state is not None and not state.is_stopped:
            who = f": {safe(state.some_members(5))}" if state.members else ""
            yield f"{state.state} on {name(alias)}, {many(state.member_count, 'member')}{who}{pace}"


def _missing(status: Status, page: Page, stale: Freshness | None, blocks: Sequence[Attention]) -> Iterator[str]:
    heading = "NOTHING IS MISSING" if status.commits else "NOTHING WAS LOOKED AT"
    heading = "WHAT IS MISSING" if status.blocks else heading
    if stale is not None:
        heading = f"{heading.replace(' IS ', ' WAS ')} {duration_text(stale.age_seconds)} AGO"
    yield paint(heading, Colour.BOLD, page.colour)
    yield from attention_lines(blocks, (), page, "--format json", NAMES_SHOWN)


def status_document(
    status: Status,
    forecast: Forecast | None = None,
    progress: Mapping[str, CopyProgress] | None = None,
    left: TimeLeft | None = None,
    freshness: Freshness | None = None,
) -> dict[str, Any]:
    """Return the document; what is not known is null. Offsets and records are counts, times ms or seconds by name.

    `freshness` says how fresh the status is. Where it is not that of the newest look, or that of a
    glance which the look over the settle time has not confirmed yet (`settling`), nothing is `ready`.
    """
    freshness = freshness or Freshness()
    bars = progress or {}
    return {
        "time_ms": status.time_ms,
        "ready": status.is_ready and freshness.is_current and not freshness.settling,
        "age_seconds": round(freshness.age_seconds, 1),
        "waiting": None if freshness.waiting is None else asdict(freshness.waiting),
        "problem": freshness.problem or None,
        "settling": freshness.settling,
        "source": status.source_alias,
        "target": status.target_alias,
        "source_down": status.source_down or None,
        "lag": _lag_document(status.lag),
        "time_left": None if left is None else asdict(left),
        "topics": [_topic_document(topic, bars.get(topic.source_topic)) for topic in status.topics],
        "groups": [_group_document(group) for group in status.groups],
        "commits": status.commits,
        "mm2_topics": [
            {
                "holds": topic.what,
                "topic": topic.topic,
                "cluster": topic.alias,
                "found": topic.found,
                "newest_ms": topic.news.newest_ms,
                "offsets_left_out": topic.news.left_out,
            }
            for topic in status.mm2_topics
        ],
        "positions_unknown": status.positions_unknown or None,
        "checks": [asdict(check) for check in status.checks],
        "forecast": None if forecast is None else asdict(forecast),
    }


def _topic_document(topic: TopicStatus, progress: CopyProgress | None) -> dict[str, Any]:
    return {
        **fields_of(topic, "source_topic", "target_topic", "source_end", "target_end", "copied"),
        "lag": _lag_document(topic.lag),
        "drained": topic.drained,
        "written": _growth(topic.written),
        "progress": None if progress is None or topic.source_end is None else fields_of(progress, "done", "total"),
        "partitions": [_partition(partition) for partition in topic.partitions],
    }


def _partition(partition: PartitionStatus) -> dict[str, Any]:
    return {
        "partition": partition.source.partition,
        "source_log": _log(partition.source_log),
        "target_log": _log(partition.target_log),
        "mm2_copied_to": partition.last_copied_offset,
        "lag": _lag_document(partition.lag),
        "drained": partition.drained.verdict,
        "why_not_drained": partition.drained.seen or None,
        "written": _growth(partition.growth),
    }


def _group_document(group: GroupStatus) -> dict[str, Any]:
    return {
        "group": group.group,
        "target_group": group.target_group,
        "on_source": _state(group.on_source),
        "on_target": _state(group.on_target),
        "target_offsets": group.target_offsets,
        "commits_on_source": _commits(group.source_record),
    }


def _commits(record: GroupRecord | Failure) -> dict[str, Any]:
    if isinstance(record, Failure):
        return {"error": record.code}
    return fields_of(record, "last_commit_ms", "seconds_between_commits", "records_between_commits")


def _state(state: GroupState | Failure | None) -> dict[str, Any] | None:
    if isinstance(state, Failure):
        return {"state": None, "error": state.code}
    if state is None:
        return None
    return fields_of(state, "state", "kind", "member_count") | {"members": list(state.members)}


def _lag_document(lag: Lag) -> dict[str, Any]:
    return {"records": lag.records, "counted": lag.is_counted, "waiting_since_ms": lag.waiting_since}


def _log(log: LogRange | None) -> dict[str, Any] | None:
    return None if log is None else fields_of(log, "start", "end")


def _growth(growth: Growth | Failure | None) -> dict[str, Any] | None:
    if not isinstance(growth, Growth):
        return None
    return {"offsets": growth.offsets, "seconds": round(growth.seconds, 3)}
