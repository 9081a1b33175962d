"""Our own package for Spark's executors, where they are not this very process's machine and Python."""

import zipfile
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import migrate
from migrate.spark.session_settings import is_local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ARCHIVE = "mm2-migrate-package.zip"


def ship_package(spark: "SparkSession") -> None:
    """Send the installed package to all executors, once per Spark application; a local master needs nothing."""
    context = spark.sparkContext
    if is_local(context.master) or any(name.endswith(ARCHIVE) for name in context._python_includes):
        return
    archive = Path(_folder().name, ARCHIVE)
    pack(archive)
    context.addPyFile(str(archive))


@cache
def _folder() -> "TemporaryDirectory[str]":
    """Return a folder that lasts as long as this process: executors fetch what is in it when they first need it."""
    return TemporaryDirectory(prefix="mm2-migrate-")


def pack(archive: Path) -> None:
    """Write the package's modules into a zip from which Python can import them."""
    package = Path(migrate.__file__).parent
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(package.rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                packed.write(path, path.relative_to(package.parent))
