"""What `positions` does: what the holders in a plan are to be set to, in the form that each takes."""

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from migrate.cli.console import print_lines, say_beside
from migrate.cli.utf8 import print_in_utf8
from migrate.errors import Refused, UsageError
from migrate.inventory.new_file import new_file
from migrate.model import Row, Side
from migrate.plan.file import read_plan
from migrate.plan.plan import Plan, refuse_standing
from migrate.show.positions import (
    EVERY_PARTITION,
    OF_ONE_HOLDER,
    SPARK_CHECKPOINT,
    HolderPositions,
    beside,
    beside_the_source,
    by_holder,
    csv_of_positions,
    json_lines_of_positions,
    kcg,
    on_every_partition,
    rewritten_batch,
    selected,
)
from migrate.text import is_url, many, name, some
from migrate.whole_file import reporting_unwritable

# File systems take 255; the ending, and the name that a file has until it is whole, need the rest.
MOST_NAME_BYTES = 230


def run_positions(path: Path, holders: Sequence[str], form: str, side: Side, out: Path | None) -> None:
    """Print or write what the chosen holders of a plan are to be set to.

    `holders` are regular expressions, all holders where there are none; `form` is one of `FORMATS_OF_POSITIONS`. Raises
    `Refused` for a holder that the plan blocks and for an `out` that exists, `UsageError` for words that do not fit.
    """
    made = read_plan(path)
    refuse_standing(made, "positions")
    chosen = _matching(made, holders)
    rows = selected(made, chosen)
    held = by_holder(rows, side, chosen or made.holders())
    if form == SPARK_CHECKPOINT:
        _write_checkpoints(made, rows, [one.holder for one in held], side, out)
    else:
        _print(made, rows, held, form, side, out)
    for line in beside_the_source(made) if side is Side.SOURCE else beside(made, form, rows, chosen):
        say_beside(line)


def _matching(plan: Plan, patterns: Sequence[str]) -> list[str]:
    chosen: dict[str, None] = {}
    for text in patterns:
        try:
            found = [holder for holder in plan.holders() if re.fullmatch(text, holder)]
        except re.error as error:
            raise UsageError(f"--holder {name(text)} is no regular expression: {error}.", "Quote it.") from error
        if not found:
            raise UsageError(
                f"--holder {name(text)} matches none of this plan's {many(len(plan.holders()), 'holder')}.",
                f"Holders: {some(map(name, plan.holders()), 5) or 'none'}.",
            )
        chosen |= dict.fromkeys(found)
    return [holder for holder in plan.holders() if holder in chosen]


def _print(
    plan: Plan, rows: Sequence[Row], held: list[HolderPositions], form: str, side: Side, out: Path | None
) -> None:
    if form in EVERY_PARTITION and side is Side.TARGET:
        held = [on_every_partition(plan, one) for one in held]
    if form in OF_ONE_HOLDER and len(held) > 1:
        if out is None:
            raise UsageError(
                f"--format {form} is for one holder, and these are {len(held)}.",
                f"Name one with --holder ({some((name(h.holder) for h in held), 5)}), or give a folder with --out.",
            )
        texts = {f"{_file_name(one.holder)}.txt": OF_ONE_HOLDER[form](one) for one in held}
        _write_folder(out, {Path(path): "".join(f"{line}\n" for line in lines) for path, lines in texts.items()})
        return
    if form in OF_ONE_HOLDER:
        lines = list(OF_ONE_HOLDER[form](held[0]))
    elif form == "kcg":
        lines = [line for one in held for line in kcg(one)]
    else:
        lines = list((csv_of_positions if form == "csv" else json_lines_of_positions)(rows, side))
    if out is None:
        print_in_utf8()
        print_lines(lines)
        return
    with new_file(out) as file:
        file.writelines(f"{line}\n" for line in lines)


def _write_checkpoints(plan: Plan, rows: Sequence[Row], holders: Sequence[str], side: Side, out: Path | None) -> None:
    if out is None or side is not Side.TARGET:
        raise UsageError(
            f"--format {SPARK_CHECKPOINT} writes files for the target: it needs --out FOLDER, and no --side.",
            "Name a folder that does not exist yet; the query's own folder is never written.",
        )
    batches = {holder: rewritten_batch(plan, holder, [r for r in rows if r.group == holder]) for holder in holders}
    paths = {
        holder: Path(_file_name(holder) if len(batches) > 1 else "", "offsets", str(number))
        for holder, (number, _) in batches.items()
    }
    _write_folder(out, {paths[holder]: content for holder, (_, content) in batches.items()})
    for holder, path in paths.items():
        say_beside(f"{name(holder)}: wrote {out / path}")


def _write_folder(out: Path, texts: Mapping[Path, str]) -> None:
    """Write texts into a new folder, each at its path in it; where one cannot be written, the folder goes away again.

    Half of it would be taken for all, and the same command would be refused because it exists.
    """
    _make_folder(out)
    try:
        for path, text in texts.items():
            with reporting_unwritable(out / path, f"{out / path} cannot be written"):
                (out / path).parent.mkdir(parents=True, exist_ok=True)
            with new_file(out / path) as file:
                file.write(text)
    except BaseException:
        shutil.rmtree(out, ignore_errors=True)  # it was not there before: nobody else's files are in it
        raise


def _make_folder(out: Path) -> None:
    if is_url(str(out)):
        raise UsageError(f"--out {out}: expected a folder of this machine.", "Copy what is written there afterwards.")
    try:
        out.mkdir()
    except FileExistsError:
        # Whatever is there may be the folder of a query.
        raise Refused(f"{out} exists: nothing is written into it.", "Choose another --out, or move it away.") from None
    except OSError as error:
        raise UsageError(f"{out} cannot be made: {error.strerror}.", "Choose another --out.") from error


def _file_name(holder: str) -> str:
    quoted = quote(holder, safe=" ").replace(".", "%2E") if holder.startswith(".") else quote(holder, safe=" ")
    if len(quoted) > MOST_NAME_BYTES:
        raise Refused(
            f"The name of the holder {name(holder)[:60]}... is too long for a file: {len(quoted)} bytes as it would be "
            f"written, and at most {MOST_NAME_BYTES} are possible.",
            "Name this holder alone with --holder: then no file is called after it.",
        )
    return quoted
