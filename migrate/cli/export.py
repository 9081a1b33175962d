"""What `groups export` does: pin the offsets topic, read it through Spark, write one file. No cluster is changed."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from migrate.cli.options import filters_of
from migrate.cli.wiring import DAEMON, Endpoint, endpoint_of, parse_spark_conf
from migrate.errors import EXIT_DONE, EXIT_FAILED, Refused, UsageError
from migrate.inventory.new_file import new_file, refuse_existing
from migrate.mm2.flow import Flow
from migrate.mm2.topics import MOST_HELD
from migrate.model import Failure
from migrate.progress import LineProgress
from migrate.show.offsets_export import announcement, summary_lines
from migrate.spark.background import SparkPurpose, Wishes, background_spark
from migrate.survey.offsets_export import ExportKinds, ExportRequest, OffsetsPin, named_groups, pin_offsets_topic
from migrate.text import bytes_text

if TYPE_CHECKING:
    from migrate.spark.consumer_offsets import ChosenRecords

PARQUET = "parquet"
Written = Callable[["ChosenRecords"], int]


def run_export(flow: Flow, progress: LineProgress, **options: Any) -> int:
    """Write what was asked for; return 1 if a group that was asked for by name has no record."""
    from migrate.spark.consumer_offsets import export_offsets, offsets_session

    request = request_of(options)
    out, form = options["out"], options["form"]
    if form != PARQUET:
        refuse_url(out)
        refuse_existing(Path(out))
    of = endpoint_of(flow, options)
    wishes = Wishes(DAEMON, lambda: None, of.java.secrets, lambda: None)
    with background_spark(options["master"], parse_spark_conf(options["spark_conf"]), wishes) as spark:
        pin, retention = _asked(of, request, progress)
        _refuse_beyond(pin, options["max_fetch"])
        wishes.settle(SparkPurpose(is_small=pin.offsets <= MOST_HELD))
        session = offsets_session(spark)
        retention_ms = None if isinstance(retention, Failure) else retention
        with _sink(session, out, form) as write:
            progress.step(announcement(pin))
            exported = export_offsets(session, of.java, pin, request, retention_ms, write)
    why = retention if isinstance(retention, Failure) and _needs_retention(request) else None
    for line in summary_lines(exported, pin, out, why):
        progress.say(line)
    return EXIT_FAILED if exported.unknown else EXIT_DONE


def request_of(options: Mapping[str, Any]) -> ExportRequest:
    """Return what the options ask for; raises `UsageError` where they contradict each other."""
    since_ms, until_ms = time_of("--since", options["since"]), time_of("--until", options["until"])
    if since_ms is not None and until_ms is not None and since_ms >= until_ms:
        raise UsageError("--since is not before --until.", "No record lies between them: exchange them.")
    kinds, history = ExportKinds(options["kinds"]), not options["latest"]
    return ExportRequest(filters_of(options), kinds, history, options["tombstones"], since_ms, until_ms)


def time_of(option: str, text: str | None) -> int | None:
    """Return a moment in ms since 1970: a whole number is that already, all else ISO 8601 with its zone."""
    if text is None:
        return None
    if text.isdecimal():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise UsageError(
            f"{option} {text!r} is no moment.",
            "Give a date and a time with its zone, such as 2026-11-23T22:00:00Z or ...+01:00, or ms since 1970.",
        )
    return round(moment.timestamp() * 1000)


def refuse_url(out: str) -> None:
    """Raise `UsageError` for a URL, where one file of this machine is written."""
    if "://" in out:
        raise UsageError(f"--out {out} is a URL.", "JSON lines and CSV are one file here; use --format parquet.")


def _asked(of: Endpoint, request: ExportRequest, progress: LineProgress) -> tuple[OffsetsPin, int | Failure]:
    """Return the pin, and how long the brokers keep offsets."""
    admin = of.admin()
    try:
        progress.step(f"reaching {admin.alias}")
        admin.facts()
        pin = pin_offsets_topic(admin, named_groups(request.filters))
    finally:
        admin.close()
    if not _needs_retention(request):
        return pin, Failure("NOT_ASKED", "nobody asked")
    settings = of.group_facts().settings()
    return pin, settings if isinstance(settings, Failure) else settings.retention_ms


def _needs_retention(request: ExportRequest) -> bool:
    return not request.history and request.kinds is not ExportKinds.GROUPS


def _refuse_beyond(pin: OffsetsPin, max_fetch: int | None) -> None:
    if max_fetch is not None and pin.fetched_bytes > max_fetch:
        raise Refused(
            f"About {bytes_text(pin.fetched_bytes)} of {pin.alias} would be fetched, and --max-fetch allows "
            f"{bytes_text(max_fetch)}.",
            "Name groups with --group or --groups-file, whose partitions alone are read, or allow more.",
        )


@contextmanager
def _sink(session: Any, out: str, form: str) -> Iterator[Written]:
    """Yield what writes the records; what it has written last gets its name in the end."""
    if form == PARQUET:
        from migrate.spark.table_folder import TableFolder

        folder = TableFolder(session, out)
        folder.refuse_existing()
        try:
            yield lambda chosen: folder.write(chosen.table())
            folder.keep()
        finally:
            folder.discard()
        return
    with new_file(Path(out)) as file:
        yield lambda chosen: _write_lines(chosen, form, file)


def _write_lines(chosen: "ChosenRecords", form: str, file: IO[str]) -> int:
    """Write from the file's beginning; return how many records."""
    file.seek(0)
    file.truncate()
    lines, count = (chosen.csv_lines(), -1) if form == "csv" else (chosen.json_lines(), 0)
    for line in lines:
        file.write(line + "\n")
        count += 1
    return count
