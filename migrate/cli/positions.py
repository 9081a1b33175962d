"""Positions outside Kafka: the options of `plan` about them, and `positions`, which prints what holders are set to."""

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

import click

from migrate.cli.console import print_in_utf8, print_lines, say_beside
from migrate.cli.options import LogOptions, PathOrUrl, argument, flag, option, refuse_password, repeated
from migrate.errors import EXIT_DONE, Refused, UsageError
from migrate.holders.reader import refuse_suffix
from migrate.model import Row, Side
from migrate.plan.file import read_plan
from migrate.plan.plan import Plan, refuse_rules
from migrate.show.positions import (
    EVERY_PARTITION,
    FORMATS_OF_POSITIONS,
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
from migrate.survey.positions import CheckpointAsked, PositionsAsked
from migrate.text import is_url, many, name, some
from migrate.whole_file import new_file, reporting_unwritable

# File systems take 255; the ending, and the name that a file has until it is whole, need the rest.
MOST_NAME_BYTES = 230


@dataclass(frozen=True, kw_only=True)
class PositionOptions:
    """Positions that are kept outside Kafka, to be translated beside the groups' commits."""

    TITLE: ClassVar = "Positions outside Kafka"
    position_files: tuple[str, ...] = repeated(
        "Translate the positions in this file too (holder,topic,partition,offset[,meaning]): a path or URL that ends "
        "in .csv, .jsonl or .parquet, read through Spark; repeatable.",
        name="--positions", type=PathOrUrl(False), metavar="FILE")  # fmt: skip
    spark_checkpoints: tuple[str, ...] = repeated(
        "Translate the positions in this checkpoint folder of a Structured Streaming query; repeatable.",
        name="--spark-checkpoint", type=PathOrUrl(True), metavar="NAME=URL")  # fmt: skip
    sinks: tuple[str, ...] = repeated(
        "The folder that a query writes to: does it remember batch numbers? Repeatable.",
        name="--sink", type=PathOrUrl(True), metavar="HOLDER=URL")  # fmt: skip
    stateful: tuple[str, ...] = repeated(
        "This holder keeps a state (sums, joins), so that nothing may be read twice; repeatable.",
        metavar="HOLDER")  # fmt: skip
    no_groups: bool = flag("Leave all groups out: a plan of positions alone.")

    def asked(self, source_down: bool, names_groups: bool) -> PositionsAsked:
        """Return what was asked of positions; raises `UsageError` for a wrong pair, suffix or combination.

        `names_groups` where --group or --groups-file says which groups are meant.
        """
        files = self.position_files
        for origin in files:
            refuse_password("--positions", origin)  # first: any other refusal shows the URL
            refuse_suffix(origin)
        if doubled := next((each for each in files if files.count(each) > 1), ""):
            raise UsageError(f"--positions {doubled} is given twice.", "Name each file once.")
        sinks = _pairs("--sink", self.sinks, "HOLDER=URL")
        asked = PositionsAsked(files, checkpoints_of(self.spark_checkpoints), sinks, frozenset(self.stateful))
        if not asked and (asked.sinks or asked.stateful or self.no_groups):
            raise UsageError(
                "--sink, --stateful and --no-groups are about positions outside Kafka, and none are given.",
                "Add --positions FILE or --spark-checkpoint NAME=URL.",
            )
        if asked and source_down:
            raise UsageError(
                "--source-down and positions outside Kafka exclude each other: nothing on the target stands in for "
                "them.",
                "Omit one of them.",
            )
        if self.no_groups and names_groups:
            raise UsageError("--no-groups excludes --group and --groups-file.", "Omit one of them.")
        return asked


def checkpoints_of(given: Sequence[str]) -> tuple[CheckpointAsked, ...]:
    """Return the checkpoint folders that were named; raises `UsageError` for a wrong pair."""
    pairs = _pairs("--spark-checkpoint", given, "NAME=URL")
    return tuple(CheckpointAsked(holder, url) for holder, url in pairs.items())


def _pairs(option_name: str, given: Sequence[str], form: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in given:
        refuse_password(option_name, text)  # first: any other refusal shows the URL
        holder, equals, url = text.partition("=")
        if not equals or not holder.strip() or not url.strip() or not holder.isprintable():
            raise UsageError(f"{option_name} {text}: expected {form}.", "For example orders=s3a://jobs/orders")
        if holder in pairs:
            raise UsageError(f"{option_name} names {holder} twice.", "Name each holder once.")
        pairs[holder] = url.rstrip("/")
    return pairs


@dataclass(frozen=True, kw_only=True)
class PrintedPositions:
    """The positions of a plan to be printed, and how."""

    plan: Path = argument()
    holders: tuple[str, ...] = repeated(
        "Only holders that match in full; repeatable.", name="--holder", metavar="REGEX")  # fmt: skip
    form: str = option(
        "What the job takes. csv, jsonl and kcg have every holder; the others are for one each, or for several with "
        "--out FOLDER.", name="--format", default="csv", type=click.Choice(FORMATS_OF_POSITIONS))  # fmt: skip
    side: Side = option(
        "Where they are to be on the target, or where they were on the source, to compare.",
        default=Side.TARGET)  # fmt: skip
    out: Path | None = option(
        "A file; a folder for several holders, with a file for each, and for spark-checkpoint. What exists is refused "
        "(exit 3).", metavar="FILE|FOLDER")  # fmt: skip
    log: LogOptions = LogOptions()


def positions(options: PrintedPositions) -> int:
    """Print what each holder of positions outside Kafka is to be set to on the target, and what changes with it.

    Reads the plan alone. No command sets these positions: the job's own tools do. A holder that the plan blocks is
    refused (exit 3). What has to be known beside the text goes to stderr.
    """
    form, side, out = options.form, options.side, options.out
    made = read_plan(options.plan)
    refuse_rules(made, "positions")
    chosen = _matching(made, options.holders)
    rows = selected(made, chosen)
    held = by_holder(rows, side, chosen or made.holders())
    if form == SPARK_CHECKPOINT:
        _write_checkpoints(made, rows, [one.holder for one in held], side, out)
    else:
        _print(made, rows, held, form, side, out)
    for line in beside_the_source(made) if side is Side.SOURCE else beside(made, form, rows, chosen):
        say_beside(line)
    return EXIT_DONE


def _matching(plan: Plan, patterns: Sequence[str]) -> list[str]:
    chosen: dict[str, None] = {}
    for text in patterns:
        try:
            found = [holder for holder in plan.holders() if re.fullmatch(text, holder)]
        except re.error as error:
            raise UsageError(f"--holder {name(text)} is not a regular expression: {error}.", "Quote it.") from error
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
