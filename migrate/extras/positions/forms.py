"""What each holder of positions outside Kafka is to be set to, in the form that it takes. Pure.

All forms have the target's names of topics, and the next record wanted; `csv` and `jsonl` have the number in the
holder's own meaning. What is printed beside a form says which setting has to change with it.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from migrate.errors import Refused, UsageError
from migrate.extras.positions.checkpoint import kafka_line, lines_of
from migrate.extras.positions.held import Meaning
from migrate.extras.positions.plan import HOLDER_BLOCKED, PositionPlan
from migrate.model import CheckResult, Decision, Row, may_skip
from migrate.show.table import csv_line
from migrate.text import many, name, safe, some

CSV_COLUMNS = ("holder", "topic", "partition", "offset", "meaning", "grade", "rereads_at_most")
# A holder that keeps the last record done has none to keep before the first one.
NONE = "none"
SPARK_CHECKPOINT = "spark-checkpoint"
# Spark's word for the beginning of a partition.
EARLIEST = -2
# Forms that have to name every partition of a topic, and how they say that one is to be read from its beginning.
EVERY_PARTITION = {"spark": f"{EARLIEST}, which is earliest", "routine-load": "0, or where its log starts"}


@dataclass(frozen=True, slots=True)
class HolderPositions:
    """The positions of one holder on the target, sorted: `places` are (topic, partition, next record wanted)."""

    holder: str
    places: tuple[tuple[str, int, int], ...]

    def by_topic(self) -> Iterator[tuple[str, dict[int, int]]]:
        """Yield each topic with the next record wanted of each of its partitions."""
        for topic, places in groupby(self.places, key=lambda place: place[0]):
            yield topic, {partition: offset for _, partition, offset in places}


def selected(plan: PositionPlan, holders: Collection[str]) -> list[Row]:
    """Return the positions of these holders that have a place on the target.

    Raises `Refused` where one of the holders is blocked: what blocks it may be a record lost, or counted twice.
    """
    if blocked := sorted(set(holders).intersection(plan.blocked())):
        reasons = {f"{name(h)}: {_why(plan.holders()[h])}" for h in blocked}
        raise Refused(
            f"{many(len(blocked), 'holder')} blocked: {some(sorted(reasons), 5, '; ')}.",
            "Fix what is blocked and plan again, accept it there by name, or leave the holder out with --holder.",
        )
    return [row for holder in holders for row in plan.holders()[holder] if row.target_offset is not None]


def _why(rows: Sequence[Row]) -> str:
    """Return why a holder is blocked: the reason of a row that does not point to another."""
    reasons = [row.reason for row in rows if row.decision is Decision.BLOCK]
    return next((reason for reason in reasons if reason != HOLDER_BLOCKED), reasons[0])


def lines_of_form(plan: PositionPlan, form: str, holders: Sequence[str]) -> Iterator[str]:
    """Yield the text of these holders in a form; raises as `selected` does, and `UsageError` for holders too many."""
    rows = selected(plan, holders)
    if form == "csv":
        yield from csv_of_positions(plan, rows)
    elif form == "jsonl":
        yield from json_lines_of_positions(plan, rows)
    elif form == "kcg":  # kafka-consumer-groups reads it, and from Kafka 4.4 on kafka-share-groups
        for row in rows:
            yield csv_line((row.group, row.target_topic, row.partition, row.target_offset))
    elif len(holders) != 1:
        raise UsageError(
            f"--format {form} is for one holder, and these are {len(holders)}.",
            f"Name one with --holder: {some(map(name, holders), 5)}.",
        )
    elif form == SPARK_CHECKPOINT:
        yield from rewritten_batch(plan, holders[0], rows)
    else:
        places = [(row.target_topic, row.partition, row.target_offset or 0) for row in rows]
        if form in EVERY_PARTITION:
            # Spark refuses `startingOffsets` that do not name every partition, and Doris starts at the end of what is
            # not named; from the beginning, nothing is skipped.
            places += [(topic, partition, EARLIEST) for topic, partition in plan.without_place(holders[0])]
        yield from OF_ONE_HOLDER[form](HolderPositions(holders[0], tuple(sorted(places))))


def _left_open(plan: PositionPlan, holders: Collection[str]) -> list[CheckResult]:
    """Return what is said of batches that were begun and not finished, and accepted as such."""
    return [c for c in plan.header.checks if c.check == "spark-batch-open" and c.accepted and c.subject in holders]


def csv_of_positions(plan: PositionPlan, rows: Iterable[Row]) -> Iterator[str]:
    """Yield a heading and a line for each position: what `positions plan` reads, with grade and re-reads."""
    yield csv_line(CSV_COLUMNS)
    for row in rows:
        yield csv_line(["" if value is None else value for value in _document(plan, row).values()])


def json_lines_of_positions(plan: PositionPlan, rows: Iterable[Row]) -> Iterator[str]:
    """Yield an object for each position, with the columns of the CSV."""
    for row in rows:
        yield json.dumps(_document(plan, row))


def spark(of: HolderPositions) -> Iterator[str]:
    """Yield the `startingOffsets` of a query with a new checkpoint."""
    yield json.dumps({topic: _keyed(offsets) for topic, offsets in of.by_topic()}, separators=(",", ":"))


def flink(of: HolderPositions) -> Iterator[str]:
    """Yield `topic,partition,offset` lines: the map that `OffsetsInitializer.offsets` takes."""
    for place in of.places:
        yield csv_line(place)


def flink_sql(of: HolderPositions) -> Iterator[str]:
    """Yield the options of a table for each topic."""
    for topic, offsets in of.by_topic():
        listed = ";".join(f"partition:{partition},offset:{offset}" for partition, offset in offsets.items())
        yield f"'topic'='{topic}', 'scan.startup.mode'='specific-offsets', 'scan.startup.specific-offsets'='{listed}'"


def hudi(of: HolderPositions) -> Iterator[str]:
    """Yield the `--checkpoint` of Hudi Streamer, for each topic."""
    for topic, offsets in of.by_topic():
        yield ",".join([topic, *(f"{partition}:{offset}" for partition, offset in offsets.items())])


def druid(of: HolderPositions) -> Iterator[str]:
    """Yield the body of `POST /druid/indexer/v1/supervisor/ID/resetOffsets`, for each topic."""
    for topic, offsets in of.by_topic():
        partitions = {"type": "end", "stream": topic, "partitionOffsetMap": _keyed(offsets)}
        yield json.dumps({"type": "kafka", "partitions": partitions}, separators=(",", ":"))


def routine_load(of: HolderPositions) -> Iterator[str]:
    """Yield the statement that sets a Routine Load job of Doris, for each topic.

    It names the topic: Doris forgets where a job is when its topic changes, and starts at the log's end where nothing
    else is said (`KafkaRoutineLoadJob.modifyPropertiesInternal`).
    """
    # A plain name may be one of a database's; what is none is quoted whole.
    job = of.holder if re.fullmatch(r"[A-Za-z_][\w.]*", of.holder) else "`" + of.holder.replace("`", "``") + "`"
    for topic, offsets in of.by_topic():
        # Its own word for the beginning is looked up in the topic that the job had before.
        listed = ",".join(map(str, offsets)), ",".join(str(max(0, offset)) for offset in offsets.values())
        yield (
            f'ALTER ROUTINE LOAD FOR {job} FROM KAFKA("kafka_topic"="{topic}",'
            f'"kafka_partitions"="{listed[0]}","kafka_offsets"="{listed[1]}");'
        )


def connect(of: HolderPositions) -> Iterator[str]:
    """Yield the body of `PATCH /connectors/NAME/offsets` for a sink connector (KIP-875)."""
    yield json.dumps(
        {
            "offsets": [
                {
                    "partition": {"kafka_topic": topic, "kafka_partition": partition},
                    "offset": {"kafka_offset": offset},
                }
                for topic, partition, offset in of.places
            ]
        },
        separators=(",", ":"),
    )


# Beside csv, jsonl and kcg, which have every holder.
OF_ONE_HOLDER: Mapping[str, Callable[[HolderPositions], Iterator[str]]] = {
    "spark": spark, "flink": flink, "flink-sql": flink_sql, "hudi": hudi, "druid": druid,
    "routine-load": routine_load, "connect": connect,
}  # fmt: skip
FORMATS_OF_POSITIONS = ("csv", "jsonl", "spark", SPARK_CHECKPOINT, *list(OF_ONE_HOLDER)[1:], "kcg")


def rewritten_batch(plan: PositionPlan, holder: str, rows: Iterable[Row]) -> list[str]:
    """Return the file of a checkpoint's batch as it is on the target: Kafka's lines alone are others.

    Raises `UsageError` for a holder that is no Spark checkpoint, `Refused` for a position without a place, and for a
    batch that was begun and not finished.
    """
    origin = plan.checkpoint(holder)
    if origin is None:
        raise UsageError(
            f"{name(holder)} is from a file: only a holder that was read by --spark-checkpoint has a batch to rewrite.",
            "Choose another --format, or name the folder when the positions are planned.",
        )
    for check in _left_open(plan, [holder]):
        # On the target a batch of its number would hold other records, and a sink that has had it would drop them all.
        raise Refused(
            f"{name(holder)}: {safe(check.seen)}. A copy of the folder would run a batch of that number again, with "
            "other records, and a sink that has had it drops them.",
            "Let the query finish that batch on the source and plan again; or use --format spark, with a new "
            "checkpoint and a new output folder.",
        )
    places = {(row.source_topic, row.partition): row for row in rows}
    lines = lines_of(origin.content, name(origin.origin))
    written = lines[:2]
    for line in lines[2:]:
        offsets = kafka_line(line)
        if offsets is None:
            written.append(line)
            continue
        moved: dict[str, dict[str, int]] = {}
        for topic, partitions in offsets.items():
            for partition in partitions:
                row = places.get((topic, partition))
                if row is None or row.target_offset is None:
                    raise Refused(
                        f"{name(holder)} has no place on the target for {topic}-{partition}: expected one for "
                        "each of its partitions.",
                        "A batch's file without it would let the query read that partition from its beginning.",
                    )
                moved.setdefault(row.target_topic, {})[str(partition)] = row.target_offset
        written.append(json.dumps(moved, separators=(",", ":")))
    return written


def _document(plan: PositionPlan, row: Row) -> dict[str, str | int | None]:
    meaning, wanted = plan.meaning(row), row.target_offset or 0
    # -1 would be "latest" to Spark, and the record before the first to nobody.
    offset: str | int = wanted if meaning is Meaning.NEXT else wanted - 1 if wanted else NONE
    grade = str(row.grade or "")
    told = (row.group, row.target_topic, row.partition, offset, str(meaning), grade, row.rereads_at_most)
    return dict(zip(CSV_COLUMNS, told, strict=True))


def _keyed(offsets: Mapping[int, int]) -> dict[str, int]:
    return {str(partition): offset for partition, offset in offsets.items()}


_BESIDE_LISTS = (
    "A consumer assigns these partitions and seeks to `offset` where meaning is next, to `offset` + 1 where it is "
    "last. Its bootstrap.servers become the target's."
)
BESIDE: Mapping[str, str] = {
    "csv": _BESIDE_LISTS,
    "jsonl": _BESIDE_LISTS,
    "spark": (
        "Start the query with this as `startingOffsets`, `subscribe` with the target's topics, its brokers, "
        "and a NEW checkpointLocation: the option counts only there. Batch numbers begin at 0 again: a sink "
        "that remembers them (Spark's file sink by its _spark_metadata, a foreachBatch that skips batches "
        "which it has had) drops the first batches in silence, so give it a new output folder too, or use "
        "--format spark-checkpoint. For stateless queries."
    ),
    SPARK_CHECKPOINT: (
        "Copy the query's checkpoint folder, replace the file offsets/N in the copy by this (and delete .N.crc beside "
        "it), let `subscribe` name the target's topics and its brokers, and start the query from "
        "the copy: it keeps its state, its other sources and its batch numbers."
    ),
    "flink": (
        "Stop the job with a savepoint; give the source OffsetsInitializer.offsets(this map), the target's "
        "topics and brokers, and a NEW uid; start from the savepoint with --allowNonRestoredState: with the "
        "old uid Flink would take the source's offsets of the savepoint."
    ),
    "flink-sql": (
        "One table for each topic. Start the statement without the source's state: a savepoint's offsets win "
        "over scan.startup.mode."
    ),
    "hudi": (
        "Pass it as --checkpoint, with hoodie.streamer.source.kafka.topic and the brokers of the target. One "
        "topic for each streamer."
    ),
    "druid": (
        "Suspend and terminate the supervisor: Druid refuses another topic for one that runs, and keeps its offsets "
        "until a hard reset. Submit the spec with the target's topic and brokers, `suspended` and with "
        "useEarliestOffset: true (partitions that are not in this body would start at the end without it), POST this "
        "to /druid/indexer/v1/supervisor/ID/resetOffsets, and resume."
    ),
    "routine-load": (
        "Doris: PAUSE ROUTINE LOAD, alter kafka_broker_list to the target's, then this in one statement, RESUME. A "
        "partition that it does not name starts at the log's end, and a 0 before the log's start is refused: write its "
        "start there. StarRocks, or where it is refused: make the job anew "
        "with this FROM KAFKA clause and the brokers."
    ),
    "connect": (
        "PATCH it to /connectors/NAME/offsets while the connector is STOPPED, with `topics` changed to the "
        "target's names. It has the same effect as `apply` of the group connect-NAME: do one of the two."
    ),
    "kcg": (
        "The holder's name is taken for the group's. Change the job's bootstrap.servers, and its start to the "
        "committed offsets of that group (Flink: OffsetsInitializer.committedOffsets). The start of a share group "
        "is set from the same file by kafka-share-groups --reset-offsets --from-file, from Kafka 4.4 on."
    ),
}


OPEN_BATCH = (
    "What that batch has written already is written twice, unless the sink undoes it: the plan's rows say where it "
    "begins and ends on the target, and count all of it as read twice."
)


def beside(plan: PositionPlan, form: str, holders: Collection[str]) -> list[str]:
    """Return what has to be known beside a form of these holders: the setting that changes, and what is not in it."""
    lines, rows = [BESIDE[form]], selected(plan, holders)
    if form == SPARK_CHECKPOINT:
        lines.append(f"N is {', '.join(str(o.batch) for o in map(plan.checkpoint, holders) if o)}.")
    chosen = {holder: plan.holders()[holder] for holder in holders}
    # Of all that were chosen: a holder without a single place has no row that could name it.
    if left := sum(offset is None for table in chosen.values() for offset in table.whole("target_offset")):
        lines.append(f"LEFT OUT: {many(left, 'position')} without a place on the target, as --untranslatable says.")
    left_open = _left_open(plan, chosen)
    lines += [f"WARNING: {name(c.subject)}: {safe(c.seen)}. {OPEN_BATCH}" for c in left_open]
    missing = [c for c in plan.header.checks if c.check == "holder-partitions" and c.subject in chosen]
    lines += [f"{name(c.subject)}: no position on some partitions ({safe(c.seen)})." for c in missing]
    others = [place for h in chosen for place in plan.without_place(h)] if form in EVERY_PARTITION else []
    if others:
        lines.append(
            f"{many(len(others), 'partition')} at {EVERY_PARTITION[form]}: "
            f"{some([f'{topic}-{partition}' for topic, partition in others], 5)}. Every partition has to be named, and "
            "nothing is known of these: from the beginning, no record is skipped. What has been read of them already "
            "is read again."
        )
    if form == "spark":
        lines += [
            f"WARNING: {name(o.holder)} keeps a state, and a new checkpoint begins without it: what it counts starts "
            f"anew. --format {SPARK_CHECKPOINT} keeps it."
            for o in plan.header.origins
            if o.is_stateful and o.holder in chosen
        ]
    skipping = [row for row in rows if may_skip(row)]
    if skipping:
        places = (f"{name(row.group)} {name(row.target_topic)}-{row.partition}" for row in skipping)
        lines.append(
            f"WARNING: {many(len(skipping), 'position')} MAY SKIP records, set where a log ends and not where the job "
            f"was: {some(places, 5)}."
        )
    inexact = [row for row in rows if row.rereads_at_most != 0 and not may_skip(row)]
    if inexact:
        lines.append(
            f"{many(len(inexact), 'position')} may read records twice: column rereads_at_most of --format csv."
        )
    if form in ("csv", "jsonl") and any(plan.meaning(r) is Meaning.LAST and not r.target_offset for r in rows):
        lines.append(
            f"WARNING: `{NONE}` stands where no record is done yet: start there from the beginning, not from -1."
        )
    return lines
