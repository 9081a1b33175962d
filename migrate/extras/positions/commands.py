"""The commands `positions plan`, `positions print`, `positions verify` and `positions sign`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from migrate.apply.signatures import names_of, signatures_beside
from migrate.checks.checklist import parse_waiver
from migrate.cli.choices import MatchingOptions
from migrate.cli.console import Terminal, print_in_utf8, print_lines, printed, say_beside
from migrate.cli.flows import reached_flow
from migrate.cli.options import (
    LogOptions,
    OnClusters,
    Seconds,
    argument,
    flag,
    option,
    refuse_password,
    repeated,
)
from migrate.cli.sign import signed
from migrate.clock import SystemClock
from migrate.errors import EXIT_DONE, EXIT_REFUSED, UsageError
from migrate.extras.positions import checks, forms, table, verify
from migrate.extras.positions.held import CheckpointAsked, PositionsAsked
from migrate.extras.positions.plan import PositionPlan, is_clean, plan_of, read, refuse_out, surveyed, write
from migrate.extras.positions.reader import HolderReader, refuse_suffix
from migrate.mm2.flow import Flow
from migrate.plan.plan import REQUIRED_SETTING, signatures_required, signed_so_far
from migrate.ports import Progress
from migrate.session.clusters import parse_spark_conf, starting_spark
from migrate.session.options import SessionOptions, SparkOptions
from migrate.session.plan import plan_session
from migrate.show.plan_table import Page
from migrate.survey.filters import Filters
from migrate.survey.policies import Policies, parse_untranslatable
from migrate.survey.survey import PlanRequest
from migrate.text import many, name, some
from migrate.whole_file import new_file

TABLE = "table"


@dataclass(frozen=True, kw_only=True)
class HolderOptions:
    """Where positions are kept, and what is known of who keeps them."""

    position_files: tuple[str, ...] = repeated(
        "Translate the positions in this file (holder,topic,partition,offset[,meaning]): a path or URL that ends in "
        ".csv, .jsonl or .parquet, read through Spark; repeatable.",
        name="--positions", metavar="FILE")  # fmt: skip
    spark_checkpoints: tuple[str, ...] = repeated(
        "Translate the positions in this checkpoint folder of a Structured Streaming query; repeatable.",
        name="--spark-checkpoint", metavar="NAME=URL")  # fmt: skip
    sinks: tuple[str, ...] = repeated(
        "The folder that a query writes to: does it remember batch numbers? Repeatable.",
        name="--sink", metavar="HOLDER=URL")  # fmt: skip
    stateful: tuple[str, ...] = repeated(
        "This holder keeps a state (sums, joins), so that nothing may be read twice; repeatable.",
        metavar="HOLDER")  # fmt: skip

    def asked(self) -> PositionsAsked:
        """Return what was asked; raises `UsageError` for nothing, a wrong pair, or a wrong suffix."""
        files = self.position_files
        for origin in files:
            refuse_password("--positions", origin)  # first: any other refusal shows the URL
            refuse_suffix(origin)
        if doubled := next((each for each in files if files.count(each) > 1), ""):
            raise UsageError(f"--positions {doubled} is given twice.", "Name each file once.")
        sinks = _pairs("--sink", self.sinks, "HOLDER=URL")
        checkpoints = checkpoints_of(self.spark_checkpoints)
        if not files and not checkpoints:
            raise UsageError("Which positions?", "Give --positions FILE or --spark-checkpoint NAME=URL.")
        return PositionsAsked(files, checkpoints, sinks, frozenset(self.stateful))


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
class PlannedPositions(OnClusters):
    """Which positions are planned, what decides over them, and where the file goes."""

    holders: HolderOptions = HolderOptions()
    out: Path = option(
        "File to write them to. Replaces a file of positions, and nothing else (exit 3).",
        default=Path("positions.json"), metavar="FILE")  # fmt: skip
    failback: bool = flag(
        "The way back: the jobs leave --target for --source. Topics are named as on --target.")  # fmt: skip
    settle: float = option(
        "Time between two looks at positions and log ends. Below 1 s the two count as one, which blocks.",
        default=15.0, type=Seconds(min=0), metavar="SECONDS")  # fmt: skip
    require_signatures: int = option(
        "Let `positions print` warn until N different names have signed the file.",
        default=0, type=click.IntRange(min=0), metavar="N")  # fmt: skip
    accept: tuple[str, ...] = repeated(
        "Turn that block into a warning. The file prints both names; docs/positions.md and docs/checks.md have all.",
        metavar="CHECK[:SUBJECT]")  # fmt: skip
    untranslatable: tuple[str, ...] = repeated(
        "What to do with positions that no rule can translate (default block). docs/translation.md has all reasons.",
        metavar="[REASON=]block|skip|earliest|latest")  # fmt: skip
    matching: MatchingOptions = MatchingOptions()
    spark: SparkOptions = SparkOptions()

    def policies(self) -> Policies:
        """Return what was decided; raises `UsageError` for a word that is unknown."""
        default, by_reason = parse_untranslatable(self.untranslatable)
        waivers = tuple(parse_waiver(text, checks.ALL) for text in self.accept)
        return Policies(waivers=waivers, untranslatable=default, untranslatable_by_reason=by_reason)

    def settings(self) -> dict[str, str]:
        """Return the choices as the header has them: text by option name, without what was left at nothing."""
        choices = {
            "sink": ", ".join(self.holders.sinks),
            "stateful": ", ".join(self.holders.stateful),
            "untranslatable": ", ".join(self.untranslatable),
            "settle": f"{self.settle:g}",
            "failback": "yes" if self.failback else "",
            "by": "timestamp" if self.matching.by_timestamp else "",
            "no-match": "yes" if self.matching.no_match else "",
            "match-limit": "" if self.matching.no_match else str(self.matching.match_limit),
            "max-fetch": str(self.matching.max_fetch or ""),
            REQUIRED_SETTING: str(self.require_signatures or ""),
        }
        return {name: text for name, text in choices.items() if text}


def plan(options: PlannedPositions) -> int:
    """Translate positions that jobs keep outside Kafka, check them, and write them to a file of their own.

    Changes nothing on any cluster, and sets no position: the job's own tools do, with what `positions print` prints.
    Exits 3 if a holder is blocked; the file is still written, for review.
    """
    flow = reached_flow(options.clusters)
    made = make_plan(options, flow.reversed() if options.failback else flow, options.log.progress())
    terminal = Terminal.here()
    page = Page(str(options.out), terminal.width, terminal.colour)
    return printed(table.lines(made, page, with_rows=False), EXIT_DONE if is_clean(made) else EXIT_REFUSED)


def make_plan(options: PlannedPositions, flow: Flow, progress: Progress) -> PositionPlan:
    """Read the positions and both clusters, decide, and write the file.

    Raises before anything is read if that cannot be written.
    """
    refuse_out(options.out)
    asked = options.holders.asked()
    request = PlanRequest(
        flow=flow,
        filters=Filters(),
        policies=options.policies(),
        settle_seconds=options.settle,
        settings=options.settings(),
        limits=options.matching.limits(),
    )
    session = SessionOptions(
        options.clusters.request_timeout, options.spark, no_match=options.matching.no_match, keeps_spark=True
    )
    with plan_session(flow, session) as clusters:
        reader = HolderReader(clusters.spark_session)
        survey, held = surveyed(request, asked, reader, clusters, SystemClock(), progress)
        clusters.end()
        progress.step(f"deciding {many(len(held.commits), 'position')}")
        made = plan_of(survey, held)
        progress.step(f"writing {options.out}")
        write(made, options.out)
        progress.step(f"ending Spark ({options.out} is written)")
    return made


@dataclass(frozen=True, kw_only=True)
class PrintedPositions:
    """The file whose positions are printed, and how."""

    file: Path = argument()
    holders: tuple[str, ...] = repeated("Only this holder; repeatable.", name="--holder", metavar="NAME")
    form: str = option(
        "What the job takes. csv, jsonl and kcg have every holder, the others are for one. table: all that was found, "
        "for a reviewer.",
        name="--format", default="csv", type=click.Choice([*forms.FORMATS_OF_POSITIONS, TABLE]))  # fmt: skip
    out: Path | None = option("A file to write the text to. What exists is refused (exit 3).", metavar="FILE")
    log: LogOptions = LogOptions()


def print_positions(options: PrintedPositions) -> int:
    """Print what each holder of positions outside Kafka is to be set to on the target, and what changes with it.

    Reads the file alone. No command sets these positions: the job's own tools do. A holder that is blocked is refused
    (exit 3). What has to be known beside the text goes to stderr, such as signatures that are missing.
    """
    made = read(options.file)
    names, settings = names_of(signatures_beside(options.file, made.fingerprint)), made.header.settings
    if len(names) < signatures_required(settings):
        so_far = signed_so_far(settings, names)
        say_beside(f"WARNING: not signed by enough different names: {so_far}. Do not set these yet.")
    if options.form == TABLE:
        if options.out is not None or options.holders:
            raise UsageError(
                "--format table shows the whole file, on stdout: --out and --holder do not go with it.",
                "Omit them, or choose another --format.",
            )
        terminal = Terminal.here()
        return printed(table.lines(made, Page(str(options.file), terminal.width, terminal.colour), with_rows=True))
    for unknown in (holder for holder in options.holders if holder not in made.holders()):
        raise UsageError(
            f"--holder {name(unknown)}: the file has no holder of that name.",
            f"Holders: {some(map(name, made.holders()), 5)}.",
        )
    holders = list(dict.fromkeys(options.holders or made.holders()))
    lines = list(forms.lines_of_form(made, options.form, holders))
    if options.out is None:
        print_in_utf8()
        print_lines(lines)
    else:
        with new_file(options.out) as file:
            file.writelines(f"{line}\n" for line in lines)
    for line in forms.beside(made, options.form, holders):
        say_beside(line)
    return EXIT_DONE


@dataclass(frozen=True, kw_only=True)
class VerifiedPositions:
    """The file whose positions are compared, and with which folders."""

    file: Path = argument()
    spark_checkpoints: tuple[str, ...] = repeated(
        "Read this checkpoint folder of a query on the target: does it stand where the plan says, or beyond? "
        "Repeatable.", name="--spark-checkpoint", metavar="NAME=URL", required=True)  # fmt: skip
    spark: SparkOptions = SparkOptions()
    log: LogOptions = LogOptions()


def verify_positions(options: VerifiedPositions) -> int:
    """Compare the checkpoint folders of queries on the target with the planned positions.

    Exits 1 if a position is behind or missing, if a query began beyond the plan, or if a folder cannot be read; 4 if
    that is not visible any more, or the plan gives a position no offset.
    """
    made = read(options.file)
    checkpoints = verify.asked_of(made, checkpoints_of(options.spark_checkpoints))
    parse_spark_conf(options.spark.spark_conf)  # wrong use is said before anything is read
    options.log.progress().step(f"reading {many(len(checkpoints), 'checkpoint')}")
    try:
        with starting_spark(options.spark) as spark:
            reads = list(verify.read_checkpoints(checkpoints, HolderReader(spark)))
    except Exception as error:  # a machine without Java, say
        reads = [verify.unread(asked, error) for asked in checkpoints]
    verified, terminal = verify.verify_positions(made, reads), Terminal.here()
    return printed(verify.verify_lines(made, verified, terminal.width, terminal.colour), verified.exit_code)


@dataclass(frozen=True, kw_only=True)
class SignedPositions:
    """Which file is signed, and by whom."""

    file: Path = argument()
    by: str = option("Who has reviewed it. A claim: nothing checks who you are.", metavar="NAME", required=True)
    note: str = option("The reviewer's comment.", default="", metavar="TEXT")
    log: LogOptions = LogOptions()


def sign(options: SignedPositions) -> int:
    """Sign a file of positions that you have reviewed: fingerprint, name and time go into a file next to it."""
    made = read(options.file)
    settings, what = made.header.settings, table.verdict(made)[0]
    return printed(signed(options.file, made.fingerprint, settings, options.by, options.note, what))
