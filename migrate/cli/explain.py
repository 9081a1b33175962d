"""The `explain` command: why rows are what they are, or the fence that keeps their groups from starting again."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from migrate.apply.signatures import files_beside
from migrate.cli.console import Terminal, printed
from migrate.cli.options import LogOptions, argument, flag, repeated
from migrate.errors import UsageError
from migrate.plan.file import read_plan
from migrate.plan.plan import refuse_rules
from migrate.show.explain import explanation
from migrate.show.fence import fence
from migrate.show.report_outcome import beside_of


@dataclass(frozen=True, kw_only=True)
class ExplainOptions:
    """What of a plan is explained."""

    plan: Path = argument()
    group: str | None = argument(required=False)
    place: str | None = argument("[TOPIC:PARTITION]", required=False)
    mm2_commands: bool = flag("Print the commands that stop MM2, and reset its positions, the way it runs here, too.")
    fence: bool = flag(
        "Print the kafka-acls lines that keep GROUP, or all groups of the plan, from starting again on the cluster "
        "that they leave, and those that remove them.")  # fmt: skip
    principals: tuple[str, ...] = repeated(
        "With --fence: whom to keep out; repeatable.  [default: User:*, everybody]",
        name="--principal", metavar="TYPE:NAME")  # fmt: skip
    log: LogOptions = LogOptions()


def explain(options: ExplainOptions) -> int:
    """Say in a few sentences why the rows of a group, or one of them, are what they are.

    Reads the plan and what lies beside it: where the group was, which of MM2's offset syncs surround that offset, what
    was compared, what MM2's own checkpoint says, what applying does, what else was considered, and what became of the
    group since. Changes nothing.
    """
    return printed(_explained(options, Terminal.here()))


def _explained(options: ExplainOptions, terminal: Terminal) -> Iterator[str]:
    """Return what is to be printed.

    Raises `UsageError` for options that exclude each other; its first line does where the plan has no such group or
    row.
    """
    plan, group, place = read_plan(options.plan), options.group, options.place
    refuse_rules(plan, "explain")
    if options.fence:
        if place is not None:
            raise UsageError("--fence is about groups, not about a partition.", "Omit TOPIC:PARTITION.")
        return fence(plan, group, options.principals, width=terminal.width, colour=terminal.colour)
    if options.principals:
        raise UsageError("--principal says whom --fence keeps out.", "Give --fence too, or omit it.")
    if group is None:
        raise UsageError("explain needs a GROUP.", "`show` lists the groups of the plan; --fence takes all of them.")
    beside, asked = beside_of(plan, files_beside(options.plan, plan.fingerprint)), options.mm2_commands
    return explanation(
        plan, group, place, after=beside.after if beside else None, mm2_commands=asked, width=terminal.width,
        colour=terminal.colour,
    )  # fmt: skip
