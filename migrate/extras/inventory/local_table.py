"""A Parquet table that was exported, read into this process: notebooks need no reader of their own."""

from typing import TYPE_CHECKING, Any

from migrate.errors import MigrateError, Refused
from migrate.spark.background import background_spark
from migrate.spark.java_errors import root_cause

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_ROWS = 2_000_000


def table_rows(url: str, most: int = MOST_ROWS) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return the columns of a table and its rows; timestamps are in ms since 1970.

    A Spark session of our own starts for it, and ends. Raises `Refused` where there are more than `most` rows.
    """
    with background_spark("local[1]", {}) as spark:
        return rows_through(spark(), url, most)


def rows_through(spark: "SparkSession", url: str, most: int = MOST_ROWS) -> tuple[list[str], list[tuple[Any, ...]]]:
    """As `table_rows`, through a session that is there."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        table = spark.read.parquet(url)
        found = table.selectExpr(
            *(f"unix_millis(`{n}`) as `{n}`" if kind == "timestamp" else f"`{n}`" for n, kind in table.dtypes)
        )
        # One more tells that there are too many, and is all that is held of them.
        rows = [tuple(row) for row in found.limit(most + 1).collect()]
    except (Py4JError, PySparkException) as error:
        raise MigrateError(
            f"{url} cannot be read: {root_cause(error)}.", "Name the folder that --format parquet has written."
        ) from error
    if len(rows) > most:
        raise Refused(
            f"{url} has more than {most:,} rows, which a notebook does not hold.",
            "Make it anew with a longer --bucket, or for fewer groups.",
        )
    return found.columns, rows
