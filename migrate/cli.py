"""The command line: parse, one call, print, exit code. Decisions live elsewhere.

Results go to stdout, progress and errors to stderr. Heavy libraries are imported inside the commands, so that
`--help` and `show` answer at once.
"""

import contextlib
import io
import os
import sys
import traceback
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from migrate import __version__
from migrate.errors import EXIT_FAILED, EXIT_REFUSED, EXIT_USAGE, MigrateError
from migrate.options import (
    FILE,
    ClusterOptions,
    cluster_options,
    common_options,
    filter_options,
    matching_options,
    option,
    policy_options,
    resolve_flow,
    resolve_policies,
    spark_options,
)

EXIT_CODES = """\b
Exit codes:
  0  done
  1  failed
  2  wrong use
  3  refused by a safety check (a plan with blocks is written, and exits 3)
  4  partly applied: the output names what was left out, failed, or is unknown
"""


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog=EXIT_CODES,
    subcommand_metavar="COMMAND [OPTIONS]",
)
@click.version_option(__version__, prog_name="mm2-migrate")
def cli() -> None:
    """Move Kafka consumer groups to the cluster that MirrorMaker 2 has been filling.

    Stop producers and consumers, `plan`, read it with `show`, `apply` the very plan you approved, `verify`,
    start the consumers on the target. `rollback` undoes it. Nothing is written without --execute.
    """


def _one_paragraph(command: Callable[..., int]) -> Callable[..., None]:
    """Turn a command's errors into one paragraph on stderr and the exit code that the error carries."""

    @wraps(command)
    def run(*args: Any, **options: Any) -> None:
        debug = options.pop("debug", False)
        try:
            code = command(*args, **options)
        except MigrateError as error:
            if debug:
                traceback.print_exc()
            _complain(error.problem, error.todo)
            code = error.exit_code
        except click.exceptions.Exit:
            raise
        except click.ClickException:
            raise
        except KeyboardInterrupt:
            _complain(
                "Interrupted.", "Run the same command again: it starts afresh, or takes up what is left to write."
            )
            code = EXIT_FAILED
        except Exception as error:  # the last net: a user gets a sentence, never a stack trace
            if debug:
                traceback.print_exc()
            _complain(
                f"Unexpected {type(error).__name__}: {_first_line(str(error))}",
                "This is a fault of mm2-migrate. Run again with --debug and report the stack trace.",
            )
            code = EXIT_FAILED
        sys.exit(code)

    return run


def _print(lines: Iterable[str]) -> None:
    """Print results; if the reader (`head`, a pager) has gone, drop the rest: what was done stays done."""
    _hush()
    try:
        for line in lines:
            sys.stdout.write(line + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes stdout again at exit, and would complain then.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0][:500] if text.strip() else "(no message)"


def _complain(problem: str, todo: str) -> None:
    _hush()
    with contextlib.suppress(OSError):
        click.echo(f"mm2-migrate: {problem} {todo}".rstrip(), err=True)


def _progress(log_format: str) -> Any:
    import shutil

    from migrate.clock import SystemClock
    from migrate.progress import Heart, LineProgress

    def write(text: str) -> None:
        # A log pipe that died must not stop an apply between two groups.
        with contextlib.suppress(OSError):
            click.echo(text, err=True, nl=False)

    columns = shutil.get_terminal_size((80, 24)).columns if sys.stderr.isatty() else 0
    progress = LineProgress(write, SystemClock(), as_json=log_format == "json", columns=columns)
    _telling.append((progress, Heart(progress)))
    return progress


_telling: list[tuple[Any, Any]] = []
# Some 10,000 rows: from there on reading it takes seconds.
LARGE_PLAN_BYTES = 40_000


def _say_reading(progress: Any, *plans: Path) -> None:
    """Say that plan files are read, if that takes long enough to wonder."""
    for plan in plans:
        with contextlib.suppress(OSError):  # the one that reads it says why it can not
            if plan.stat().st_size > LARGE_PLAN_BYTES:
                progress.step(f"reading {plan}")


def _hush() -> None:
    """End the progress: what comes now are results, or the error."""
    while _telling:
        progress, heart = _telling.pop()
        heart.stop()
        progress.end()


def _clusters(options: dict[str, Any]) -> ClusterOptions:
    """Take the cluster options out of a command's options."""
    return ClusterOptions(**{name: options.pop(name) for name in ClusterOptions.__dataclass_fields__})


@cli.command(short_help="Translate every commit and write a plan; changes nothing.")
@cluster_options
@option("--source-down", is_flag=True, help="The source does not answer: plan from the target alone.")
@option("--failback", is_flag=True,
        help="The way back: the groups leave --target for --source, which is what the plan writes. Topics are named "
             "as on --target.")  # fmt: skip
@filter_options
@policy_options
@matching_options
@option("--settle", type=click.FloatRange(min=0), default=15.0, show_default=True, metavar="SECONDS",
        help="Time between two looks at the groups; longer than auto-commit's 5 s.")  # fmt: skip
@option("--out", type=FILE, default=Path("cutover.plan"), show_default=True, metavar="PLAN",
        help="Where the plan goes.")  # fmt: skip
@spark_options
@common_options
@_one_paragraph
def plan(out: Path, **options: Any) -> int:
    """Read both clusters and MM2's topics, translate every commit, check, and write a plan.

    Changes nothing on any cluster. Exits 3 if the plan has blocks: it is written all the same, to be read.
    """
    from migrate.plancommand import run_plan

    given = _clusters(options)
    flow = resolve_flow(given)
    policies = resolve_policies(
        options.pop("accept"),
        options.pop("untranslatable"),
        options.pop("rewind"),
        options.pop("uncommitted"),
        options.pop("max_rereads"),
    )
    progress = _progress(options.pop("log_format"))
    made = run_plan(flow, policies, out, progress, **options)
    from migrate.show import summary

    _print(summary(made, str(out), width=_width(), colour=_colour(), cluster_options=given.words()))
    return 0 if made.is_clean() else EXIT_REFUSED


@cli.command(short_help="Show a plan, what changed since another, or several waves added up.")
@click.argument("plans", metavar="PLAN...", nargs=-1, required=True, type=FILE)
@option("--format", "form", type=click.Choice(["table", "json", "jsonl", "csv", "kcg"]), default="table",
        show_default=True, help="kcg: what kafka-consumer-groups --reset-offsets --from-file reads.")  # fmt: skip
@option("--group", "groups", multiple=True, metavar="REGEX", help="Only groups that match in full.")
@option("--only", multiple=True, metavar="DECISION|GRADE|REASON", help="Only rows of this kind.")
@option("--diff", "other", type=FILE, metavar="OTHER",
        help="Show what changed since this earlier plan, such as the rehearsal.")  # fmt: skip
@common_options
@_one_paragraph
def show(plans: tuple[Path, ...], log_format: str, **options: Any) -> int:
    """Show a plan: verdict and totals first, then what needs attention, then every group.

    Several plans are waves: their groups are added up, with what their journals say was moved, left and undone.
    """
    from migrate.showcommand import ShowOptions, run_show

    _say_reading(_progress(log_format), *plans)
    lines, beside = run_show(plans, ShowOptions(**options, width=_width(), colour=_colour()))
    _print(lines)
    if beside:
        click.echo(beside, err=True)
    return 0


@cli.command(short_help="Sign a plan that you have read: a line in a file beside it.")
@click.argument("plan", type=FILE)
@option("--by", required=True, metavar="NAME", help="Who has read the plan. A claim: nothing checks who you are.")
@option("--note", default="", metavar="TEXT", help="What they say to it; goes into the journal with the name.")
@common_options
@_one_paragraph
def sign(plan: Path, by: str, note: str, log_format: str) -> int:
    """Sign a plan that you have read: its fingerprint, a name and the time go into a file beside it.

    A plan made with --require-signatures N is applied only when N different names stand there. Names are claims,
    not authentication. The signatures go into the journal when the plan is applied.
    """
    from migrate.signing import run_sign

    _print(run_sign(plan, by, note))
    return 0


def _width() -> int:
    """Return the terminal's columns; 200 where stdout is no terminal: a pipe has no edge to cut at."""
    import shutil

    return shutil.get_terminal_size((80, 24)).columns if sys.stdout.isatty() else 200


def _colour() -> bool:
    from migrate.terminal import wants_colour

    return wants_colour(sys.stdout.isatty(), os.environ)


def _with_plan(run: Callable[..., tuple[list[str], int]], plan: Path, options: dict[str, Any]) -> int:
    """Run a command on a plan file and the clusters that its options name; print what it says."""
    given = _clusters(options)
    progress = _progress(options.pop("log_format"))
    _say_reading(progress, plan)
    lines, code = run(
        plan, resolve_flow(given), progress, colour=_colour(), width=_width(), typed=given.words(), **options
    )
    _print(lines)
    return code


def _writing_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add what `apply` and `rollback` share."""
    decorators: list[Callable[[Callable[..., Any]], Callable[..., Any]]] = [
        option("--approve", metavar="FINGERPRINT",
               help="The fingerprint of the plan that was reviewed, or its first 12 digits or more."),
        option("--execute", is_flag=True, help="Write. Without it: a dry run that does every check."),
        option("--concurrency", type=click.IntRange(1, 100), default=100, show_default=True, metavar="N",
               help="Groups in flight at once."),
        option("--group-timeout", type=click.FloatRange(min=1), default=60.0, show_default=True,
               metavar="SECONDS", help="How long to go on trying for one group."),
    ]  # fmt: skip
    for decorate in reversed(decorators):
        command = decorate(command)
    return command


@cli.command(short_help="Set the planned offsets on the target (dry run without --execute).")
@click.argument("plan", type=FILE)
@cluster_options
@_writing_options
@option("--allow-partial", is_flag=True,
        help="Leave out whole groups that are blocked or have changed, and apply the others (exit 4).")  # fmt: skip
@common_options
@_one_paragraph
def apply(plan: Path, **options: Any) -> int:
    """Set the planned offsets on the target: the very plan you approved, or nothing.

    Without --execute this is a dry run: every check, the fingerprint, and the command to type.
    Prior state is on disk before the first write, and the same command again finishes or does nothing.
    """
    from migrate.writecommands import run_apply

    return _with_plan(run_apply, plan, options)


@cli.command(short_help="Restore what stood on the target before apply.")
@click.argument("plan", type=FILE)
@cluster_options
@_writing_options
@option("--allow-partial", is_flag=True, help="Leave out whole groups that have moved, and restore the others.")
@option("--moved", type=click.Choice(["refuse", "restore"]), default="refuse", show_default=True,
        help="Where consumers have moved on since the apply: refuse, or restore all the same.")  # fmt: skip
@option("--out", type=FILE, metavar="PLAN",
        help="Save the undo as a plan of its own, with its own fingerprint, for apply.")  # fmt: skip
@common_options
@_one_paragraph
def rollback(plan: Path, **options: Any) -> int:
    """Restore what stood on the target before `apply` ran, from the journal beside the plan.

    Without --execute this is a dry run. Rows that have moved since are refused. After a rollback the plan is
    spent.
    """
    from migrate.writecommands import run_rollback

    return _with_plan(run_rollback, plan, options)


@cli.command(short_help="Read the target afresh and compare it with the plan.")
@click.argument("plan", type=FILE)
@cluster_options
@option("--settle", type=click.FloatRange(min=0), metavar="SECONDS",
        help="Read twice, this far apart, and say what moved in between.")  # fmt: skip
@option("--records", is_flag=True,
        help="Also read, per row, the next record on the source and the next one on the target, and show them "
             "side by side: offset, time, size, fingerprints equal or not. Never the payload.")  # fmt: skip
@option("--limit", type=click.IntRange(min=1), metavar="N", help="With --records: look at the first N rows only.")
@option("--group", "groups", multiple=True, metavar="REGEX", help="Only groups that match in full.")
@option("--only", multiple=True, metavar="DECISION|GRADE|REASON", help="Only rows of this kind.")
@option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True,
        help="json: one document with every row.")  # fmt: skip
@common_options
@_one_paragraph
def verify(plan: Path, **options: Any) -> int:
    """Read the target afresh, and tell whether each planned offset is there or consumers have moved on.

    With --records, also prove it by the records: what each group reads next on the source, beside what it reads
    next on the target. Exits 1 if an offset is behind or missing, or if the records of an exact row differ.
    """
    from migrate.writecommands import run_verify

    return _with_plan(run_verify, plan, options)


@cli.command(short_help="Check Java, jars, clusters and MM2 before the night.")
@cluster_options
@option("--source-down", is_flag=True, help="Do not ask the source.")
@spark_options
@common_options
@_one_paragraph
def doctor(**options: Any) -> int:
    """Check, now and not on the night: Java, Spark's jars (fetched into the cache), both clusters, MM2's topics."""
    from migrate.doctor import examine

    given = _clusters(options)
    progress = _progress(options.pop("log_format"))
    lines, code = examine(given, progress, colour=_colour(), width=_width(), **options)
    _print(lines)
    return code


def main() -> None:
    """Run the command line; never returns."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A group's name may hold what the terminal's encoding lacks: shown escaped, not a crash.
            stream.reconfigure(errors="backslashreplace")
    try:
        cli(standalone_mode=False)
    except click.exceptions.Exit as leave:
        sys.exit(leave.exit_code)
    except click.Abort:
        sys.exit(EXIT_FAILED)
    except click.ClickException as error:
        error.show()
        sys.exit(EXIT_USAGE)
    sys.exit(0)
