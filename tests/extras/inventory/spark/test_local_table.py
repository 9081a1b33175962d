"""An exported table comes back as it was written, or it is refused."""

import pytest

from migrate.errors import MigrateError, Refused
from migrate.extras.inventory.local_table import rows_through
from tests.spark.records import EPOCH, EPOCH_MS


def test_a_table_is_read_with_its_times_in_ms(spark, tmp_path):
    rows = [(EPOCH, 'g,"1', 5, None), (EPOCH, "h", None, 0.5)]
    spark.createDataFrame(rows, "time timestamp, `group` string, lag bigint, rate double").write.parquet(
        f"{tmp_path}/h"
    )
    names, found = rows_through(spark, f"{tmp_path}/h")
    assert names == ["time", "group", "lag", "rate"]
    assert sorted(found) == [(EPOCH_MS, 'g,"1', 5, None), (EPOCH_MS, "h", None, 0.5)]


def test_more_than_a_notebook_holds_is_refused_and_what_is_no_table_is_one_line(spark, tmp_path):
    spark.range(5).write.parquet(f"{tmp_path}/h")
    assert len(rows_through(spark, f"{tmp_path}/h", 5)[1]) == 5
    with pytest.raises(Refused, match="more than 4 rows"):
        rows_through(spark, f"{tmp_path}/h", 4)
    with pytest.raises(MigrateError, match="cannot be read"):
        rows_through(spark, f"{tmp_path}/absent")
