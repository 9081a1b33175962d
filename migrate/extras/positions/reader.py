"""Reads positions through Spark, so that every file system that Spark knows will do: s3a, abfss, hdfs, a path."""

import hashlib
import io
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from migrate.errors import ClusterError, UsageError
from migrate.extras.positions.checkpoint import batches, kafka_began, kafka_offsets
from migrate.extras.positions.held import (
    CheckpointAsked,
    HeldPosition,
    HolderKind,
    PositionsRead,
    parse_csv,
    parse_json_lines,
)
from migrate.text import name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARQUET = ".parquet"
JSON_LINES = (".jsonl", ".ndjson", ".json")
SUFFIXES = (".csv", *JSON_LINES, PARQUET)
# Written by Spark's file sink: which files belong to which batch.
SINK_LOG = "_spark_metadata"


def refuse_suffix(origin: str) -> None:
    """Raise `UsageError` for a file whose suffix tells no format."""
    if not origin.lower().endswith(SUFFIXES):
        raise UsageError(
            f"--positions {name(origin)}: unknown format.",
            f"Name a file that ends in {', '.join(SUFFIXES)}.",
        )


class HolderReader:
    """Reads files and checkpoint folders with Spark's own file systems; `spark` waits for its session.

    The file systems are instances of this reader's own, which do not look at the checksums beside local files: whoever
    edits a file of a checkpoint by hand leaves the old one there, and Spark reads such a file too.
    """

    def __init__(self, spark: "Callable[[], SparkSession]") -> None:
        self._spark = spark

    def file(self, origin: str) -> PositionsRead:
        """Read a file of positions by its suffix; raises `UsageError` for what is malformed."""
        refuse_suffix(origin)
        with self._reporting(origin):
            if origin.lower().endswith(PARQUET):
                positions, digest = self._parquet(origin)
            else:
                positions, digest = self._text(origin)
        if not positions:
            raise UsageError(f"{name(origin)} holds no position.", "Leave it out, or write the positions into it.")
        return PositionsRead(origin, HolderKind.FILE, digest, positions=positions)

    def checkpoint(self, asked: CheckpointAsked) -> PositionsRead:
        """Read the last finished batch of a checkpoint folder."""
        with self._reporting(asked.url):
            begun, finished = self._names(f"{asked.url}/offsets"), self._names(f"{asked.url}/commits")
            found = batches(begun, finished, name(asked.url))
            where = f"{asked.url}/offsets/{found.finished}"
            content = _decoded(self._content(where), where)
            positions = _positions_of(asked.holder, content, where)
            ends: tuple[HeldPosition, ...] = ()
            if found.begun is not None:
                where = f"{asked.url}/offsets/{found.begun}"
                ends = _positions_of(asked.holder, _decoded(self._content(where), where), where)
            stateful = bool(self._names(f"{asked.url}/state"))
            began = self._began(asked)
            earlier: tuple[HeldPosition, ...] = ()
            if str(asked.batch) in begun:
                where = f"{asked.url}/offsets/{asked.batch}"
                earlier = _positions_of(asked.holder, _decoded(self._content(where), where), where)
        digest = hashlib.sha256(f"{found.finished} {found.begun}\n{content}".encode()).hexdigest()
        return PositionsRead(
            asked.url, HolderKind.SPARK_CHECKPOINT, digest, asked.holder, found.finished, content, stateful,
            positions=positions, open_batch=found.begun, open_ends=ends, began=began, asked_batch=earlier,
        )  # fmt: skip

    def _began(self, asked: CheckpointAsked) -> tuple[HeldPosition, ...]:
        """Return what the sources of a query began at: the furthest where two have a partition."""
        began: dict[tuple[str, int], int] = {}
        for source in self._names(f"{asked.url}/sources"):
            if "0" in self._names(f"{asked.url}/sources/{source}"):
                content = self._content(f"{asked.url}/sources/{source}/0").decode("utf-8", "replace")
                for topic, partitions in kafka_began(content).items():
                    for partition, offset in partitions.items():
                        began[topic, partition] = max(offset, began.get((topic, partition), offset))
        return tuple(HeldPosition(asked.holder, *place, offset) for place, offset in sorted(began.items()))

    def remembers_batches(self, sink: str) -> bool:
        """Return whether Spark's file sink keeps its log of batches in a folder; raises `UsageError` for no folder."""
        with self._reporting(sink):
            with self._at(sink) as (files, path):
                if not files.exists(path):
                    raise UsageError(
                        f"--sink {name(sink)}: there is no such folder, so where the query writes is not known.",
                        "Name the folder that the query writes to.",
                    )
            return bool(self._names(f"{sink}/{SINK_LOG}"))

    def _text(self, origin: str) -> tuple[tuple[HeldPosition, ...], str]:
        raw = self._content(origin)
        text = _decoded(raw, origin)
        if origin.lower().endswith(JSON_LINES):
            # Not at what else Unicode takes for the end of a line: a name may hold it.
            positions = parse_json_lines(text.split("\n"), name(origin))
        else:
            positions = parse_csv(io.StringIO(text, newline=""), name(origin))
        return tuple(positions), hashlib.sha256(raw).hexdigest()

    def _parquet(self, origin: str) -> tuple[tuple[HeldPosition, ...], str]:
        # As JSON lines: what is wrong with a value is found by the same code, and its type is Parquet's own.
        # A name that a field lacks is its row's fault, as in the other formats.
        frame = self._spark().read.parquet(origin)
        rows = [row[0] for row in frame.selectExpr("to_json(struct(*))").toLocalIterator(prefetchPartitions=True)]
        digest = hashlib.sha256()
        for row in sorted(rows):
            digest.update(row.encode() + b"\n")
        return tuple(parse_json_lines(rows, name(origin), "row")), digest.hexdigest()

    @contextmanager
    def _reporting(self, origin: str) -> Iterator[None]:
        # Not before Spark is up: what starts it imports pyspark in a thread, and two at once find half of it.
        self._spark()
        with reporting_java(origin):
            yield

    @contextmanager
    def _at(self, url: str) -> Iterator[tuple[Any, Any]]:
        """Yield a path, and the file system that it is in."""
        session = self._spark()
        jvm, conf = session._jvm, session._jsc.hadoopConfiguration()
        path = jvm.org.apache.hadoop.fs.Path(url)
        default = jvm.org.apache.hadoop.fs.FileSystem.getDefaultUri(conf)
        files = jvm.org.apache.hadoop.fs.FileSystem.newInstance(
            path.toUri() if path.toUri().getScheme() else default, conf
        )
        try:
            files.setVerifyChecksum(False)
            yield files, path
        finally:
            files.close()

    def _names(self, url: str) -> list[str]:
        """Return the names in a folder; none where there is no such folder."""
        with self._at(url) as (files, path):
            if not files.exists(path):
                return []
            return [status.getPath().getName() for status in files.listStatus(path)]

    def _content(self, url: str) -> bytes:
        with self._at(url) as (files, path), tempfile.TemporaryDirectory(prefix="mm2-migrate-") as folder:
            if files.getFileStatus(path).isDirectory():
                # All that is in it would be copied, and none of it read.
                raise UsageError(
                    f"{name(url)} is a folder; expected a file.",
                    "Name one file, or a folder of Parquet whose name ends with .parquet.",
                )
            copy = Path(folder) / "copy"
            target = self._spark()._jvm.org.apache.hadoop.fs.Path(copy.as_uri())
            # Through a file: py4j would hold the whole of it three times, as text.
            files.copyToLocalFile(False, path, target, True)
            return copy.read_bytes()


def _positions_of(holder: str, content: str, where: str) -> tuple[HeldPosition, ...]:
    """Return what the Kafka sources of a batch want next."""
    return tuple(
        HeldPosition(holder, topic, partition, offset)
        for topic, partitions in sorted(kafka_offsets(content, name(where)).items())
        for partition, offset in sorted(partitions.items())
    )


def _decoded(raw: bytes, origin: str) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise UsageError(
            f"{name(origin)}, line {line}: no UTF-8 text; expected UTF-8.", "Nothing of the file was used."
        ) from None


@contextmanager
def reporting_java(origin: str) -> Iterator[None]:
    """Raise what Spark and its file systems say as an error of ours, in a line."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except Py4JJavaError as error:
        java = error.java_exception
        kind, said = java.getClass().getSimpleName(), str(java.getMessage()).split("\n")[0]
        if kind in ("FileNotFoundException", "NoSuchFileException", "UnsupportedFileSystemException"):
            raise UsageError(f"{name(origin)} cannot be read: {kind}: {said}.", "Check the path.") from error
        raise ClusterError(
            f"{name(origin)} cannot be read: {kind}: {said}.",
            "Check the path, and what Spark needs for that file system (--spark-conf).",
        ) from error
    except PySparkException as error:
        said = str(error).split("\n")[0]
        raise UsageError(f"{name(origin)} cannot be read: {said}", "Check the path, and that it is Parquet.") from error
