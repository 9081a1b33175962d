"""The import rules: pure modules stay pure, heavy libraries are imported late, nothing points the wrong way."""

import ast
import re
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

import migrate

PACKAGE = Path(migrate.__file__).parent
PURE = (
    "alignment", "anchors", "bytesize", "calibration", "checklist", "checks", "clusterchecks", "comparison",
    "connectoffsets", "connectors", "connecttopics", "documentschema", "drain", "drift", "duration",
    "equality", "errors", "exactadmin", "examination", "expiry", "explain", "fence", "fetchplan", "filters",
    "floor", "flow", "flowfacts", "forecast", "groupchecks", "groupfacts", "grouprecords", "groupsurvey",
    "guard", "history", "jaas", "kindchecks", "knownlog", "lag", "logreader", "logstart", "matcher",
    "matching", "matchtask", "mirror", "mm2tasks", "model", "naming", "nextrecord", "notwritten", "otherlog",
    "outcome", "pace", "pastruns", "place", "plainmirror", "plan", "plandiff", "planning", "policies",
    "ports", "producers", "recordproof", "records", "recordsurvey", "reportafter", "reportcharts",
    "reportdata", "reportpage", "results", "rights", "rightsexam", "rowchecks", "rowresults", "rows", "runs",
    "show", "showcsv", "showdiff", "showexplain", "showgroups", "showjson", "showverify", "showwaves",
    "status", "statusdocument", "statuswatch", "streams", "table", "tail", "tailcomparer", "terminal",
    "topicchecks", "totals", "translation", "undo", "verification", "watching", "waves", "wire",
)  # fmt: skip
EDGES = {"pyspark", "py4j", "confluent_kafka", "click", "time", "datetime", "random", "socket", "subprocess"}


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


@pytest.mark.parametrize("module", PURE)
def test_a_pure_module_imports_no_edge(module):
    names = imported(PACKAGE / f"{module}.py")
    assert not {name.split(".")[0] for name in names} & EDGES
    assert not {n for n in names if n.startswith(("migrate.spark", "migrate.kafka", "migrate.cli"))}


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_spark_and_kafka_adapters_do_not_know_each_other_and_nothing_imports_the_command_line(path):
    names = imported(path)
    folder = path.parent.name
    if folder == "spark":
        assert not {n for n in names if n.startswith("migrate.kafka")}
    if folder == "kafka":
        assert not {n for n in names if n.startswith("migrate.spark")}
    if path.name not in ("__main__.py",):
        assert "migrate.cli" not in names


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_module_stays_small_enough_to_read(path):
    assert len(path.read_text().splitlines()) <= 400


def loaded_by(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(chr(10).join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return {name.split(".")[0] for name in done.stdout.split()}


def test_importing_the_package_and_its_command_line_loads_no_heavy_library():
    heavy = {"pyspark", "py4j", "confluent_kafka", "fastavro"}
    assert not loaded_by("import migrate, migrate.cli") & heavy


def test_showing_a_plan_loads_neither_spark_nor_the_kafka_client():
    assert not loaded_by("import migrate.planfile, migrate.show") & {"pyspark", "py4j", "confluent_kafka"}


def test_status_loads_no_spark():
    assert not loaded_by("import migrate.statuscommand") & {"pyspark", "py4j"}


# Distributions whose modules are named otherwise; py4j is pyspark's own, markupsafe jinja2's.
DISTRIBUTIONS = {"confluent_kafka": "confluent-kafka", "yaml": "pyyaml", "py4j": "pyspark", "markupsafe": "jinja2"}


def test_whatever_the_product_imports_is_installed_with_it():
    settings = ConfigParser()
    settings.read(PACKAGE.parent / "setup.cfg")

    def named(section, option):
        lines = settings[section][option].splitlines()
        return {re.split(r"[<>=\[]", line)[0].lower() for line in lines if line and not line.startswith("#")}

    required, notebook = named("options", "install_requires"), named("options.extras_require", "notebook")
    for path in PACKAGE.rglob("*.py"):
        tops = {name.split(".")[0] for name in imported(path)} - set(sys.stdlib_module_names) - {"migrate"}
        allowed = required | notebook if path.name.startswith("review") else required
        assert {DISTRIBUTIONS.get(top, top) for top in tops} <= allowed, path.name
