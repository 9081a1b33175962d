"""A plan in any of its formats; for other programs as JSON, CSV, and what kafka-consumer-groups reads. Pure.

JSON is ASCII, so that no name can do anything to a terminal. CSV is quoted as RFC 4180 says, its lines end with a line
feed; the spreadsheet form has the column names of Aiven's MM2 offset-sync inspector where they mean the same, then
ours.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from operator import attrgetter
from typing import Any

from migrate.errors import UsageError
from migrate.model import Decision, Grade, Row, lag
from migrate.plan.plan import Header, Plan, signatures_required
from migrate.plan.totals import Totals, totals
from migrate.row_table import row_document
from migrate.show.aftermath import Beside
from migrate.show.lines import wrapped
from migrate.show.plan_table import Page, table, verdicts
from migrate.show.table import Column, Table, Value, csv_line, document_lines, fields_of
from migrate.text import many, name, safe, shell_word

# Fields whose column has their own name.
OWN_FIELDS = (
    "method", "grade", "reason", "rereads_at_most", "rereads_estimate", "checkpoint_source_offset",
    "checkpoint_target_offset", "lower_kind", "lower_source_offset", "lower_target_offset", "upper_source_offset",
    "upper_target_offset", "equality", "why", "missing_on_target", "source_metadata",
)  # fmt: skip


def csv_lines(plan: Plan, rows: Sequence[Row]) -> Iterator[str]:
    """Return a heading and a line per row. Absent numbers are empty cells.

    Text that a spreadsheet would run as a formula gets a leading apostrophe, and control characters are
    escaped: the exact names are in the JSON forms.
    """
    columns = [Column(None, value, key=heading) for heading, value in _columns(plan.header).items()]
    return Table(columns, rows).csv()


def kcg_lines(rows: Iterable[Row]) -> Iterator[str]:
    """Yield `group,topic,partition,offset` for each `set` row, by the target's names, without a heading.

    What `kafka-consumer-groups --reset-offsets --from-file` reads (KIP-122, KIP-379). Names are exact; rows of a
    group with a line feed in its name are left out, for that tool cuts the file at every one (Kafka's OffsetsUtils).
    """
    for row in rows:
        if row.decision is Decision.SET and "\n" not in row.group_on_target:
            yield csv_line((row.group_on_target, row.target_topic, row.partition, row.target_offset))


def refuse_unprintable(rows: Iterable[Row]) -> None:
    """Raise `UsageError` if a name holds what a terminal would obey: that form has names exactly, unescaped."""
    for row in rows:
        if row.decision is Decision.SET and not row.group_on_target.isprintable():
            raise UsageError(
                f"The name of group {safe(row.group_on_target)} holds control characters, which this form shows "
                "as they are.",
                "Send the output to a file: mm2-migrate show PLAN --format kcg > PLAN.csv",
            )


def kcg_companion(plan: Plan, path: str, rows: Sequence[Row]) -> str:
    """Return what a person must know to use the kcg file of `rows`, with the commands; `path` is the plan's.

    For stderr: the file itself has no room for it.
    """
    setting = [row for row in rows if row.decision is Decision.SET]
    cut = sorted({row.group_on_target for row in setting if "\n" in row.group_on_target})
    setting = [row for row in setting if "\n" not in row.group_on_target]
    groups = list(dict.fromkeys(row.group_on_target for row in setting))
    lines = [f"LEFT OUT: {name(g)}: that tool cannot read a line feed in a name; use apply." for g in cut]
    if removing := sum(row.decision is Decision.REMOVE for row in rows):
        lines += wrapped(
            f"LEFT OUT: {many(removing, 'offset')} to be removed, for a file can only set: use apply, or "
            "kafka-consumer-groups --delete-offsets --group GROUP --topic TOPIC:PARTITION.",
            80,
        )
    if not groups:
        return "\n".join([*lines, "There is no row to set: the file is empty."])
    lost = sum(bool(row.target_metadata) for row in setting)
    file = shell_word(f"{path}.csv")
    brokers = shell_word(plan.header.flow.get("target_bootstrap") or "HOST:PORT")
    base = f"kafka-consumer-groups --bootstrap-server {brokers} --reset-offsets --from-file {file}"
    advice = (
        f"{many(len(setting), 'row')} of {many(len(groups), 'group')}. This way drops commit metadata ({lost} of the "
        "rows have some), keeps no prior state to roll back to, clamps offsets that lie outside the log, and exits 0 "
        "even when it fails: read what it prints. A group that does not exist on the target yet is taken only if "
        f"--group names it. With the file saved as {file} (and --command-config FILE if the cluster asks for a "
        "login):"
    )
    lines += [*wrapped(advice, 80), ""]
    named = "".join(f" --group {shell_word(group)}" for group in groups)
    lines.append(f"  {base}{named} --dry-run")
    lines += ["", "--execute instead of --dry-run writes."]
    return "\n".join(lines)


def _columns(header: Header) -> dict[str, Callable[[Row], Value]]:
    states = {(s.side, s.group): s.state for s in header.group_states}
    pair = f"{header.source_alias}->{header.target_alias}"
    return {
        "CLUSTER PAIR": lambda r: pair,
        "TOPIC": lambda r: r.source_topic,
        "PARTITION": lambda r: r.partition,
        "GROUP": lambda r: r.group,
        "SOURCE TOPIC EARLIEST OFFSET": lambda r: r.source_log_start,
        "SOURCE TOPIC LATEST OFFSET": lambda r: r.source_log_end,
        "SOURCE GROUP STATE": lambda r: states.get(("source", r.group), ""),
        "SOURCE GROUP OFFSET": lambda r: r.source_committed,
        "SOURCE GROUP LAG": lag,
        "TARGET TOPIC EARLIEST OFFSET": lambda r: r.target_log_start,
        "TARGET TOPIC LATEST OFFSET": lambda r: r.target_log_end,
        "TARGET GROUP STATE": lambda r: states.get(("target", r.group), ""),
        "TARGET GROUP OFFSET": lambda r: r.target_prior,
        "TARGET GROUP LAG": lambda r: _minus(r.target_log_end, r.target_prior),
        "SOURCE HAS DATA": lambda r: _has_data(r.source_log_start, r.source_log_end),
        "TARGET HAS DATA": lambda r: _has_data(r.target_log_start, r.target_log_end),
        "IS OK": lambda r: "false" if r.decision is Decision.BLOCK else "true",
        "MESSAGE": lambda r: r.sentence,
        "TARGET TOPIC": lambda r: r.target_topic,
        "DECISION": lambda r: r.decision,
        "NEW OFFSET": lambda r: r.target_offset,
        # How far the target group's offset moves.
        "DELTA": lambda r: _minus(r.target_offset, r.target_prior) if r.decision is Decision.SET else None,
        **{field.replace("_", " ").upper(): attrgetter(field) for field in OWN_FIELDS},
        "TARGET GROUP METADATA": lambda r: r.target_prior_metadata,
        "NEW METADATA": lambda r: r.target_metadata,
        "LIVE SOURCE OFFSET": lambda r: r.live_source_offset,
        "TARGET GROUP": lambda r: r.group_on_target,
    }


def _has_data(start: int | None, end: int | None) -> str:
    """Return whether the log reaches from somewhere to somewhere; empty where it could not be pinned."""
    return "" if start is None or end is None else "true" if start < end else "false"


def _minus(end: int | None, start: int | None) -> int | None:
    return None if end is None or start is None else end - start


def json_document(plan: Plan, rows: Sequence[Row], beside: Beside | None = None) -> Iterator[str]:
    """Return the lines of one JSON document: fingerprint, verdict, totals, header, checks, rows; a row to a line.

    Its schema is published as schema/plan.schema.json. Verdict, totals and `rows_in_plan` are the whole plan's.
    `beside` is what the files beside the plan say, None where nobody looked.
    """
    header = asdict(plan.header)
    checks = header.pop("checks")
    counted = totals(plan)
    return document_lines(
        {
            "fingerprint": plan.fingerprint,
            "rows_in_plan": len(plan.rows),
            "verdict": verdicts(plan, counted, beside)[0].text,
            "beside": None if beside is None else _beside_document(plan, beside),
            "totals": totals_document(counted),
            "header": header,
        },
        {"checks": checks, "rows": map(row_document, rows)},
    )


def _beside_document(plan: Plan, beside: Beside) -> dict[str, Any]:
    after = beside.after
    return {
        "runs": [fields_of(run, "command", "began", "ended", "exit_code") for run in after.runs],
        "spent": after.spent,
        "complete": after.complete,
        "rows": after.counts,
        "signatures_required": signatures_required(plan.header.settings),
        "signed_by": beside.signed,
    }


def totals_document(counted: Totals) -> dict[str, Any]:
    """Return the totals as plain values; rows without a grade are under "none"."""
    document = asdict(counted)
    document["decisions"] = {str(d): counted.decisions.get(d, 0) for d in Decision}
    document["grades"] = {str(g): counted.grades.get(g, 0) for g in Grade} | {"none": counted.grades.get(None, 0)}
    return document


def json_lines(plan: Plan, rows: Sequence[Row]) -> Iterator[str]:
    """Yield a line for the header (with checks and fingerprint), then one per row; `type` tells which it is."""
    head = {"type": "header", "fingerprint": plan.fingerprint, "rows_in_plan": len(plan.rows)}
    yield json.dumps(head | asdict(plan.header))
    for row in rows:
        yield json.dumps({"type": "row", **row_document(row)})


# What `--format` may be; the command line has the same words. Lines are made as they are taken, and have no ends.
FORMATS: Mapping[str, Callable[[Plan, Sequence[Row], Page], Iterator[str]]] = {
    "table": table,
    "json": lambda plan, rows, page: json_document(plan, rows, page.beside),
    "jsonl": lambda plan, rows, _: json_lines(plan, rows),
    "csv": lambda plan, rows, _: csv_lines(plan, rows),
    "kcg": lambda plan, rows, _: kcg_lines(rows),
}


def select(rows: Sequence[Row], groups: Sequence[str] = (), only: Sequence[str] = ()) -> Sequence[Row]:
    """Return the rows whose group matches one of `groups` in full and that fit `only`, in their order.

    Where neither is given these are the rows themselves.

    `groups` are regular expressions, for the name of a group on either side. `only` are decisions, grades or reasons of
    these rows: words of one kind widen each other, words of different kinds narrow (`set`, `keep`, `exact` is "set or
    keep, and exact"). Raises `UsageError` for a bad expression, one that no group matches, and a word that is none of
    these.
    """
    if not groups and not only:
        return rows
    try:
        patterns = [re.compile(text) for text in groups]
    except re.error as error:
        raise UsageError(
            f"--group {name(str(error.pattern))} is not a regular expression: {error}.", "Quote it."
        ) from error
    names = list(dict.fromkeys((row.group, row.group_on_target) for row in rows))
    for pattern in patterns:
        if not any(pattern.fullmatch(group) for both in names for group in both):
            some = ", ".join(name(group) for group, _ in names[:5]) + (" ..." if len(names) > 5 else "")
            raise UsageError(
                f"--group {name(pattern.pattern)} matches none of this plan's {many(len(names), 'group')}.",
                f"It must match a whole name. Groups: {some or 'none'}.",
            )
    chosen = {both[0] for both in names if not patterns or any(p.fullmatch(group) for p in patterns for group in both)}
    reasons = {row.reason for row in rows}
    kinds = (set(Decision), set(Grade), reasons - {*Decision, *Grade})
    unknown = [word for word in only if not any(word in kind for kind in kinds)]
    if unknown:
        raise UsageError(
            f"--only {name(unknown[0])} is not a decision, grade or reason of this plan.",
            f"Decisions: {', '.join(Decision)}. Grades: {', '.join(Grade)}. "
            f"Reasons here: {', '.join(sorted(reasons)) or 'none'}.",
        )
    decisions, grades, codes = (kind.intersection(only) for kind in kinds)
    return tuple(
        row
        for row in rows
        if row.group in chosen
        and (not decisions or row.decision in decisions)
        and (not grades or row.grade in grades)
        and (not codes or row.reason in codes)
    )
