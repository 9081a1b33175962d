"""The `audit report` command: what the last run found, as one page that loads nothing."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from migrate.cli.console import printed
from migrate.cli.options import LogOptions, argument, option
from migrate.cli.report import refuse_overwrite, write_page
from migrate.clock import iso, minute
from migrate.extras.audit.state import last_result, named_lines
from migrate.extras.audit.text import Document, compared, headline, lacked, order_line, others_of, plan_line, since_line
from migrate.extras.audit.verdict import Category, Verdict
from migrate.show.report_page import page_of, share
from migrate.text import bytes_text, name

BARS = 24
_KINDS = {Verdict.COMPLETE: "good", Verdict.INCOMPLETE: "bad", Verdict.NOT_PROVEN: "warn"}
# The style's names for a cell of these colours.
_WORDS = {Verdict.COMPLETE: "word SET", Verdict.INCOMPLETE: "word BLOCK", Verdict.NOT_PROVEN: "word"}


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """Which audit the page is made of, and where it goes."""

    state: Path = argument("STATE")
    out: Path = option(
        "File to write the page to; replaces an older report.",
        default=Path("audit.html"), metavar="FILE")  # fmt: skip
    log: LogOptions = LogOptions()


def report(options: ReportOptions) -> int:
    """Write what the last run in a folder found as one self-contained HTML page; asks no cluster.

    Topics stand by verdict, what is missing by time. For whoever asks, before A is given up, whether all is on B.
    """
    result = last_result(options.state)
    refuse_overwrite(options.out)
    size = write_page(audit_page(result, missing_by_time(result, named_lines(options.state))), options.out)
    return printed([f"Wrote {name(str(options.out))}: {bytes_text(size)}. {headline(result)}"])


def audit_page(result: Document, missing: Mapping[str, Mapping[int, int]]) -> str:
    """Return the page of a run's document; `missing` is what `missing_by_time` makes of it."""
    order = [Verdict.INCOMPLETE, Verdict.NOT_PROVEN, Verdict.COMPLETE]
    topics = sorted(result["topics"], key=lambda topic: (order.index(topic["verdict"]), topic["topic"]))
    return page_of(
        files("migrate.extras.audit").joinpath("report.html").read_text("utf-8"),
        "",
        f"Audit {result['source']} to {result['target']}",
        result=result,
        headline=headline(result),
        as_of=iso(result["time_ms"]),
        topics=topics,
        kinds=_KINDS,
        words=_WORDS,
        missing=missing,
        most=max((n for bars in missing.values() for n in bars.values()), default=1),
        categories=Category,
        others=others_of,
        compared=compared,
        lacked=lacked,
        plan=result.get("plan"),
        plan_line=plan_line,
        since=since_line(result),
        order=order_line(result),
        shown=name,
        iso=iso,
        minute=minute,
        share=share,
    )


def missing_by_time(result: Document, named: Iterable[Mapping[str, Any]]) -> dict[str, dict[int, int]]:
    """Return how many records of each topic are missing, by the time (ms) at which each of at most `BARS` spans begins.

    Spans without a missing record are left out.
    """
    times = {topic["topic"]: topic["missing_times_ms"] for topic in result["topics"] if topic["missing_times_ms"]}
    counts: dict[str, Counter[int]] = {topic: Counter() for topic in times}
    for each in named:
        if each["category"] == Category.MISSING and each["topic"] in times:
            low, high = times[each["topic"]]
            width = (high - low) // BARS + 1
            counts[each["topic"]][low + (each["time_ms"] - low) // width * width] += 1
    return {topic: dict(sorted(bars.items())) for topic, bars in counts.items()}
