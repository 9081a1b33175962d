"""A verification as text: the verdict first, then what is not as planned, what moved on, what was not written. Pure."""

from collections import Counter
from collections.abc import Iterator, Sequence

from migrate.apply.not_written import Why
from migrate.apply.verify import Finding, Standing, Verification
from migrate.plan.plan import Plan
from migrate.show.table import wrapped
from migrate.text import Colour, many, name, paint, safe

ROWS_SHOWN = 200
NAMED = 20
_WORDS = {
    Why.BLOCKED: "blocked in the plan",
    Why.SKIPPED: "skipped, as the plan says",
    Why.LEFT_OUT: "left out by apply: the journal tells of no write",
}
_EMPTY = frozenset({Standing.AHEAD_EMPTY, Standing.METADATA_EMPTY})


def verify_lines(found: Verification, plan: Plan, width: int, colour: bool) -> Iterator[str]:
    """Yield a verification: verdict, findings by how bad they are, and what there was nothing to verify of."""
    text, shade = verdict(found)
    yield from wrapped(paint(text, shade, colour), width, "", "  ")
    counts = [f"{count} {standing}" for standing, count in sorted(found.counts().items())]
    unwritten = Counter(row.why for row in found.not_written)
    counts += [f"{count} {why}" for why, count in sorted(unwritten.items())]
    yield from wrapped(
        f"Plan {plan.short_fingerprint} on {safe(plan.header.target_alias)}: {', '.join(counts) or 'no rows'}",
        width, "", "  ",
    )  # fmt: skip
    if found.spent:
        yield "This plan was rolled back, so its offsets are not expected to be there: make a new plan."
    if found.moving:
        yield from wrapped(f"Moving now: {_names(sorted(found.moving))}", width, "", "  ")
    moved = [f for f in found.findings if f.is_good and f.standing is not Standing.EQUAL]
    yield from _findings("Not as planned:", found.bad, width)
    if any(f.standing in _EMPTY for f in found.bad):
        yield from wrapped(
            "Somebody commits for a group without members, such as MM2's group sync, or its consumers have run and "
            "stopped since: only if you know that they have, say --consumers-ran.", width,
        )  # fmt: skip
    yield from _findings("Moved on by consumers:", moved, width)
    yield from _not_written(found, width)
    yield from _blocks(found, width)


def verdict(found: Verification) -> tuple[str, Colour]:
    """Return the first line, and its colour: green only where everything that the plan has was verified."""
    total, groups = len(found.findings), len({f.group for f in found.findings})
    rest = _rest(found)
    if found.spent:
        equal = found.counts()[Standing.EQUAL]
        return f"ROLLED BACK: this plan is spent, and {equal} of {total} offsets are as it says", Colour.RED
    if found.bad:
        tail = f"; and {rest}" if rest else ""
        return f"NOT AS PLANNED: {len(found.bad)} of {total} offsets{tail}", Colour.RED
    if total:
        text = f"VERIFIED: {total} offsets of {groups} groups"
        return (f"{text}, BUT {rest}", Colour.YELLOW) if rest else (text, Colour.GREEN)
    if rest:
        return f"NOTHING VERIFIED: {rest}", Colour.YELLOW
    return "NOTHING TO VERIFY: the plan sets no offset", Colour.YELLOW


def _rest(found: Verification) -> str:
    told = []
    if found.not_written:
        groups = many(len({row.group for row in found.not_written}), "group")
        verb = "was" if len(found.not_written) == 1 else "were"
        told.append(f"{many(len(found.not_written), 'row')} of {groups} {verb} not written")
    if found.blocks:
        told.append(f"{many(len(found.blocks), 'block')} of the plan {'is' if len(found.blocks) == 1 else 'are'} open")
    return " and ".join(told)


def _not_written(found: Verification, width: int) -> Iterator[str]:
    counted = Counter((row.group, row.why, row.reason) for row in found.not_written)
    if not counted:
        return
    yield ""
    yield "Not written, so not verified:"
    for (group, why, reason), count in list(counted.items())[:ROWS_SHOWN]:
        text = f"{name(group)}: {many(count, 'row')} {_WORDS[why]}{f': {safe(reason)}' if reason else ''}"
        yield from wrapped(text, width, "  ", "    ")
    if len(counted) > ROWS_SHOWN:
        yield f"  and {len(counted) - ROWS_SHOWN} more; --format json has every row"


def _blocks(found: Verification, width: int) -> Iterator[str]:
    if not found.blocks:
        return
    yield ""
    yield "Blocks of the plan that no row shows:"
    for block in found.blocks[:NAMED]:
        text = f"{block.check} {name(block.subject)}: {safe(block.seen)}. {safe(block.todo)}"
        yield from wrapped(text.rstrip(), width, "  ", "    ")
    if len(found.blocks) > NAMED:
        yield f"  and {len(found.blocks) - NAMED} more; --format json has all"


def _findings(title: str, findings: Sequence[Finding], width: int) -> Iterator[str]:
    if not findings:
        return
    yield ""
    yield title
    for finding in findings[:ROWS_SHOWN]:
        where = f"{name(finding.group)} {name(finding.target_partition.topic)}:{finding.target_partition.partition}"
        yield from wrapped(f"{where}: {safe(finding.sentence)}", width, "  ", "    ")
    if len(findings) > ROWS_SHOWN:
        yield f"  and {len(findings) - ROWS_SHOWN} more; --format json has every row"


def _names(names: Sequence[str]) -> str:
    tail = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(name(n) for n in names[:NAMED]) + tail
