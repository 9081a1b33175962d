"""What `groups export` does: pin the offsets topic, read it through Spark, write it. What is read is not changed."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from migrate.cli.export_sinks import ExportSink, sink_of
from migrate.cli.options import filters_of
from migrate.clock import LATEST_DATE_MS, Clock, SystemClock, iso
from migrate.errors import EXIT_DONE, EXIT_FAILED, UsageError
from migrate.mm2.flow import Flow
from migrate.mm2.topics import MOST_HELD
from migrate.model import Failure, LogRange
from migrate.ports import Progress
from migrate.progress import LineProgress
from migrate.session.clusters import DAEMON, Endpoint, endpoint_of, parse_spark_conf
from migrate.show.offsets_export import announcement, missing_lines, summary_lines
from migrate.spark.background import BackgroundSpark, SparkPurpose, Wishes, background_spark
from migrate.survey.cluster import ClusterAdmin
from migrate.survey.offsets_export import (
    Exported,
    ExportKinds,
    ExportRequest,
    OffsetsPin,
    named_groups,
    past_open_transactions,
    pin_offsets_topic,
    refuse_beyond,
)
from migrate.text import many

# Of 1973. A smaller number is one of seconds (until the year 5138), a year, or a date without its hyphens.
LEAST_MS = 10**11
_COMPACT_DATES = {12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}


def run_export(flow: Flow, progress: LineProgress, **options: Any) -> int:
    """Write what was asked for; return 1 if not all of it could be given, with a line for each thing that is not."""
    request = request_of(options)
    sink = sink_of(flow, options)
    sink.refuse()
    of = endpoint_of(flow, options)
    wishes = Wishes(DAEMON, lambda: None, of.java.secrets | sink.secrets, lambda: None)
    with (
        background_spark(options["master"], parse_spark_conf(options["spark_conf"]), wishes) as spark,
        closing(of.admin()) as admin,
    ):
        progress.step(f"reaching {admin.alias}")
        admin.facts()
        sink.prove(progress, admin)
        reading = _Reading(admin, request, options["max_fetch"], progress)
        small = reading.pin().offsets <= MOST_HELD
        wishes.settle(SparkPurpose(is_small=small))
        retention = _retention(of, request)
        exported = reading.exported(spark, of, sink, None if isinstance(retention, Failure) else retention)
    why = retention if isinstance(retention, Failure) and _needs_retention(request) else None
    for line in (*summary_lines(exported, reading.pinned, sink.name, why), *sink.lines(exported.lines)):
        progress.say(line)
    missing = [*missing_lines(exported, reading.pinned), *sink.missing_lines(exported.lines)]
    for line in missing:
        progress.say(line)
    return EXIT_FAILED if missing else EXIT_DONE


@dataclass
class _Reading:
    """The topic as it was pinned last; it is pinned anew where compaction was faster than the reading."""

    admin: ClusterAdmin
    request: ExportRequest
    max_fetch: int | None
    progress: LineProgress
    fetched_bytes: int = 0

    def pin(self) -> OffsetsPin:
        """Pin what is there now; raises `Refused` if that, and what was read before, is more than may be fetched."""
        self.pinned = pin_offsets_topic(self.admin, named_groups(self.request.filters))
        self.fetched_bytes += self.pinned.fetched_bytes
        refuse_beyond(self.max_fetch, self.fetched_bytes, self.pinned.alias)
        return self.pinned

    def exported(self, spark: BackgroundSpark, of: Endpoint, sink: ExportSink, retention_ms: int | None) -> Exported:
        """Read what is pinned, and have it written."""
        from migrate.spark.consumer_offsets import export_offsets, offsets_session

        # While Spark starts.
        self._wait()
        session = offsets_session(spark, self.pinned.offsets <= MOST_HELD)
        with sink.opened(session) as write:
            self.progress.step(announcement(self.pinned))
            return export_offsets(session, of.java, self.pinned, self.request, retention_ms, write, self._renewed)

    def _renewed(self) -> Mapping[int, LogRange]:
        self.progress.say("The topic was compacted while it was read: reading it again.")
        self.pin()
        self._wait()
        self.progress.step(announcement(self.pinned))
        return self.pinned.logs

    def _wait(self) -> None:
        self.pinned = waited_for(self.admin, self.pinned, self.progress, SystemClock())


def waited_for(admin: ClusterAdmin, pin: OffsetsPin, progress: Progress, clock: Clock) -> OffsetsPin:
    """Return a pin after a little patience with the transactions that are open at it, which is said."""
    if pin.open_ends:
        progress.step(f"waiting for transactions that are open in {many(len(pin.open_ends), 'partition')}")
    return past_open_transactions(admin, pin, clock)


def request_of(options: Mapping[str, Any]) -> ExportRequest:
    """Return what the options ask for; raises `UsageError` where they contradict each other."""
    since_ms, until_ms = period_of(options, "record")
    kinds, history = ExportKinds(options["kinds"]), not options["latest"]
    return ExportRequest(filters_of(options), kinds, history, options["tombstones"], since_ms, until_ms)


def period_of(options: Mapping[str, Any], what: str) -> tuple[int | None, int | None]:
    """Return --since and --until in ms, None where not given; raises `UsageError` if no `what` lies between them."""
    since_ms, until_ms = time_of("--since", options["since"]), time_of("--until", options["until"])
    if since_ms is not None and until_ms is not None and since_ms >= until_ms:
        raise UsageError("--since is not before --until.", f"No {what} lies between them: exchange them.")
    return since_ms, until_ms


def time_of(option: str, text: str | None) -> int | None:
    """Return a moment in ms since 1970: a whole number is that already, all else ISO 8601 with its zone.

    Raises `UsageError` for what is none, and for a number that is hardly meant as ms: below `LEAST_MS`, or a date.
    """
    if text is None:
        return None
    digits = text.lstrip("0") or "0"
    # The length first: Python does not read thousands of digits.
    if text.isdecimal() and len(digits) <= len(str(LATEST_DATE_MS)) and int(digits) <= LATEST_DATE_MS:
        return _ms(option, int(digits))
    try:
        moment = None if text.isdecimal() else datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise UsageError(
            f"{option} {text[:60]!r} is no moment.",
            "Give a date and a time with its zone, such as 2026-11-23T22:00:00Z or ...+01:00, or ms since 1970.",
        )
    return round(moment.timestamp() * 1000)


def _ms(option: str, number: int) -> int:
    if number < LEAST_MS:
        raise UsageError(
            f"{option} {number} is a small number: as ms since 1970 that is {iso(number)}.",
            "Give ms since 1970 (seconds and three digits more), or a date and a time with its zone, such as "
            "2026-11-23T22:00:00Z.",
        )
    if _reads_as_date(str(number)):
        raise UsageError(
            f"{option} {number} looks like a date without a zone: as ms since 1970 it is {iso(number)}.",
            "Give a date and a time with its zone, such as 2026-11-23T22:00:00Z.",
        )
    return number


def _reads_as_date(digits: str) -> bool:
    """True for a date and time of the years 1900 to 2099 without separators, such as 202611232200.

    Read as ms since 1970, these digits are a time before Kafka, or one in centuries.
    """
    form = _COMPACT_DATES.get(len(digits))
    if form is None or digits[:2] not in ("19", "20"):
        return False
    try:
        datetime.strptime(digits, form)
    except ValueError:
        return False
    return True


def _retention(of: Endpoint, request: ExportRequest) -> int | Failure:
    """Return how long the brokers keep offsets."""
    if not _needs_retention(request):
        return Failure("NOT_ASKED", "nobody asked")
    settings = of.admin().broker_settings()
    return settings if isinstance(settings, Failure) else settings.retention_ms


def _needs_retention(request: ExportRequest) -> bool:
    return not request.history and request.kinds is not ExportKinds.GROUPS
