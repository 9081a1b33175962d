"""`report`: reads a plan and the journal beside it, writes one page. Wiring, and no decisions."""

from dataclasses import dataclass
from pathlib import Path

from migrate.apply.journal import history_beside, journal_to_read
from migrate.apply.signatures import signatures_beside
from migrate.apply.verify import read_verification
from migrate.cli.console import printed
from migrate.cli.flows import clusters_of
from migrate.cli.options import ClusterOptions, LogOptions, argument, option
from migrate.errors import MigrateError, Refused
from migrate.mm2.connect_worker import connect_worker
from migrate.plan.companions import is_no_ordinary_file
from migrate.plan.file import read_plan
from migrate.plan.plan import refuse_rules
from migrate.show.report_outcome import aftermath, verified_of
from migrate.show.report_page import MARK
from migrate.show.report_page import report as report_of
from migrate.text import bytes_text, many, name
from migrate.whole_file import replacing, reporting_unwritable


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """What the page is made of, and where it goes."""

    plan: Path = argument()
    out: Path = option(
        "File to write the page to; replaces an older report.",
        default=Path("report.html"), metavar="FILE")  # fmt: skip
    verification: Path | None = option("Output of `verify --format json`, to be shown too.", metavar="FILE")
    clusters: ClusterOptions = ClusterOptions()
    log: LogOptions = LogOptions()


def report(options: ReportOptions) -> int:
    """Write a plan as one self-contained HTML page: to read, to print, to send to the people who approve.

    After an apply the same page shows what was done, from the journal next to the plan. The cluster options go into
    the commands that the page offers for copying; no cluster is contacted.
    """
    given = options.clusters
    if given.flow is not None:
        clusters_of(given)  # is there such a flow?
    if given.connect_url is not None:
        connect_worker(given.connect_url)  # refuses a login, which the page would show to whoever it is sent to
    return printed(run_report(options.plan, options.out, options.verification, given.words()))


def run_report(path: Path, out: Path, verification: Path | None, options: tuple[str, ...]) -> list[str]:
    """Write the page of the plan at `path` to `out`; return the lines to print.

    Raises `Refused` where `out` is anything but an older report, and what reading the plan and its journal raises.
    """
    refuse_overwrite(out)
    plan = read_plan(path)
    refuse_rules(plan, "report")
    journal = journal_to_read(path, plan.fingerprint)  # also one that was written under another file name
    state = history_beside(path, plan.fingerprint)
    verified = None if verification is None else verified_of(read_verification(verification), str(verification), plan)
    after = aftermath(plan, state, verified)
    html, data = report_of(plan, str(path), after, options, signatures_beside(path, plan.fingerprint))
    size = write_page(html, out)
    lines = [
        f"Wrote {name(str(out))}: {bytes_text(size)}, {many(len(plan.rows), 'row')}, plan {plan.short_fingerprint}."
    ]
    if journal.exists():
        lines.append(f"With what was done, from {name(journal.name)}.")
    if data.rows_left_out:
        rows, groups = many(data.rows_left_out, "row"), many(data.groups_left_out, "group")
        lines.append(f"{rows} of {groups} are counted in it but not listed: {name(str(path))} has them.")
    return lines


def refuse_overwrite(out: Path) -> None:
    """Raise `Refused` if `out` holds anything but a report: a slip must not cost a plan or its journal."""
    try:
        if is_no_ordinary_file(out):
            raise Refused(f"{out} is not a regular file; refusing to write a report there.", "Choose another --out.")
        with out.open("rb") as file:
            beginning = file.read(len(MARK))
    except FileNotFoundError:
        return
    except OSError as error:
        raise MigrateError(f"{out} cannot be written: {error.strerror}.", "Choose another --out.") from None
    if beginning != MARK.encode():
        raise Refused(
            f"{out} exists and is not a report of this tool; refusing to overwrite it.", "Choose another --out."
        )


def write_page(html: str, out: Path) -> int:
    """Write the page, mode 0600, whole or not at all; return its bytes."""
    content = html.encode("utf-8")
    with reporting_unwritable(out, f"The report cannot be written to {out}"), replacing(out) as file:
        file.write(content)
    return len(content)
