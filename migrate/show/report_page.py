"""The report: one HTML page that needs nothing else, made of the same values as `show`.

Whatever a plan says is other people's text: jinja2 escapes it for HTML, and control characters and characters that
turn the reading direction are shown escaped. The page's policy lets it load nothing, and run only its own script.
"""

import base64
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from migrate.apply.signatures import Signature, names_of
from migrate.model import Grade
from migrate.plan.attention import failback_text, findings, not_ruled_out, passed
from migrate.plan.plan import UNDO, Header, Plan, signatures_required, signed_so_far
from migrate.plan.totals import totals
from migrate.show.aftermath import Aftermath, Beside
from migrate.show.charts import chart_of, lag_bars, rereads_bars
from migrate.show.lines import tally
from migrate.show.next_steps import next_steps
from migrate.show.plan_table import (
    EVIDENCE_SHOWN,
    SUBJECTS_NAMED,
    identity,
    made_with,
    totals_lines,
    verdicts,
)
from migrate.show.report_data import Data, as_json, report_data
from migrate.text import bytes_text, many, name, safe, shell_word

ROWS_EMBEDDED = 100_000
RESULTS_LISTED = 300
BARS = 15
LEAST_VISIBLE = 0.4
MARK = "<!doctype html>\n<!-- mm2-migrate report -->\n"


def report(
    plan: Plan,
    path: str,
    after: Aftermath,
    options: tuple[str, ...] = (),
    signatures: Sequence[Signature] = (),
    cap: int = ROWS_EMBEDDED,
) -> tuple[str, Data]:
    """Return the page of a plan and of what became of it, and the data in it.

    `path` is the plan's file as it was typed, `options` the cluster options for the commands to copy, where known,
    `signatures` those in the file beside it. The same plan, journal, signatures and options give the same bytes.
    """
    counted, groups = totals(plan), plan.groups()
    data = report_data(plan, after, path, cap)
    beside = Beside(after, names_of(signatures))
    sentences, steps = next_steps(plan, counted, path, options or None, beside)
    settings = plan.header.settings
    so_far = signed_so_far(settings, beside.signed)
    text = page_of(
        _asset("report.html"),
        _asset("report.js"),
        f"{_title(plan)}, plan {plan.short_fingerprint}",
        plan=plan,
        header=plan.header,
        path=path,
        title=_title(plan),
        verdicts=verdicts(plan, counted, beside),
        failback=failback_text(plan.header) if plan.header.failback else "",
        summary=[*identity(plan, path), *made_with(plan)],
        totals=list(totals_lines(plan, counted)),
        findings=findings(plan),
        shown=EVIDENCE_SHOWN,
        named=SUBJECTS_NAMED,
        listed=RESULTS_LISTED,
        everything=f"mm2-migrate show {shell_word(path)} --format json",
        after=after,
        signed=so_far if signatures or signatures_required(settings) else "",
        signatures=signatures,
        sentences=sentences,
        steps=steps,
        rereads=chart_of(rereads_bars(groups), BARS, " by this plan", plan.header.has_checkpoints),
        grades=list(_stack(counted.grades)),
        share=share,
        quoted=name,
        means=_grades(plan.header),
        lag=chart_of(lag_bars(groups), BARS),
        checks=_checks(plan),
        passed=passed(plan.header.checks),
        not_ruled_out=not_ruled_out(plan.header.checks),
        settings=list(_settings(plan, path)),
        left_out=_left_out(data, path),
        page_json=Markup(as_json(data.page)),
        group_json=[(i, Markup(document)) for i, document in enumerate(data.groups) if document],
    )
    return text, data


def page_of(body: str, script: str, page_title: str, **values: object) -> str:
    """Return a page with the report's head and style; `body` is a jinja2 template.

    In it, all text is `safe`, and nothing is loaded.
    """
    style = _asset("report.css")
    head = {"page_title": page_title, "policy": _policy(style, script), "style": Markup(style)}
    text: str = _template(_asset("head.html") + body).render(script=Markup(script), **head, **values)
    return MARK + text


def share(value: int, most: int) -> float:
    """Return `value` in percent of `most`; what is not nothing can be seen."""
    return round(max(LEAST_VISIBLE, 100 * value / most), 3) if value > 0 and most > 0 else 0.0


def _stack(grades: Mapping[Grade | None, int]) -> Iterator[tuple[str, float, float, int]]:
    """Yield each grade that rows have, where its part of the bar begins and how long it is in percent, and the rows."""
    total, start = sum(grades.values()), 0.0
    for grade in (*Grade, None):
        if count := grades.get(grade, 0):
            length = 100 * count / total
            yield str(grade or "none"), round(start, 3), round(length, 3), count
            start += length


def _grades(header: Header) -> dict[str, str]:
    return {
        str(Grade.EXACT): "the best offset there is, proven from both sides",
        str(Grade.BOUNDED): "skips nothing, and reads at most so many records twice as it says",
        str(Grade.ESTIMATED): f"skips nothing as long as {header.replicator.premise}; re-reads unknown",
        "none": "no offset was translated",
    }


def _title(plan: Plan) -> str:
    kind = "Undo" if plan.header.kind == UNDO else "Failback" if plan.header.failback else "Cutover"
    return f"{kind} {name(plan.header.source_alias)} to {name(plan.header.target_alias)}"


def _checks(plan: Plan) -> list[tuple[str, str]]:
    """Return each check's name and its results counted by level; what is not a pass is among the findings."""
    counts: dict[str, Counter[str]] = {}
    for result in plan.header.checks:
        counts.setdefault(result.check, Counter())["accepted" if result.accepted else str(result.level)] += 1
    return [(check, tally(counted)) for check, counted in counts.items()]


def _settings(plan: Plan, path: str) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """Yield headings, sentences and what belongs there, name by name: what the page's top has no room for."""
    h = plan.header
    if h.by_mm2:
        yield (
            "Read of MM2's topics",
            "" if h.mm2_counts else "Nothing.",
            [(kind, str(n)) for kind, n in h.mm2_counts.items()],
        )
    cost = {k.replace("_", " "): bytes_text(n) if "_bytes_" in k else f"{n:,}" for k, n in h.comparison.items()}
    yield "Comparing records", "" if cost else "None were compared.", list(cost.items())
    yield "Time taken", "Seconds per step.", [(step, f"{seconds:.1f}") for step, seconds in h.timings.items()]
    pinned = many(len(h.pinned), "log range")
    yield "Pinned", f"{pinned} and {many(len(h.group_states), 'group state')}, all in {safe(path)}.", []


def _left_out(data: Data, path: str) -> str:
    if not data.rows_left_out:
        return ""
    return (
        f"{data.rows_left_out:,} rows of {many(data.groups_left_out, 'group')} are not in this page, which holds "
        f"{ROWS_EMBEDDED:,} at most: they are counted here, and are in {safe(path)}."
    )


def _policy(style: str, script: str) -> str:
    """Return the page's content security policy: nothing is loaded, and only these two texts take effect."""
    by_style, by_script = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)
    )
    return (
        f"default-src 'none'; style-src 'sha256-{by_style}'; script-src 'sha256-{by_script}'; "
        "base-uri 'none'; form-action 'none'"
    )


@cache
def _asset(file: str) -> str:
    return files("migrate.show").joinpath("page", file).read_text("utf-8")


@cache
def _template(text: str) -> Any:
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_shown
    )
    return environment.from_string(text)


def _shown(value: Any) -> Any:
    """Make all text `safe` that the template prints, so that no place can forget to."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return safe(value)
