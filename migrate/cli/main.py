"""The command line: parse, one call, print, exit code. Decisions live elsewhere.

Results go to stdout, progress and errors to stderr. A command is imported when it is asked for, so that `--help` and
`show` answer at once.
"""

import gc
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any

import click

from migrate.cli.console import escape_what_output_lacks, exit_code_of, open_standard_streams, take_signals, take_utf8
from migrate.mm2.secrets import forbid_core_dumps

# A plan is millions of objects without a cycle; looking for one after every 700 (Python's default) doubled the time of
# reading it.
OBJECTS_BETWEEN_COLLECTIONS = 100_000
EXIT_CODES = """\b
Exit codes:
  0  done
  1  failed, interrupted, or could not see all that it was asked for
  2  wrong usage
  3  refused by a safety check, or not ready; a plan that has blocks, or no
     rows, is written, and exits 3
  4  partly done: the output names what was left out, failed, or is unknown
"""


Known = tuple[str, str, str]
# The function that each command is, in which module (of this folder, if nothing else is said), and what it does; in
# the order of the night.
COMMANDS = {
    "doctor": ("doctor", "doctor", "Check Java, jars, clusters, rights and MM2 before the night."),
    "status": ("status", "status", "Show what is ready and what is still missing; changes nothing."),
    "plan": ("plan", "plan", "Translate every commit and write a plan; changes nothing."),
    "show": ("show", "show", "Show a plan, what changed since another, or the sum of waves."),
    "explain": ("explain", "explain", "Say why a row of a plan is what it is."),
    "report": ("report", "report", "Write a plan as one self-contained HTML page."),
    "sign": ("sign", "sign", "Sign a plan that you have reviewed: a line in a file next to it."),
    "apply": ("apply", "apply", "Set the planned offsets on the target (dry run without --execute)."),
    "verify": ("verify", "verify", "Read the target afresh and compare it with the plan."),
    "rollback": ("rollback", "rollback", "Restore what was on the target before apply."),
}
MM2_COMMANDS = {"offsets": ("mm2_offsets", "offsets", "Show MM2's own positions next to its syncs and checkpoints.")}
# Clients of all else, each a folder of `migrate.extras` that says what it has: a group of commands of its own name, or
# of its `GROUP`, which several can fill.
EXTRAS = ("inventory", "offsets_topic", "follow", "positions", "flows", "audit")


class Commands(Mapping[str, click.Command]):
    """Commands by name, each imported when it is asked for."""

    def __init__(self, known: Mapping[str, Known], groups: Mapping[str, click.Group]) -> None:
        self.functions = known
        self._made: dict[str, click.Command] = {**groups}
        self._names = (*known, *groups)

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._made:
            from migrate.cli.options import command_of

            self._made[name] = command_of(name, self.function(name), self.short_help(name))
        return self._made[name]

    def function(self, name: str) -> Callable[[Any], int]:
        """Import the function that a command is."""
        module, function, _ = self.functions[name]
        found: Callable[[Any], int] = getattr(
            import_module(module if "." in module else f"migrate.cli.{module}"), function
        )
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def short_help(self, name: str) -> str:
        """Return what a command does, without importing it."""
        return self.functions[name][2] if name in self.functions else self._made[name].get_short_help_str(100)


class CommandGroup(click.Group):
    """A group whose help imports none of its commands, and has them in order, extras under their own heading."""

    def __init__(
        self, known: Mapping[str, Known], *groups: click.Group, extras: Iterable[click.Group] = (), **settings: Any
    ) -> None:
        super().__init__(subcommand_metavar="COMMAND [OPTIONS]", **settings)
        self.extras = {str(group.name): group for group in extras}
        self.known = Commands(known, {**{str(group.name): group for group in groups}, **self.extras})
        self.commands = self.known  # type: ignore[assignment]  # nobody adds to them

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the declaration, which click would sort."""
        return [*self.known]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what each command does."""
        names = self.list_commands(ctx)
        for title, listed in (
            ("Commands", [name for name in names if name not in self.extras]),
            ("Extras, which no cutover needs", [*self.extras]),
        ):
            if listed:
                with formatter.section(title):
                    formatter.write_dl([(name, self.known.short_help(name)) for name in listed])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read what is typed; `help COMMAND` is `COMMAND --help`."""
        return super().parse_args(ctx, [*args[1:], "--help"] if args[:1] == ["help"] else args)


mm2 = CommandGroup(
    MM2_COMMANDS,
    name="mm2",
    short_help="Look at what MirrorMaker 2 itself keeps.",
    help="Look at what MirrorMaker 2 itself keeps. Changes nothing; `explain --mm2-commands` prints what does.",
)


def extras() -> Iterator[CommandGroup]:
    """Yield the groups of commands that the extras have; without an extra its commands are in none."""
    of: dict[str, list[Any]] = {}
    for name in EXTRAS:
        extra = import_module(f"migrate.extras.{name}")
        of.setdefault(getattr(extra, "GROUP", name), []).append(extra)
    for name, found in of.items():
        known = {command: each for extra in found for command, each in extra.COMMANDS.items()}
        short_help = " ".join(extra.SHORT_HELP for extra in found)
        yield CommandGroup(known, name=name, short_help=short_help, help="\n\n".join(extra.HELP for extra in found))


cli = CommandGroup(
    COMMANDS,
    mm2,
    extras=extras(),
    name="mm2-migrate",
    help="""Move Kafka consumer groups to the cluster that MirrorMaker 2 has been filling.

    Stop producers and consumers, run `status --watch` and `plan`, review the plan with `show`, `apply` exactly the plan
    you approved, `verify`, and start the consumers on the target. `rollback` undoes it. No group's offsets are
    changed without --execute.
    """,
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


def _print_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from migrate.cli.version import version_lines

        click.echo("\n".join(version_lines()))
        context.exit()


click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version,
    help="Show the versions of this tool and of what it works with, and exit.",
)(cli)  # fmt: skip


def main() -> None:
    """Run the command line; never returns."""
    open_standard_streams()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    take_utf8()
    forbid_core_dumps()
    take_signals()
    escape_what_output_lacks()
    sys.exit(exit_code_of(cli))
