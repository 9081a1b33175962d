"""A status as one JSON document: every partition, every group, every check. Pure."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from migrate.model import Failure, GroupState, LogRange
from migrate.plan.forecast import Forecast
from migrate.plan.status import GroupStatus, PartitionStatus, Status, TopicStatus
from migrate.plan.watch import CopyProgress, TimeLeft
from migrate.show.streamed_json import fields_of
from migrate.survey.drain import Lag
from migrate.survey.offsets_topic import GroupRecord
from migrate.survey.producers import Growth
from migrate.watch import Freshness


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
        "lag": _lag(status.lag),
        "time_left": None if left is None else asdict(left),
        "topics": [
            _topic(topic, None if topic.source_end is None else bars.get(topic.source_topic)) for topic in status.topics
        ],
        "groups": [_group(group) for group in status.groups],
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


def _topic(topic: TopicStatus, progress: CopyProgress | None) -> dict[str, Any]:
    return {
        **fields_of(topic, "source_topic", "target_topic", "source_end", "target_end", "copied"),
        "lag": _lag(topic.lag),
        "drained": topic.drained,
        "written": _growth(topic.written),
        "progress": None if progress is None else fields_of(progress, "done", "total"),
        "partitions": [_partition(partition) for partition in topic.partitions],
    }


def _partition(partition: PartitionStatus) -> dict[str, Any]:
    return {
        "partition": partition.source.partition,
        "source_log": _log(partition.source_log),
        "target_log": _log(partition.target_log),
        "mm2_copied_to": partition.last_copied_offset,
        "lag": _lag(partition.lag),
        "drained": partition.drained.verdict,
        "why_not_drained": partition.drained.seen or None,
        "written": _growth(partition.growth),
    }


def _group(group: GroupStatus) -> dict[str, Any]:
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


def _lag(lag: Lag) -> dict[str, Any]:
    return {"records": lag.records, "counted": lag.is_counted, "waiting_since_ms": lag.waiting_since}


def _log(log: LogRange | None) -> dict[str, Any] | None:
    return None if log is None else fields_of(log, "start", "end")


def _growth(growth: Growth | Failure | None) -> dict[str, Any] | None:
    if not isinstance(growth, Growth):
        return None
    return {"offsets": growth.offsets, "seconds": round(growth.seconds, 3)}
