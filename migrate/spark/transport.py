"""Bulk transport between Python and Spark's JVM without Python workers, pandas or Arrow.

Into Spark, values travel as JSON documents of some thousand values each; out of it as columns of arrays: both are
handled by fast library code, while single rows cost microseconds each on both sides.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

DOCUMENT_SIZE = 10_000


def into_spark(
    spark: "SparkSession", rows: Iterable[Sequence[object]], schema: str, size: int = DOCUMENT_SIZE
) -> "DataFrame":
    """Return a DataFrame of `rows`; `schema` is DDL such as "id bigint, name string", in the rows' order.

    Values are what JSON can say (None is NULL); text may hold any character.
    """
    from pyspark.sql import DataFrame
    from pyspark.sql.functions import expr

    names = [field.split()[0] for field in schema.split(",")]
    jvm: Any = spark._jvm
    documents = jvm.java.util.ArrayList()
    source = iter(rows)
    while batch := [dict(zip(names, row, strict=True)) for row in islice(source, size)]:
        documents.add(json.dumps(batch))
    strings = spark._jsparkSession.createDataset(documents, jvm.org.apache.spark.sql.Encoders.STRING())
    frame = DataFrame(strings.toDF(), spark)
    if documents.size() > 1:
        # One document list is one partition; parsing is the slow part.
        frame = frame.repartition(min(documents.size(), spark.sparkContext.defaultParallelism))
    return frame.select(expr(f"inline(from_json(value, 'array<struct<{_struct_fields(schema)}>>'))"))


def out_of_spark(frame: "DataFrame", place: str) -> Iterator[tuple[Any, ...]]:
    """Run the query and yield its rows as plain tuples. No value may be NULL: arrays leave NULLs out.

    `place` is an integer expression over the frame's columns, see `bucket`.
    """
    for _, *columns in frame.groupBy(bucket(frame, place)).agg(*arrays(frame.columns)).collect():
        yield from zip(*columns, strict=True)


def bucket(frame: "DataFrame", place: str) -> "Column":
    """Return a column `bucket` that spreads rows evenly over a few arrays, one remainder of `place` each."""
    from pyspark.sql.functions import expr

    return expr(f"pmod({place}, {max(4, frame.sparkSession.sparkContext.defaultParallelism)})").alias("bucket")


def arrays(names: Sequence[str], where: str = "true") -> list["Column"]:
    """Return one array per column, all in the same order, of the rows `where` the condition holds."""
    from pyspark.sql.functions import expr

    return [expr(f"collect_list(`{name}`) filter (where {where})") for name in names]


def _struct_fields(schema: str) -> str:
    return ",".join(":".join(field.split()) for field in schema.split(","))
