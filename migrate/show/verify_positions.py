"""Checkpoints beside a plan's positions, as text and as plain values for JSON. Pure."""

from collections.abc import Iterator
from typing import Any

from migrate.apply.verify_positions import (
    NOT_AS_PLANNED,
    PositionFinding,
    PositionStanding,
    PositionVerification,
    UnreadCheckpoint,
    counted,
    not_looked_at,
)
from migrate.model import HolderKind
from migrate.plan.plan import Plan
from migrate.show.lines import at_most, wrapped
from migrate.text import Colour, many, name, paint, some

SHOWN = 200


def position_lines(verified: PositionVerification, width: int, colour: bool) -> Iterator[str]:
    """Yield how checkpoints stand: a verdict, then what is not as planned and what has moved on."""
    for one in verified.unread:
        yield from wrapped(paint(f"CHECKPOINT NOT READ: {name(one.holder)}: {one.why}", Colour.RED, colour), width)
    findings = verified.findings
    if not findings and verified.unread:
        return
    bad = [finding for finding in findings if not finding.is_good]
    wrong = [finding for finding in bad if finding.standing in NOT_AS_PLANNED]
    good, total = len(findings) - len(bad), many(len(findings), "position")
    if wrong:
        text, tone = f"POSITIONS NOT AS PLANNED: {len(wrong)} of {total}", Colour.RED
    elif bad or verified.unread:
        text, tone = f"POSITIONS VERIFIED IN PART: {good} of {total}", Colour.YELLOW
    else:
        text, tone = f"POSITIONS VERIFIED: {total}", Colour.GREEN
    yield from wrapped(paint(text, tone, colour), width)
    counts = counted(findings)
    yield from wrapped(", ".join(f"{counts[s]} {s}" for s in PositionStanding if counts[s]) or "none", width)
    moved = [finding for finding in findings if finding.standing is PositionStanding.MOVED_ON]
    yield from at_most(
        [_told(finding) for finding in (*bad, *moved)], SHOWN, width, "more; --format json has every one"
    )


def left_out_lines(plan: Plan, verified: PositionVerification | None, width: int) -> Iterator[str]:
    """Yield a sentence on the positions of holders that were not looked at."""
    if holders := not_looked_at(plan, verified):
        count = many(sum(len(plan.holders()[holder]) for holder in holders), "position")
        told = f"{count} of {many(len(holders), 'holder')} not looked at: {some(map(name, holders), 5)}."
        if any(plan.holders()[holder][0].holder_kind == HolderKind.SPARK_CHECKPOINT for holder in holders):
            told += " --spark-checkpoint NAME=URL names the folder of a Spark query on the target."
        yield from wrapped(told, width)


def unread_document(unread: UnreadCheckpoint) -> dict[str, str]:
    """Return a checkpoint that was not read as plain values."""
    return {"holder": unread.holder, "origin": unread.origin, "why": unread.why}


def position_document(finding: PositionFinding) -> dict[str, Any]:
    """Return a finding as plain values."""
    row = finding.row
    return {
        "holder": row.group,
        "origin": finding.origin,
        "batch": finding.batch,
        "target_topic": row.target_topic,
        "partition": row.partition,
        "expected": row.target_offset,
        "seen": finding.seen,
        "began": finding.began,
        "standing": str(finding.standing),
        "sentence": finding.sentence,
    }


def _told(finding: PositionFinding) -> str:
    row = finding.row
    return f"{name(row.group)} {name(row.target_topic)}:{row.partition}: {finding.sentence}"
