"""What the notebooks are made of: a plan as pandas tables (in `review_outcome`, what became of it). Writes nothing.

Needs `pip install -c constraints.txt '.[notebook]'`, and neither a broker nor Spark. Every number comes from the
functions that `show` uses. In a notebook an error is one line, without a stack trace.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from migrate.apply.signatures import files_beside, names_of, signatures_beside
from migrate.errors import MigrateError, UsageError
from migrate.model import Decision, Method, Row, lag, may_skip, rereads, rewinds
from migrate.plan.attention import findings
from migrate.plan.diff import diff, moved_by
from migrate.plan.file import read_plan
from migrate.plan.plan import Plan, refuse_rules, signed_so_far
from migrate.plan.totals import compare_with_mm2, group_totals, totals
from migrate.row_table import row_document
from migrate.show.next_steps import OPTIONS_TO_ADD, next_steps
from migrate.show.plan_table import identity, made_with, totals_lines, verdicts
from migrate.show.report_outcome import beside_of
from migrate.show.table import fields_of
from migrate.text import shell_word

if TYPE_CHECKING:
    import pandas as pd

PLACE = ("group", "source_topic", "partition")
EXTRA = "pip install -c constraints.txt '.[notebook]'"


class ReviewStopped(MigrateError):
    """Raised where a notebook cannot go on; IPython shows it as one line."""

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


@contextmanager
def review_errors() -> Iterator[None]:
    """Raise what goes wrong inside as `ReviewStopped`."""
    try:
        yield
    except MigrateError as error:
        raise ReviewStopped(error.problem, error.todo) from None


def open_plan(path: str | Path) -> Plan:
    """Return the plan in a file, and have tables shown whole, with names as they are.

    Raises `ReviewStopped` with one line for a plan that is missing or damaged, for a mandate (it has no
    rows: `show` tells all that it allows), and where pandas is missing.
    """
    with review_errors():
        pandas = extra_module("pandas")
        pandas.set_option("display.max_columns", None)
        pandas.set_option("display.max_colwidth", None)
        pandas.set_option("display.html.use_mathjax", False)  # a name with two dollar signs is no formula
        plan = read_plan(Path(path))
        refuse_rules(plan, "the review")
        return plan


def head(plan: Plan, path: str | Path) -> "pd.DataFrame":
    """Return what a plan is, as `show` says at its top: verdict, fingerprint, clusters, totals."""
    counted = totals(plan)
    facts = {
        "Verdict": verdicts(plan, counted, beside_of(plan, files_beside(Path(path), plan.fingerprint)))[0].text,
        "Fingerprint": plan.fingerprint,
        **dict(identity(plan, str(path))),
        **dict(totals_lines(plan, counted)),
        **dict(made_with(plan)),
        "Signatures": _signed(plan, path),
    }
    return extra_module("pandas").DataFrame({"": facts}, dtype=object)


def rows_table(plan: Plan) -> "pd.DataFrame":
    """Return one line per row of the plan: its fields by the plan file's names, and what `show` derives from them.

    `lag` and `rereads` are in records; `mm2_rereads` is what MM2's newest checkpoint would re-read on top of this
    plan's offset, negative where it lies beyond it, and absent where MM2 has none. Offsets are nullable integers.
    """
    lines = [
        row_document(row)
        | {"lag": lag(row), "rereads": rereads(row), "mm2_rereads": _mm2_behind(row)}
        | {"may_skip": may_skip(row), "rewinds": rewinds(row)}
        for row in plan.rows
    ]
    numbers = [field for field, hint in Row.__annotations__.items() if str(hint) in ("int | None", "<class 'int'>")]
    columns = [*Row._fields, "lag", "rereads", "mm2_rereads", "may_skip", "rewinds"]
    return data_frame(lines, columns, [*numbers, "lag", "rereads", "mm2_rereads"])


def groups_table(plan: Plan) -> "pd.DataFrame":
    """Return one line per group: rows by decision, lag and re-reads in records, states, and what blocks it."""
    states = {(s.group, s.side): s.state for s in plan.header.group_states}
    blocked = plan.blocked_groups()
    lines = []
    for group, rows in plan.groups().items():
        t, mm2 = group_totals(rows), compare_with_mm2(rows)
        lines.append(
            {
                "group": group,
                "rows": len(rows),
                **{str(d): t.decisions.get(d, 0) for d in Decision},
                "blocked": group in blocked,
                "lag": t.lag,
                "rereads": t.rereads,
                "mm2_rereads": mm2.behind_records if mm2.compared_rows else None,
                "without_checkpoint": sum(row.checkpoint_target_offset is None for row in rows),
                "on_source": states.get((group, "source"), ""),
                "on_target": states.get((group, "target"), ""),
                "reasons": ", ".join(sorted({row.reason for row in rows})),
                "target_group": rows.group_on_target,
            }
        )
    numbers = ["lag", "rereads", "mm2_rereads"]
    names = ["group", "rows", *map(str, Decision), "blocked", *numbers, "without_checkpoint", "on_source", "on_target",
             "reasons", "target_group"]  # fmt: skip
    return data_frame(lines, names, numbers).set_index("group")


def grades_table(plan: Plan) -> "pd.DataFrame":
    """Return rows by decision (down) and grade (across)."""
    table = rows_table(plan)
    return extra_module("pandas").crosstab(table["decision"], table["grade"].fillna("no grade"))


def attention_table(plan: Plan) -> "pd.DataFrame":
    """Return what needs a person, worst first, one line per subject, as `show` has it under NEEDS ATTENTION."""
    lines = [
        {"kind": str(f.kind), "name": f.name, "subject": subject, "seen": seen, "expected": f.expected, "to do": f.todo}
        for f in findings(plan)
        for subject, seen in f.seen
    ]
    return data_frame(lines, ["kind", "name", "subject", "seen", "expected", "to do"])


def checks_table(plan: Plan) -> "pd.DataFrame":
    """Return every check's result, one line per subject."""
    lines = [asdict(check) | {"level": str(check.level), "counts_as": str(check.counts_as)}
             for check in plan.header.checks]  # fmt: skip
    return data_frame(
        lines, ["check", "scope", "subject", "level", "counts_as", "accepted", "expected", "seen", "todo"]
    )


def outliers(plan: Plan, count: int = 10) -> "pd.DataFrame":
    """Return the rows to look at first: those that skip, rewind or are blocked, then the most re-reads, then lag."""
    table = rows_table(plan)
    table["odd"] = table["may_skip"] | table["rewinds"] | (table["decision"] == str(Decision.BLOCK))
    worst = table.sort_values(["odd", "rereads", "lag"], ascending=False, na_position="last", kind="stable")
    return worst.head(count)[
        [*PLACE, "decision", "reason", "grade", "lag", "rereads", "mm2_rereads",
         "may_skip", "rewinds", "sentence"]
    ].reset_index(drop=True)  # fmt: skip


def comparison_table(before: Plan, now: Plan) -> "pd.DataFrame":
    """Return every row that is not the same in both plans; raises `ReviewStopped` for plans of other clusters."""
    with review_errors():
        changes = diff(before, now)
    lines = [
        {
            "change": "decided otherwise" if change.judged else "moved",
            **fields_of(change.now, *PLACE),
            "before": _decided(change.before),
            "now": _decided(change.now),
            "committed_by": moved_by(change, "source_committed"),
            "planned_by": moved_by(change, "target_offset"),
        }
        for change in (*changes.judged, *changes.moved)
    ]
    lines += [{"change": "new", **fields_of(row, *PLACE), "before": "", "now": _decided(row)} for row in changes.new]
    lines += [{"change": "gone", **fields_of(row, *PLACE), "before": _decided(row), "now": ""} for row in changes.gone]
    columns = ["change", *PLACE, "before", "now", "committed_by", "planned_by"]
    return data_frame(lines, columns, ["committed_by", "planned_by"])


def next_commands(plan: Plan, path: str | Path) -> str:
    """Return the fingerprint and the commands to type next; the cluster options have to be added."""
    sentences, commands = next_steps(plan, totals(plan), str(path), None)
    if not commands:
        return f"Fingerprint {plan.fingerprint}\nThere is nothing that may be applied."
    sign = f"mm2-migrate sign {shell_word(str(path))} --by NAME --note TEXT"
    said = [sentence for sentence in sentences if sentence != OPTIONS_TO_ADD]
    return "\n".join([f"Fingerprint {plan.fingerprint}", sign, *said, commands[-1][1]])


def _mm2_behind(row: Row) -> int | None:
    # An offset chosen by option is no translation: there is nothing to compare (migrate.plan.totals).
    if row.target_offset is None or row.checkpoint_target_offset is None or row.method is Method.EXPLICIT:
        return None
    return row.target_offset - row.checkpoint_target_offset


def _decided(row: Row) -> str:
    offset = "-" if row.target_offset is None else row.target_offset
    return f"{row.decision} {offset} ({row.reason}{f', {row.grade}' if row.grade else ''})"


def _signed(plan: Plan, path: str | Path) -> str:
    try:
        return signed_so_far(plan.header.settings, names_of(signatures_beside(Path(path), plan.fingerprint)))
    except MigrateError as error:
        return error.problem


def data_frame(
    lines: Sequence[Mapping[str, Any]], columns: Sequence[str], numbers: Sequence[str] = ()
) -> "pd.DataFrame":
    """Return a table of these columns, also without lines; `numbers` are those of nullable integers."""
    return extra_module("pandas").DataFrame(lines, columns=list(columns)).astype(dict.fromkeys(numbers, "Int64"))


def extra_module(name: str) -> Any:
    """Return pandas or a module of matplotlib; raises `UsageError` with the line to type where it is not installed."""
    try:
        return import_module(name)
    except ImportError as error:
        raise UsageError("The notebooks need pandas and matplotlib, which are not installed.", EXTRA) from error
