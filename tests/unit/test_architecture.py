"""The rules of the house: who may import whom, what stays pure, what is imported late, how large things may be."""

import ast
import gc
import re
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

import migrate

PACKAGE = Path(migrate.__file__).parent
TESTS = Path(__file__).parents[1]
MODULES = sorted(PACKAGE.rglob("*.py"))
# A wing imports itself and what stands before it. Only the last plugs the two adapters in, and nothing imports it.
WINGS = ("hall", "match", "mm2", "survey", "checks", "plan", "inventory", "apply", "show", "cli")
ADAPTERS = ("kafka", "spark", "holders")
HALL = {
    "__init__", "__main__", "clock", "commit_table", "described_group", "errors", "model", "ports", "progress",
    "row_table", "text", "whole_file", "write_outcome",
}  # fmt: skip
# What adapters implement, or run in their tasks.
BELOW_ADAPTERS = ("hall", "match", "mm2", "survey", "checks", "plan")
EDGES = {"pyspark", "py4j", "confluent_kafka", "click", "time", "random", "socket", "subprocess"}
PURE = ("match", "checks", "plan", "show")


def parsed(path: Path) -> ast.Module:
    """Parse a module with the garbage collector off.

    If a finalizer fails meanwhile, formatting its traceback parses too, and Python 3.11 raises SystemError here.
    """
    gc.disable()
    try:
        return ast.parse(path.read_text())
    finally:
        gc.enable()


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def wing(name: str) -> str:
    """The wing that a module's dotted name, below `migrate`, lies in."""
    first = name.split(".")[0]
    return (
        "hall" if first in HALL or first == "__version__" else first if first in WINGS + ADAPTERS else "without a wing"
    )


def wings_imported(path: Path) -> set[str]:
    return {wing(name.removeprefix("migrate.")) for name in imported(path) if name.startswith("migrate.")}


def allowed(where: str) -> set[str]:
    if where in ADAPTERS:
        return {where, *BELOW_ADAPTERS}
    below = set(WINGS[: WINGS.index(where) + 1])
    if where == "apply":  # what writes knows nothing of what only looks
        below.remove("inventory")
    return below | set(ADAPTERS) if where == "cli" else below


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_module_imports_its_own_wing_and_those_below_it(path: Path) -> None:
    where = path.parent.name if path.parent != PACKAGE else wing(path.stem)
    if path.name != "__main__.py":
        assert wings_imported(path) <= allowed(where)


@pytest.mark.parametrize("path", [p for w in PURE for p in sorted((PACKAGE / w).glob("*.py"))], ids=lambda p: p.stem)
def test_a_module_of_a_pure_wing_imports_no_edge(path: Path) -> None:
    assert not {name.split(".")[0] for name in imported(path)} & EDGES


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_only_the_command_line_and_the_adapters_have_the_machines_clock(path: Path) -> None:
    if path.parent.name not in ("cli", *ADAPTERS):
        assert "migrate.clock.SystemClock" not in imported(path)


# Modules without a test file of their own name: which tests hold them, and why there.
HELD_ELSEWHERE = {
    "ports": ("unit/kafka/test_hosted.py", "protocols only: their adapters are tested, mypy holds the shapes"),
    "cli/apply": ("unit/apply/test_life_of_a_plan.py", "its laws run apply, rollback and verify as commands"),
    "cli/follow_command": ("unit/cli/test_follow.py", "the words that the command is typed in"),
    "cli/followed": ("unit/cli/test_follow.py", "reads the status file that the command writes"),
    "cli/inventory_wiring": ("integration/test_long_group_records.py", "puts real clients together"),
    "cli/explain": ("unit/cli/test_main.py", "reads a plan and prints show/explain"),
    "cli/model_wiring": ("integration/test_models.py", "puts real clients together"),
    "cli/mm2_offsets": ("integration/test_status.py", "prints what clusters answer"),
    "cli/offline": ("unit/cli/test_main.py", "declares commands, which tests type as users do"),
    "cli/plan_wiring": ("unit/cli/test_wiring.py", "what the commands are plugged into is told together"),
    "apply/proof_logs": ("unit/apply/test_record_proof.py", "what a proof reads, beside what it makes of it"),
    "cli/report": ("unit/show/test_report_page.py", "writes the page that show makes"),
    "cli/status": ("unit/plan/test_status.py", "prints what plan/status and plan/watch tell"),
    "kafka/host": ("unit/kafka/test_hosted.py", "the other end of kafka/hosted, only ever started by it"),
    "kafka/rights": ("integration/test_security.py", "only brokers with ACLs tell"),
    "match/comparison": ("unit/match/test_tail_comparer.py", "values and a port, which both comparers use"),
    "match/protocol": ("unit/match/test_matcher.py", "values that the matcher exchanges"),
    "mm2/topics": ("unit/mm2/test_topic_reader.py", "values and a port: the reader returns them"),
    "survey/group_facts": ("unit/survey/test_remembered_facts.py", "values and a port"),
    "checks/positions": ("unit/plan/test_held.py", "plans with positions show each check, and what it blocks"),
    "survey/read_held": ("unit/plan/test_held.py", "plans with positions show what two looks give"),
    "holders/reader": ("spark/test_position_reader.py", "reads through Spark's own file systems"),
    "spark/java_client": ("integration/test_exact.py", "maps what only brokers answer"),
    "spark/java_commits": ("integration/test_exact_bytes.py", "reads what only brokers store"),
    "spark/python_workers": ("integration/test_cutover.py", "only a plan of real clusters has work for them"),
    "spark/questions": ("spark/test_comparer.py", "what the comparer asks, held here or in Spark"),
    "spark/scanner": ("integration/test_spark_reading.py", "reads what only brokers hold"),
    "spark/java_writer": ("integration/test_exact_bytes.py", "writes what only brokers store"),
}


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_module_has_a_test_of_its_own_name_or_a_reason_not_to(path: Path) -> None:
    module = path.relative_to(PACKAGE).with_suffix("")
    name = f"test_{module.name}.py"
    folders = [TESTS / "unit" / module.parent, *([TESTS / "spark"] if module.parent.name == "spark" else [])]
    has_own = module.name.startswith("__") or any((folder / name).is_file() for folder in folders)
    held = HELD_ELSEWHERE.get(str(module))
    assert has_own == (held is None), f"{module}: neither {name} nor a reason, or both"
    assert held is None or (TESTS / held[0]).is_file()


def test_no_module_of_a_wing_repeats_the_name_of_another_in_it() -> None:
    for wing_of_it in WINGS[1:]:
        assert not [p.name for p in (PACKAGE / wing_of_it).glob("*.py") if p.stem.startswith(f"{wing_of_it}_")]


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_what_a_module_holds_stays_small_enough_to_read(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 400
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ClassDef):
            assert lines_of(node) <= 200, f"class {node.name}"
        elif isinstance(node, ast.FunctionDef):
            named = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
            assert lines_of(node) <= 60, f"{node.name}()"
            assert len([name for name in named if name not in ("self", "cls")]) <= 7, f"{node.name}()"


def test_a_public_class_name_is_used_once() -> None:
    names = [
        node.name
        for path in MODULES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    assert sorted(names) == sorted(set(names))


def lines_of(node: ast.ClassDef | ast.FunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


@pytest.mark.parametrize("path", sorted(TESTS.rglob("*.py")), ids=lambda p: str(p.relative_to(TESTS)))
def test_no_test_module_is_imported_by_another_what_they_share_lies_in_builders(path):
    modules = {name for name in imported_names(path) if name.startswith("tests.")}
    assert not {name for name in modules if any(part.startswith("test_") for part in name.split("."))}


def imported_names(path: Path) -> set[str]:
    """Whatever is imported, also a module by its package: `from tests.unit import test_rows`."""
    found = imported(path)
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom):
            package = path.relative_to(TESTS.parent).parent.parts
            base = [*package[: len(package) - node.level + 1]] if node.level else []
            whole = ".".join([*base, *([node.module] if node.module else [])])
            found |= {whole, *(f"{whole}.{alias.name}" for alias in node.names if alias.name.startswith("test_"))}
    return found


def loaded_by(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(chr(10).join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return {name.split(".")[0] for name in done.stdout.split()}


def test_importing_the_package_and_its_command_line_loads_no_heavy_library():
    heavy = {"pyspark", "py4j", "confluent_kafka", "fastavro"}
    assert not loaded_by("import migrate, migrate.cli.main") & heavy


def test_showing_a_plan_loads_neither_spark_nor_the_kafka_client():
    assert not loaded_by("import migrate.plan.file, migrate.show.formats") & {"pyspark", "py4j", "confluent_kafka"}


def test_status_and_groups_load_no_spark():
    assert not loaded_by("import migrate.cli.status, migrate.cli.inventory, migrate.cli.compare") & {"pyspark", "py4j"}


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
