"""Files as `groups history` and `groups list` write them, of a few groups that differ in all that is drawn."""

import json
from pathlib import Path
from typing import Any

START_MS = 1_767_225_600_000
MINUTE_MS = 60_000
FIELDS = "time,group,topic,partition,offset,commits,records_per_s,end_at_time,lag,lag_is_estimate"


def group(name: str, *topics: str, attention: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    said = {
        "kind": "classic", "protocol_type": "consumer", "state": "Stable", "members": 2, "topics": list(topics),
        "lag": 5, "last_commit_ms": START_MS + 30 * MINUTE_MS, "attention": list(attention), "not_visible": {},
    }  # fmt: skip
    return {"group": name, **said, **more}


GROUPS = [
    group("billing", "orders", "pay"),
    group("crm-sync", "customers"),
    group("fraud", "pay"),
    group("shop-streams", "orders", "clicks", attention=("streams",)),
    group("connect-archive", "clicks", attention=("connect-sink",)),
    group("_internal-monitor", "metrics", attention=("vendor-internal",), state="Empty", members=0),
    group("long-idle$$", "old", state="Empty", members=0, last_commit_ms=START_MS - 9 * 1440 * MINUTE_MS),
    group("sharers", "orders", kind="share", topics=None, last_commit_ms=None, members=None),
]


def history_rows() -> list[tuple[Any, ...]]:
    """Time in ms, and the other fields of a history."""
    rows: list[tuple[Any, ...]] = []
    for minute in range(1, 61):
        time = START_MS + minute * MINUTE_MS
        for partition in range(2):
            lag = 40 + 30 * abs(30 - minute) * (partition + 1)
            rows.append((time, "billing", "orders", partition, 1000 * minute, 12, 16.7, 1000 * minute + lag, lag, True))
        if minute % 5 == 0:
            rows.append((time, "crm-sync", "customers", 0, 10 * minute, 1, 0.167, None, None, None))
            back = 0 if minute < 40 else 5000
            rows.append(
                (time, "fraud", "pay", 0, 200 * minute - back, 5, None, 12_000, 12_000 - 200 * minute + back, True)
            )
    rows.append((START_MS + MINUTE_MS, "NA", "old", 0, 7, 1, None, 7, 0, True))
    return rows


def write_inventory(folder: Path) -> None:
    """Write history.csv and groups.json."""
    from migrate.clock import iso

    def cell(value: Any) -> str:
        return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)

    lines = [",".join([iso(row[0]), *map(cell, row[1:])]) for row in history_rows()]
    (folder / "history.csv").write_text("\n".join([FIELDS, *lines]) + "\n")
    (folder / "groups.json").write_text(json.dumps({"side": "source", "cluster": "A", "groups": GROUPS}))
