"""A folder of Parquet files, written by Spark wherever Hadoop's file systems reach; it appears whole or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from migrate.errors import MigrateError, Refused, UsageError
from migrate.extras.offsets_topic.request import is_url
from migrate.spark.java_errors import innermost, java_exception, root_cause
from migrate.spark.session_settings import is_local

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OWNER_ONLY = "700"


@dataclass(frozen=True)
class TableFolder:
    """Where a table goes: `out` is a path of this machine, or a URL."""

    spark: "SparkSession"
    out: str

    def refuse_existing(self) -> None:
        """Raise `Refused` if something is there, `UsageError` if executors elsewhere would each write to their own."""
        if not is_url(self.out) and not is_local(self.spark.sparkContext.master):
            raise UsageError(
                f"--out {self.out} is a path of this machine, and Spark's executors run on others.",
                "Name a place that all of them share by its URL: s3a://..., hdfs://..., file:///... of a shared disk.",
            )
        with self._reporting():
            if self._files.exists(self._path(self._url)):
                raise Refused(f"{self.out} exists: it is not overwritten.", "Choose another --out, or move it away.")

    def write(self, table: "DataFrame") -> int:
        """Write the table beside its place, in a folder that its owner alone may open; return how many rows it has."""
        with self._reporting():
            self.discard()
            permission = self._jvm.org.apache.hadoop.fs.permission.FsPermission(OWNER_ONLY)
            self._files.mkdirs(self._path(self._scratch), permission)
            self._files.setPermission(self._path(self._scratch), permission)
            rows = f"{self._scratch}/rows"
            table.write.parquet(rows)
            self._files.setPermission(self._path(rows), permission)
            return int(self.spark.read.schema(table.schema).parquet(rows).count())

    def keep(self) -> None:
        """Give what was written its name."""
        self.refuse_existing()
        with self._reporting():
            if not self._files.rename(self._path(f"{self._scratch}/rows"), self._path(self._url)):
                raise MigrateError(f"{self.out} cannot be written.", "Fix that, or choose another --out.")

    def discard(self) -> None:
        """Remove what has no name yet; where the JVM is gone, only what is on this machine."""
        from py4j.protocol import Py4JError

        try:
            self._files.delete(self._path(self._scratch), True)
        except (Py4JError, OSError):
            if is_url(self.out):
                raise
            rmtree(self._scratch.removeprefix("file://"), ignore_errors=True)

    @property
    def _url(self) -> str:
        return self.out if is_url(self.out) else f"file://{Path(self.out).absolute()}"

    @property
    def _scratch(self) -> str:
        folder, _, name = self._url.rstrip("/").rpartition("/")
        return f"{folder}/.{name}.{_RUN}"

    @property
    def _jvm(self) -> Any:
        return self.spark._jvm

    def _path(self, url: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(url)

    @property
    def _files(self) -> Any:
        return self._path(self._url).getFileSystem(self.spark._jsparkSession.sessionState().newHadoopConf())

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            yield
        except (Py4JError, PySparkException) as error:
            if _is_of_reading(error):
                raise
            raise MigrateError(
                f"{self.out} cannot be written: {root_cause(error)}.", "Fix that, or choose another --out."
            ) from error


@contextmanager
def new_folder(spark: "SparkSession", out: str) -> Iterator[TableFolder]:
    """Yield a folder that gets its name in the end, once it is whole; else nothing is left.

    Raises as `TableFolder.refuse_existing` does.
    """
    folder = TableFolder(spark, out)
    folder.refuse_existing()
    try:
        yield folder
        folder.keep()
    finally:
        folder.discard()


def _is_of_reading(error: BaseException) -> bool:
    """True for what Kafka, or Spark's source for it, says: the table is read while it is written."""
    throwable = java_exception(error)
    return throwable is not None and "kafka" in innermost(throwable).getClass().getName()


_RUN = uuid4().hex[:8]
