"""Positions as Spark's own file systems give them: files of three forms, and checkpoints of real queries."""

import json
import sys
from pathlib import Path

import pytest

from migrate.errors import ClusterError, UsageError
from migrate.extras.positions.held import CheckpointAsked, HeldPosition, HolderKind, Meaning
from migrate.extras.positions.reader import HolderReader

POSITIONS = (HeldPosition("job", "orders", 0, 42), HeldPosition("job", "orders", 1, 8, Meaning.LAST))
DOCUMENTS = [
    {"holder": "job", "topic": "orders", "partition": 0, "offset": 42, "meaning": "next"},
    {"holder": "job", "topic": "orders", "partition": 1, "offset": 7, "meaning": "last"},
]


@pytest.fixture
def reader(spark):
    return HolderReader(lambda: spark)


def written(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("scheme", ["", "file:"])
def test_csv_and_json_lines_are_read_by_path_and_by_url(reader, tmp_path, scheme):
    csv = written(
        tmp_path / "a b.csv", "holder,topic,partition,offset,meaning\njob,orders,0,42,\njob,orders,1,7,last\n"
    )
    lines = written(tmp_path / "a.jsonl", "\n".join(map(json.dumps, DOCUMENTS)))
    for path in (csv, lines):
        read = reader.file(f"{scheme}{path}")
        assert (read.positions, read.kind, read.holder, read.batch) == (POSITIONS, HolderKind.FILE, "", None)
    assert reader.file(str(csv)).sha256 == reader.file(str(csv)).sha256 != reader.file(str(lines)).sha256


def test_parquet_is_read_whatever_whole_numbers_its_columns_hold(reader, spark, tmp_path):
    for offsets in ("int", "bigint", "string"):
        path = str(tmp_path / f"{offsets}.parquet")
        frame = spark.createDataFrame([tuple(d.values()) for d in DOCUMENTS], list(DOCUMENTS[0]))
        frame.selectExpr("holder", "topic", "partition", f"cast(offset as {offsets}) offset", "meaning").write.parquet(
            path
        )
        read = reader.file(path)
        assert sorted(read.positions) == sorted(POSITIONS)
        assert read.sha256 == reader.file(path).sha256


def test_what_is_wrong_in_parquet_is_said_by_its_row(reader, spark, tmp_path):
    path = str(tmp_path / "a.parquet")
    spark.sql("select 'job' holder, 't' topic, 0 partition, -1L offset").write.parquet(path)
    with pytest.raises(UsageError, match=r"a\.parquet, row 1: offset -1, which is latest to Spark; expected"):
        reader.file(path)


def test_bytes_that_are_no_text_are_refused_with_their_line(reader, tmp_path):
    path = written(tmp_path / "a.csv", b"holder,topic,partition,offset\njob,orders,0,1\n\xff,orders,1,1\n")
    with pytest.raises(UsageError, match=r"a\.csv, line 3: no UTF-8 text"):
        reader.file(str(path))


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_a_file_that_is_not_there_or_holds_nothing_is_refused(reader, tmp_path, name):
    with pytest.raises(UsageError, match="cannot be read"):
        reader.file(str(tmp_path / name))
    if not name.endswith("parquet"):
        path = written(tmp_path / name, "holder,topic,partition,offset\n" if name.endswith("csv") else "\n")
        with pytest.raises(UsageError, match="holds no position"):
            reader.file(str(path))


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_a_folder_of_files_is_refused_where_one_file_is_expected(reader, tmp_path, name):
    (tmp_path / name).mkdir()
    (tmp_path / name / "part-0").write_text("holder,topic,partition,offset\n")
    with pytest.raises(UsageError, match="is a folder; expected a file"):
        reader.file(str(tmp_path / name))


def test_a_file_system_that_spark_does_not_know_is_named(reader):
    with pytest.raises((UsageError, ClusterError), match="cannot be read"):
        reader.file("nowhere://jobs/a.csv")


@pytest.fixture
def query(spark, tmp_path):
    """A query over a rate source that was stopped, with a Kafka source's line put beside it."""
    frame = spark.readStream.format("rate").option("rowsPerSecond", 5).load()
    folder, out = tmp_path / "checkpoint", tmp_path / "out"
    running = (
        frame.writeStream.format("parquet").option("path", str(out)).option("checkpointLocation", str(folder))
        .trigger(availableNow=True).start()
    )  # fmt: skip
    assert running.awaitTermination(60)
    newest = max(int(p.name) for p in (folder / "offsets").iterdir() if p.name.isdecimal())
    with (folder / "offsets" / str(newest)).open("a") as file:  # its .crc stays as it was
        file.write('\n{"orders":{"0":42,"1":7}}')
    return folder, out, newest


def test_a_checkpoint_of_a_real_query_is_read(reader, query):
    folder, out, newest = query
    read = reader.checkpoint(CheckpointAsked("q", str(folder)))
    assert read.positions == (HeldPosition("q", "orders", 0, 42), HeldPosition("q", "orders", 1, 7))
    assert (read.kind, read.batch, read.open_batch) == (HolderKind.SPARK_CHECKPOINT, newest, None)
    assert not read.is_stateful and read.content.startswith("v1\n")
    assert reader.remembers_batches(str(out)) and not reader.remembers_batches(str(folder))
    before = read.sha256
    assert read.open_ends == ()
    (folder / "offsets" / str(newest + 1)).write_text(read.content.replace('"0":42', '"0":50'))
    again = reader.checkpoint(CheckpointAsked("q", str(folder)))
    assert (again.batch, again.open_batch) == (newest, newest + 1) and again.sha256 != before
    assert again.positions == read.positions
    assert again.open_ends == (HeldPosition("q", "orders", 0, 50), HeldPosition("q", "orders", 1, 7))
    (folder / "state" / "0").mkdir(parents=True)
    assert reader.checkpoint(CheckpointAsked("q", str(folder))).is_stateful


def test_a_folder_that_is_no_checkpoint_is_refused(reader, tmp_path):
    with pytest.raises(UsageError, match="is not the checkpoint of a Spark query that has run"):
        reader.checkpoint(CheckpointAsked("q", str(tmp_path / "none")))


@pytest.mark.parametrize("read", [lambda r: r.file("a.csv"), lambda r: r.checkpoint(CheckpointAsked("q", "folder"))])
def test_nothing_of_pyspark_is_imported_before_the_thread_that_starts_spark_has_done_so(monkeypatch, read):
    class NotUp(Exception):
        pass

    def not_up():
        raise NotUp

    monkeypatch.setitem(sys.modules, "pyspark.errors", None)
    with pytest.raises(NotUp):
        read(HolderReader(not_up))
