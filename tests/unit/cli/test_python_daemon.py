"""Where Python workers find pyspark."""

import importlib
from pathlib import Path

import pyspark

from migrate.cli.python_daemon import without_copies
from migrate.session import clusters

SITE = str(Path(pyspark.__file__).parents[1])
LIB = f"{SITE}/pyspark/python/lib"
COPIES = [f"{LIB}/pyspark.zip", f"{LIB}/py4j-0.10.9.9-src.zip", f"{SITE}/pyspark/jars/spark-core_2.13-4.0.0.jar"]


def test_workers_take_the_installed_pyspark_instead_of_its_copy_without_compiled_code():
    assert without_copies(["", *COPIES, "/mine", SITE]) == ["", "/mine", SITE]


def test_what_is_not_sparks_own_stays_zip_or_not():
    assert without_copies([*COPIES, "/mine/package.zip", SITE]) == ["/mine/package.zip", SITE]


def test_a_pyspark_that_is_nowhere_else_stays_on_the_path():
    elsewhere = ["/opt/spark/python/lib/pyspark.zip", "/opt/spark/python/lib/py4j-src.zip", "/mine", SITE]
    assert without_copies(elsewhere) == elsewhere
    assert without_copies([*COPIES, "/mine"]) == [*COPIES, "/mine"]
    assert without_copies(["pyspark.zip", SITE]) == ["pyspark.zip", SITE]


def test_a_path_without_pyspark_s_copy_keeps_its_zips():
    assert without_copies(["/mine/package.zip", SITE]) == ["/mine/package.zip", SITE]


def test_spark_is_told_a_module_that_there_is():
    assert callable(importlib.import_module(clusters.DAEMON).main)
