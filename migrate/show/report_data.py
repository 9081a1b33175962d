"""What the report's script draws: groups and rows as compact JSON. Pure.

Rows are in columns, one list per field; a column whose rows are all alike is a list of one. Words are numbers into
one list for the whole page, a sentence is the number of its wording and the numbers in it. All text is made `safe`.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from migrate.apply.verify import GOOD
from migrate.model import Grade, Row, between, may_skip, rewinds
from migrate.plan.plan import Plan
from migrate.plan.totals import compare_with_mm2, group_totals
from migrate.row_table import GroupRows
from migrate.show.aftermath import Aftermath, RowAfter
from migrate.show.group_table import activity_texts, group_word, state_texts
from migrate.show.lines import tally
from migrate.show.next_steps import command_line, group_words
from migrate.show.report_outcome import AS_PLANNED
from migrate.text import both_names, name, safe

GAP = "\x01"  # where a number was in a sentence: safe text has no control characters
EXACT_IN_JAVASCRIPT = 2**53
_NUMBER = re.compile(r"([0-9]+)")
NUMBERS = (
    "partition", "source_committed", "source_log_start", "source_log_end", "target_log_start", "target_log_end",
    "target_prior", "target_offset", "rereads_at_most", "rereads_estimate", "lower_source_offset",
    "lower_target_offset", "upper_source_offset", "upper_target_offset", "checkpoint_source_offset",
    "checkpoint_target_offset", "missing_on_target", "live_source_offset",
)  # fmt: skip
WORDS = ("source_topic", "target_topic", "decision", "method", "grade", "reason", "lower_kind", "equality", "why",
         "source_metadata", "target_prior_metadata", "target_metadata")  # fmt: skip
AFTER = ("status", "seen", "told", "standing", "verified")
COLUMNS = (*NUMBERS, *WORDS, "sentence", "sentence_numbers", "lag", "risk", *AFTER)


@dataclass(frozen=True, slots=True)
class Data:
    """What goes into the page: one document for the page and its groups, one per group whose rows are embedded.

    `rows_left_out` and `groups_left_out` count what is beyond the cap; "" is the document of whoever is beyond it.
    """

    page: Mapping[str, Any]
    groups: tuple[str, ...]
    rows_left_out: int
    groups_left_out: int


# A number for each text of the page, in the order in which they come. A tuple has a sentence's wording.
_Words = dict[object, int]


def _number(words: _Words, value: object) -> int:
    """Return the number of a text, or of a value's text; None is ""."""
    return words.setdefault(value, len(words))


def report_data(plan: Plan, after: Aftermath, path: str, cap: int) -> Data:
    """Return the page's data with at most `cap` rows, of whole groups: first those that need attention."""
    words: _Words = {}
    groups, states = plan.groups(), state_texts(plan)
    active = _activity(plan)
    described = {
        group: _group(rows, after, states.get(group, ""), words) | active.get(group, _UNTOLD)
        for group, rows in groups.items()
    }
    embedded = _embedded(described, cap)
    left = groups.keys() - embedded
    for group in left:
        described[group]["show"] = command_line("show", path, *group_words([group]))
    documents = tuple(_rows(rows, after, words) if group in embedded else "" for group, rows in groups.items())
    page = {
        "columns": COLUMNS,
        "source": name(plan.header.source_alias),
        "target": name(plan.header.target_alias),
        "checkpoints": plan.header.has_checkpoints,
        "activity": bool(active),
        "after": bool(after),
        "verified": bool(after.standings),
        "groups": list(described.values()),
        # Wordings are safe already, but for the gaps in them.
        "words": [key[0] if isinstance(key, tuple) else safe(str(key or "")) for key in words],
    }
    return Data(page, documents, sum(len(groups[g]) for g in left), len(left))


def as_json(document: Any) -> str:
    """Return the JSON that may be inside an HTML `script`: ASCII, and nothing that could end it."""
    text = json.dumps(document, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _embedded(groups: Mapping[str, Mapping[str, Any]], cap: int) -> frozenset[str]:
    """Return the groups that fit, whole ones: the urgent first, otherwise in the plan's order."""
    urgent = {g for g, d in groups.items() if d["word"] == "BLOCK" or d["risk"] or d["bad"]}
    room, chosen = cap, set()
    for group in sorted(groups, key=lambda group: group not in urgent):
        if groups[group]["rows"] <= room:
            room -= groups[group]["rows"]
            chosen.add(group)
    return frozenset(chosen)


def _is_bad(after: RowAfter) -> bool:
    return after.status not in AS_PLANNED or bool(after.standing and after.standing not in GOOD)


def _group(rows: GroupRows, after: Aftermath, states: str, words: _Words) -> dict[str, Any]:
    t, mm2 = group_totals(rows), compare_with_mm2(rows)
    afters = [after.rows[row.key] for row in rows if row.key in after.rows] if after.rows else []
    grades = Counter(rows.whole("grade"))
    statuses = Counter(own.standing or own.status for own in afters)
    return {
        "name": both_names(rows.group, rows.group_on_target),
        "word": group_word(rows)[0],
        "rows": len(rows),
        "decisions": tally(t.decisions),
        "lag": t.lag,
        "rereads": t.rereads,
        "sign": t.sign,
        "mm2": mm2.behind_records,
        "skips": mm2.skipping_records,
        "grades": [grades[grade] for grade in (*Grade, None)],
        "states": states,
        "topics": sorted({_number(words, topic) for topic in rows.column("source_topic")}),
        "risk": any(map(_risk, rows)),
        "bad": any(map(_is_bad, afters)),
        "results": tally(statuses),
        "show": "",
    }


_UNTOLD = {"idle": None, "activity": ""}


def _activity(plan: Plan) -> dict[str, dict[str, Any]]:
    """Return by group how long ago it committed last when the plan was made (seconds), and what is said of it."""
    texts, made_ms = activity_texts(plan), plan.header.created_at_ms
    return {
        a.group: {"idle": max(0, round((made_ms - a.last_commit_ms) / 1000)), "activity": texts[a.group]}
        for a in plan.header.activity
    }


def _risk(row: Row) -> bool:
    return may_skip(row) or rewinds(row)


def _rows(rows: GroupRows, after: Aftermath, words: _Words) -> str:
    columns: list[Sequence[Any]] = [_exact(rows.column(name)) for name in NUMBERS]
    columns += [[_number(words, value) for value in rows.column(name)] for name in WORDS]
    sentences = [split_sentence(safe(sentence)) for sentence in rows.column("sentence")]
    columns.append([_number(words, (wording,)) for wording, _ in sentences])
    columns.append([numbers for _, numbers in sentences])
    columns.append(_exact(list(map(between, rows.whole("source_committed"), rows.whole("source_log_end")))))
    columns.append([int(_risk(row)) for row in rows])
    nothing = RowAfter("")
    afters = [after.rows.get(row.key, nothing) for row in rows]
    columns += [[_number(words, getattr(own, part)) for own in afters] for part in AFTER]
    return as_json([column[:1] if all(value == column[0] for value in column) else column for column in columns])


def split_sentence(text: str) -> tuple[str, list[int | str]]:
    """Return the sentence with a gap for each number, and the numbers: a thousand rows share a few wordings."""
    parts = _NUMBER.split(text)
    numbers: list[int | str] = []
    for digits in parts[1::2]:
        value = int(digits)
        # leading zeros are part of a name, not of a number
        numbers.append(value if str(value) == digits and value < EXACT_IN_JAVASCRIPT else digits)
    return GAP.join(parts[::2]), numbers


def _exact(numbers: Sequence[int | None]) -> Sequence[int | str | None]:
    """Return the numbers, as text those that JavaScript would round."""
    return [n if n is None or n < EXACT_IN_JAVASCRIPT else str(n) for n in numbers]
