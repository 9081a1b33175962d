"""The `show` command: one plan in five formats, what changed since another, or several waves added up."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from migrate.apply.waves import wave_of
from migrate.errors import UsageError
from migrate.plan.diff import diff
from migrate.plan.file import read_plan
from migrate.plan.plan import Plan
from migrate.show.diff import diff_document, diff_lines
from migrate.show.formats import render, select
from migrate.show.plan_export import kcg_companion, refuse_unprintable
from migrate.show.waves import wave_document, wave_lines


@dataclass(frozen=True, slots=True)
class ShowOptions:
    """What `show` was asked for; `width` and `colour` are those of the terminal."""

    form: str = "table"
    groups: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    other: Path | None = None
    width: int = 80
    colour: bool = False
    on_terminal: bool = False


def run_show(paths: Sequence[Path], options: ShowOptions) -> tuple[Iterable[str], str]:
    """Return the lines to print, made as they are taken, and what goes to stderr beside them.

    Raises `UsageError` for options that do not go together.
    """
    if len(paths) > 1:
        return _waves(paths, options), ""
    path, plan = paths[0], read_plan(paths[0])
    if options.form == "kcg" and options.on_terminal:
        refuse_unprintable(plan.rows)
    if options.other is not None:
        return _difference(plan, path, options.other, options), ""
    lines = render(
        plan, options.form, str(path), groups=options.groups, only=options.only, width=options.width,
        colour=options.colour,
    )  # fmt: skip
    if options.form != "kcg":
        return lines, ""
    return lines, kcg_companion(plan, str(path), select(plan.rows, options.groups, options.only))


def _difference(now: Plan, path: Path, other: Path, options: ShowOptions) -> Iterable[str]:
    _refuse_form("--diff", options.form)
    before = read_plan(other)
    found = diff(before, now)
    if options.groups or options.only:
        # A group may be gone, or a word be known to one of the two plans only.
        found = found.of(select((*now.rows, *before.rows), options.groups, options.only))
    if options.form == "json":
        return diff_document(found)
    return diff_lines(found, (str(other), str(path)), options.width, options.colour)


def _waves(paths: Sequence[Path], options: ShowOptions) -> Iterable[str]:
    if options.groups or options.only or options.other is not None:
        raise UsageError(
            "Several plans are added up as a whole: --group, --only and --diff are for one plan.", "Name one plan."
        )
    _refuse_form("Several plans", options.form)
    waves = [wave_of(path, read_plan(path)) for path in paths]
    known: dict[str, str] = {}
    for wave in waves:
        # Counted twice, its offsets would stand twice in the sum.
        if wave.plan.fingerprint in known:
            raise UsageError(
                f"{wave.path} and {known[wave.plan.fingerprint]} are one plan, {wave.plan.short_fingerprint}.",
                "Name it once, the file that its journal lies beside.",
            )
        known[wave.plan.fingerprint] = wave.path
    if options.form == "json":
        return wave_document(waves)
    return wave_lines(waves, options.width, options.colour)


def _refuse_form(what: str, form: str) -> None:
    if form not in ("table", "json"):
        raise UsageError(f"{what}: there is no format {form} for that.", "Choose table or json.")
