"""The Avro schema of a plan's rows, with a document on every field.

The namespace carries the format version. Fields are only ever added with a default, and never reordered.
Enums have the default `unknown`, so that a reader of another version sees that it does not know a word.
"""

from typing import Any

from migrate.model import Decision, Grade, Method
from migrate.plan.plan import FORMAT_VERSION

NAMESPACE = f"mm2_migrate.plan.v{FORMAT_VERSION}"


def _enum(name: str, symbols: list[str], doc: str) -> dict[str, Any]:
    return {"type": "enum", "name": name, "symbols": [*symbols, "unknown"], "default": "unknown", "doc": doc}


def _text(name: str, doc: str) -> dict[str, Any]:
    return {"name": name, "type": "string", "doc": doc}


def _added_text(name: str, doc: str) -> dict[str, Any]:
    return {"name": name, "type": "string", "default": "", "doc": doc}


def _offset(name: str, doc: str) -> dict[str, Any]:
    return {"name": name, "type": ["null", "long"], "default": None, "doc": doc}


_DECISION = _enum("Decision", [str(d) for d in Decision], "What apply does with the row.")
_METHOD = _enum("Method", [str(m) for m in Method], "How the target offset was found.")
_GRADE = _enum("Grade", [str(g) for g in Grade], "How much is proven about the target offset.")

ROW_SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Row",
    "namespace": NAMESPACE,
    "doc": "One committed offset of a consumer group, and what becomes of it on the target cluster.",
    "fields": [
        _text("group", "Consumer group."),
        _text("source_topic", "Topic on the source cluster, which the groups leave."),
        _text("target_topic", "Its replica's name on the target cluster."),
        {"name": "partition", "type": "int", "doc": "Partition, the same number on both clusters."},
        _offset("source_committed", "Offset committed on the source: the next record that the group wants."),
        _text("source_metadata", "Metadata of that commit; empty if it has none."),
        _offset("source_log_start", "First offset of the source partition's log when it was pinned."),
        _offset("source_log_end", "Last stable offset of the source partition when it was pinned."),
        _offset("target_log_start", "First offset of the target partition's log when it was pinned."),
        _offset("target_log_end", "Last stable offset of the target partition when it was pinned."),
        _offset("target_prior", "Offset committed on the target before; null if there was none."),
        _text("target_prior_metadata", "Metadata of that commit; empty if it has none."),
        {"name": "decision", "type": _DECISION, "doc": "set, remove, keep, skip or block."},
        _offset("target_offset", "Offset planned on the target; null where nothing is planned."),
        {"name": "method", "type": ["null", _METHOD], "default": None, "doc": "How it was found."},
        {"name": "grade", "type": ["null", _GRADE], "default": None, "doc": "exact, bounded or estimated."},
        _offset("rereads_at_most", "Proven bound on records read twice; null where none is proven."),
        _offset("rereads_estimate", "Likely number of records read twice; bounds nothing."),
        _text("reason", "Code that says why, such as translated or already-there."),
        _text("sentence", "The same in a sentence."),
        _text("lower_kind", "What stands at the lower end: proven-sync, sync, log-start, ...; empty if nothing."),
        _offset("lower_source_offset", "Source offset of the sync at the lower end."),
        _offset("lower_target_offset", "Target offset of that sync."),
        _offset("upper_source_offset", "Source offset of the sync at the window's upper end."),
        _offset("upper_target_offset", "Target offset of that sync."),
        _offset("checkpoint_source_offset", "Source offset of MM2's newest checkpoint, to compare with."),
        _offset("checkpoint_target_offset", "Target offset of MM2's newest checkpoint."),
        _added_text("equality", "What two records had to agree in to count as one: all, without-headers, ..."),
        _added_text("why", "Code of what comparing records said, such as proven; empty if none were compared."),
        _offset("missing_on_target", "Owed records that have no copy on the target; null where that is not known."),
        _added_text("target_metadata", "Metadata to commit with the target offset, byte for byte; empty for none."),
    ],
}
