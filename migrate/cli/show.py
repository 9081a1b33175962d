"""The `show` command: one plan in five formats, what changed since another, or several waves added up."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from migrate.apply.waves import wave_of
from migrate.errors import UsageError
from migrate.plan.diff import diff
from migrate.plan.file import read_plan
from migrate.plan.plan import STANDING, Plan, refuse_standing
from migrate.show.diff import diff_document, diff_lines
from migrate.show.formats import FORMATS, select
from migrate.show.mandate import mandate_lines
from migrate.show.plan_export import kcg_companion, refuse_unprintable
from migrate.show.plan_table import Page
from migrate.show.waves import wave_document, wave_lines


def run_show(paths: Sequence[Path], **options: Any) -> tuple[Iterable[str], str]:
    """Return the lines to print, made as they are taken, and what goes to stderr beside them.

    Raises `UsageError` for options that do not go together.
    """
    if len(paths) > 1:
        return _waves(paths, options), ""
    path, plan = paths[0], read_plan(paths[0])
    if plan.header.kind == STANDING and options["form"] == "table" and options["other"] is None:
        return mandate_lines(plan, str(path), options["width"], options["colour"]), ""
    if options["form"] != "json":
        refuse_standing(plan, "this")
    if options["form"] == "kcg" and options["on_terminal"]:
        refuse_unprintable(plan.rows)
    if options["other"] is not None:
        return _difference(plan, path, options), ""
    rows = select(plan.rows, options["groups"], options["only"])
    lines = FORMATS[options["form"]](plan, rows, Page(str(path), options["width"], options["colour"]))
    return lines, kcg_companion(plan, str(path), rows) if options["form"] == "kcg" else ""


def _difference(now: Plan, path: Path, options: dict[str, Any]) -> Iterable[str]:
    _refuse_form("--diff", options["form"])
    other = options["other"]
    before = read_plan(other)
    refuse_standing(before, "--diff")
    changes = diff(before, now)
    if options["groups"] or options["only"]:
        # A group may be gone, or a word be known to one of the two plans only.
        changes = changes.of(select((*now.rows, *before.rows), options["groups"], options["only"]))
    if options["form"] == "json":
        return diff_document(changes)
    return diff_lines(changes, (str(other), str(path)), options["width"], options["colour"])


def _waves(paths: Sequence[Path], options: dict[str, Any]) -> Iterable[str]:
    if options["groups"] or options["only"] or options["other"] is not None:
        raise UsageError(
            "Several plans are added up as a whole: --group, --only and --diff are for one plan.", "Name one plan."
        )
    _refuse_form("Several plans", options["form"])
    waves = [wave_of(path, read_plan(path)) for path in paths]
    for wave in waves:
        refuse_standing(wave.plan, "a sum of waves")
    known: dict[str, str] = {}
    for wave in waves:
        # Counted twice, its offsets would be counted twice in the sum.
        if wave.plan.fingerprint in known:
            raise UsageError(
                f"{wave.path} and {known[wave.plan.fingerprint]} are one plan, {wave.plan.short_fingerprint}.",
                "Name it once, the file that its journal lies beside.",
            )
        known[wave.plan.fingerprint] = wave.path
    if options["form"] == "json":
        return wave_document(waves)
    return wave_lines(waves, options["width"], options["colour"])


def _refuse_form(what: str, form: str) -> None:
    if form not in ("table", "json"):
        raise UsageError(f"{what}: there is no format {form} for that.", "Choose table or json.")
