"""What became of a plan, as pandas tables: its journal, who signed it, and what `verify` found. Writes nothing."""

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from migrate.apply.journal import history_beside, journal_to_read
from migrate.apply.signatures import signatures_beside
from migrate.apply.verify import read_verification
from migrate.apply.waves import GroupStanding, Wave, wave_of
from migrate.model import Decision
from migrate.plan.plan import Plan
from migrate.show.report_outcome import DONE, Verified, aftermath, verified_headline, verified_of
from migrate.show.review import PLACE, ReviewStopped, data_frame, extra_module, review_errors
from migrate.show.table import fields_of

if TYPE_CHECKING:
    import pandas as pd


def open_wave(path: str | Path, plan: Plan) -> Wave:
    """Return what the journals beside a plan tell; raises `ReviewStopped` where there is none, or it is damaged."""
    file = _journal(path, plan)
    if not file.exists():
        raise ReviewStopped(f"There is no journal {file.name} beside {path}: this plan was not applied from here.")
    with review_errors():
        return wave_of(Path(path), plan)


def outcome_table(wave: Wave) -> "pd.DataFrame":
    """Return one line per row that was to be written: what became of it by the journal, as the report says it.

    `as_planned` is True where it was read back as the plan has it, and its group was not undone since.
    """
    standings, after = wave.groups, aftermath(wave.plan, wave.journal, None).rows
    lines = [
        {
            **fields_of(row, *PLACE, "target_topic"),
            "planned": row.target_offset,
            **fields_of(own, "status", "seen", "told"),
            "group_is": str(standings[row.group]),
            "as_planned": own.status in DONE and standings[row.group] is GroupStanding.MOVED,
        }
        for row in wave.plan.rows
        if row.decision in (Decision.SET, Decision.REMOVE) and (own := after.get(row.key)) is not None
    ]
    columns = [*PLACE, "target_topic", "planned", "status", "seen", "told", "group_is", "as_planned"]
    return data_frame(lines, columns, ["planned"])


def standings_table(wave: Wave) -> "pd.DataFrame":
    """Return how many groups have moved, are uncertain, undone, left or as they were (`GroupStanding`)."""
    counts = Counter(wave.groups.values())
    return extra_module("pandas").DataFrame({"groups": {str(standing): counts[standing] for standing in GroupStanding}})


def events_table(path: str | Path, plan: Plan) -> "pd.DataFrame":
    """Return the journal's events in order: time, event, group, and the rest as text."""
    file = _journal(path, plan)
    lines = []
    for text in file.read_text("utf-8").split("\n")[:-1]:
        event = json.loads(text)
        rest = {k: v for k, v in event.items() if k not in ("time", "event", "group", "fingerprint")}
        lines.append({"time": event["time"], "event": event["event"], "group": event.get("group", ""),
                      "details": json.dumps(rest)})  # fmt: skip
    return data_frame(lines, ["time", "event", "group", "details"])


def verification_verdict(path: str | Path, plan_path: str | Path, plan: Plan) -> str:
    """Return in one line what `verify --format json > FILE` says of the plan, and whether a later run has changed that.

    The records and open blocks are in it, which `verification_table` has no line for. Raises as that does.
    """
    verified = _verified(path, plan)
    with review_errors():
        state = history_beside(Path(plan_path), plan.fingerprint)
        return verified_headline(plan, verified, state).text


def verification_table(path: str | Path, plan: Plan) -> "pd.DataFrame":
    """Return what `verify --format json > FILE` found, one line per offset.

    Raises `ReviewStopped` if the file is missing, holds something else, or is of another plan.
    """
    columns = ["group", "target_topic", "partition", "expected", "seen", "standing", "sentence"]
    return data_frame(list(_verified(path, plan).offsets.values()), columns, ["expected", "seen"])


def not_written_table(path: str | Path, plan: Plan) -> "pd.DataFrame":
    """Return the rows that were not written, and so could not be verified: blocked, skipped, or left out by apply.

    Raises as `verification_table` does.
    """
    columns = ["group", "target_topic", "partition", "why", "reason", "sentence"]
    return data_frame(list(_verified(path, plan).left_out.values()), columns)


def _verified(path: str | Path, plan: Plan) -> Verified:
    with review_errors():
        return verified_of(read_verification(Path(path)), str(path), plan)


def signatures_table(path: str | Path, plan: Plan) -> "pd.DataFrame":
    """Return who has signed the plan: time, name, note. Names are claims."""
    with review_errors():
        signatures = signatures_beside(Path(path), plan.fingerprint)
    return data_frame([asdict(s) for s in signatures], ["time", "name", "note"])


def _journal(path: str | Path, plan: Plan) -> Path:
    with review_errors():
        return journal_to_read(Path(path), plan.fingerprint)
