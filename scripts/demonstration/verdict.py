"""The table at the end: what each group was owed, read, lost and read twice, beside MM2's own checkpoints."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scripts.demonstration.counting import Copy, Tally, Written, best, tally
from scripts.demonstration.groups import Commits, Group
from scripts.demonstration.traffic import Place

HEAD = (
    f"{'group':<13}{'owed':>8}{'read':>8}{'lost':>6}{'read':>9}    | {'MM2 checkpoints:':>16}{'without':>12}",
    f"{'':<13}{'':>8}{'':>8}{'':>6}{'twice':>9}    | {'read twice':>16}{'checkpoint':>12}",
)


@dataclass(frozen=True)
class Account:
    """Everything that is needed to judge; topics by the source's names.

    `read` is what the real consumers were given, `checkpoints` MM2's newest target offset by group and partition.
    """

    groups: Sequence[Group]
    compacted: frozenset[str]
    written: Mapping[Place, Sequence[Written]]
    copies: Mapping[Place, Sequence[Copy]]
    commits: Commits
    checkpoints: Mapping[tuple[str, str, int], int]
    read: Mapping[str, Mapping[Place, Sequence[str]]]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One group, four ways: as it went, at best, from MM2's checkpoints, and where it wrote none from the start.

    `without` counts the committed partitions for which MM2 has no checkpoint, of `commits`.
    """

    name: str
    here: Tally
    best: Tally
    checkpoints: Tally
    from_start: Tally
    without: int
    commits: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is printed: a table, paragraphs, the closing line; and the number of lost records."""

    table: tuple[str, ...]
    notes: tuple[str, ...]
    closing: str
    lost: int


def compare(account: Account, group: Group) -> Comparison:
    here = at_best = checkpoints = from_start = Tally()
    without = 0
    for place, read in account.read[group.name].items():
        committed = account.commits[group.name].get(place)
        truth = (account.written[place], committed or 0, place[0] in account.compacted)
        copies = account.copies[place]
        here += tally(*truth, read)
        # Where nothing was committed, auto.offset.reset decides in any case: here it is earliest.
        start = 0 if committed is None else best(*truth, copies)
        at_best += tally(*truth, after(copies, start))
        hint = account.checkpoints.get((group.name, *place), None if committed is not None else 0)
        if hint is None:
            without += 1
            from_start += tally(*truth, after(copies, 0))
        else:
            checkpoints += tally(*truth, after(copies, hint))
    return Comparison(group.name, here, at_best, checkpoints, from_start, without, len(account.commits[group.name]))


def after(copies: Sequence[Copy], start: int) -> list[str]:
    """What a reader gets who starts at a target offset."""
    return [copy.identity for copy in copies if copy.offset >= start]


def report(account: Account) -> Verdict:
    compared = [compare(account, group) for group in account.groups]
    here = sum((c.here for c in compared), Tally())
    checkpoints = sum((c.checkpoints for c in compared), Tally())
    from_start = sum((c.from_start for c in compared), Tally())
    at_best = sum((c.best for c in compared), Tally())
    without, commits = sum(c.without for c in compared), sum(c.commits for c in compared)
    rule = "-" * max(map(len, HEAD))
    notes = [
        f"Of the {here.rereads:,} records read twice, {at_best.rereads:,} are MM2's doing: it wrote them twice when "
        "it was killed, and no offset can spare them."
    ]
    if without:
        notes.append(
            f"MM2 has no checkpoint for {without} of {commits} commits. There its consumers would start at the log's "
            f"start, and read {from_start.rereads:,} more records twice, or at its end, and lose what they are owed."
        )
    if checkpoints.lost:
        notes.append(f"Consumers started from MM2's checkpoints would have lost {checkpoints.lost:,} records.")
    closing = (
        f"lost {here.lost:,} of {here.owed:,} owed records; {here.rereads:,} read twice "
        f"(MM2's checkpoints: {checkpoints.rereads:,})"
    )
    return Verdict((*HEAD, rule, *map(line, compared), rule), tuple(notes), closing, here.lost)


def line(compared: Comparison) -> str:
    here = compared.here
    gap = f"{compared.without} of {compared.commits}" if compared.without else ""
    return (
        f"{compared.name:<13}{here.owed:>8,}{here.read:>8,}{here.lost:>6,}{here.rereads:>9,}    | "
        f"{compared.checkpoints.rereads:>16,}{gap:>12}"
    ).rstrip()
