"""The `show` command: one plan in five formats, what changed since another, or several waves added up."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import click

from migrate.apply.signatures import files_beside
from migrate.apply.waves import wave_of
from migrate.cli.console import Terminal, print_in_utf8, say_beside
from migrate.cli.options import LogOptions, PlanRowOptions, argument, option
from migrate.errors import EXIT_DONE, UsageError
from migrate.plan.diff import diff
from migrate.plan.file import read_plan
from migrate.plan.plan import Plan, refuse_rules
from migrate.show.diff import diff_document, diff_lines
from migrate.show.plan_export import FORMATS, kcg_companion, refuse_unprintable, select
from migrate.show.plan_table import Page
from migrate.show.report_outcome import beside_of
from migrate.show.waves import wave_document, wave_lines


@dataclass(frozen=True, kw_only=True)
class ShowOptions:
    """The plans that are shown, and how."""

    plans: tuple[Path, ...] = argument("PLAN...", nargs=-1, type=click.Path(path_type=Path))
    form: str = option(
        "kcg: what kafka-consumer-groups --reset-offsets --from-file reads.",
        name="--format", default="table", type=click.Choice([*FORMATS]))  # fmt: skip
    rows: PlanRowOptions = PlanRowOptions()
    other: Path | None = option(
        "Show what changed since this earlier plan, such as the rehearsal.",
        name="--diff", metavar="OTHER")  # fmt: skip
    log: LogOptions = LogOptions()


def show(options: ShowOptions) -> int:
    """Show a plan: verdict and totals first, then what needs attention, then every group.

    Several plans are waves: their groups are added up, with what their journals say was moved, left and undone.
    """
    options.log.progress(*options.plans)
    terminal = Terminal.here()
    lines, beside = _shown(options, terminal)
    if options.form in ("csv", "kcg"):
        print_in_utf8()
    terminal.show(lines)
    if beside:
        say_beside(beside)
    return EXIT_DONE


def _shown(options: ShowOptions, terminal: Terminal) -> tuple[Iterable[str], str]:
    """Return the lines to print, made as they are taken, and what goes to stderr beside them.

    Raises `UsageError` for options that do not go together.
    """
    if len(options.plans) > 1:
        return _waves(options, terminal), ""
    path, plan, form = options.plans[0], read_plan(options.plans[0]), options.form
    if form not in ("table", "json") or options.other is not None:
        refuse_rules(plan, "this")
    if form == "kcg" and terminal.is_screen:
        refuse_unprintable(plan.rows)
    if options.other is not None:
        return _difference(plan, path, options.other, options, terminal), ""
    rows = select(plan.rows, options.rows.groups, options.rows.only)
    beside = beside_of(plan, files_beside(path, plan.fingerprint))
    page = Page(str(path), terminal.width, terminal.colour, beside=beside)
    lines = FORMATS[form](plan, rows, page)
    return lines, kcg_companion(plan, str(path), rows) if form == "kcg" else ""


def _difference(now: Plan, path: Path, other: Path, options: ShowOptions, terminal: Terminal) -> Iterable[str]:
    _refuse_form("--diff", options.form)
    before, chosen = read_plan(other), options.rows
    refuse_rules(before, "--diff")
    changes = diff(before, now)
    if chosen.groups or chosen.only:
        # A group may be gone, or a word be known to one of the two plans only.
        changes = changes.of(select((*now.rows, *before.rows), chosen.groups, chosen.only))
    if options.form == "json":
        return diff_document(changes)
    return diff_lines(changes, (str(other), str(path)), terminal.width, terminal.colour)


def _waves(options: ShowOptions, terminal: Terminal) -> Iterable[str]:
    if options.rows.groups or options.rows.only or options.other is not None:
        raise UsageError(
            "Several plans are added up as a whole: --group, --only and --diff are for one plan.", "Name one plan."
        )
    _refuse_form("Several plans", options.form)
    waves = [wave_of(path, read_plan(path)) for path in options.plans]
    for wave in waves:
        refuse_rules(wave.plan, "a sum of waves")
    known: dict[str, str] = {}
    for wave in waves:
        # Counted twice, its offsets would be counted twice in the sum.
        if wave.plan.fingerprint in known:
            raise UsageError(
                f"{wave.path} and {known[wave.plan.fingerprint]} are one plan, {wave.plan.short_fingerprint}.",
                "Name it once, the file that its journal lies beside.",
            )
        known[wave.plan.fingerprint] = wave.path
    if options.form == "json":
        return wave_document(waves)
    return wave_lines(waves, terminal.width, terminal.colour)


def _refuse_form(what: str, form: str) -> None:
    if form not in ("table", "json"):
        raise UsageError(f"{what}: there is no format {form} for that.", "Choose table or json.")
