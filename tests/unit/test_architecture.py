"""The laws of the layout: who may import whom, what stays pure, what is imported late, what is installed."""

import ast
import gc
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from configparser import ConfigParser
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "migrate"
# A wing imports itself and what stands before it. `session` plugs the adapters in.
WINGS = ("hall", "match", "mm2", "survey", "checks", "plan", "apply", "show", "session", "cli", "extras")
ADAPTERS = ("kafka", "spark")
HALL = {
    "__init__", "__main__", "clock", "commit_table", "described_group", "errors", "model", "ports", "progress",
    "row_table", "silence", "text", "token_command", "watch", "whole_file", "write_outcome",
}  # fmt: skip
# Modules of `cli` that read or examine by Spark or Kafka themselves, beside what a session gives them.
BY_THEMSELVES = {"doctor", "version"}
# What adapters implement, or run in their tasks.
BELOW_ADAPTERS = ("hall", "match", "mm2", "survey", "checks", "plan")
EDGES = {"pyspark", "py4j", "confluent_kafka", "click", "time", "random", "socket", "subprocess"}
PURE = ("match", "checks", "plan", "show")


def modules(folder: Path) -> list[Path]:
    """All modules below a folder; a folder that was renamed must not pass for one that breaks no rule."""
    found = sorted(folder.rglob("*.py"))
    assert found, f"no module in {folder}"
    return found


def place(path: Path) -> str:
    return str(path.relative_to(ROOT))


def parsed(path: Path) -> ast.Module:
    """Parse a module with the garbage collector off.

    If a finalizer fails meanwhile, formatting its traceback parses too, and Python 3.11 raises SystemError here.
    """
    gc.disable()
    try:
        return ast.parse(path.read_text())
    finally:
        gc.enable()


@cache
def imported(path: Path) -> frozenset[str]:
    """Every dotted name that a module imports, at any depth: `from . import x` of a/b.py as both `a` and `a.x`."""
    package, found = path.relative_to(ROOT).parent.parts, set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            found |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    return frozenset(found)


def wing(name: str) -> str:
    """The wing that a module's dotted name, below `migrate`, lies in."""
    first = name.split(".")[0]
    if first in HALL or first == "__version__":
        return "hall"
    return first if first in WINGS + ADAPTERS else "none"


def wing_of(path: Path) -> str:
    return wing(".".join(path.relative_to(PACKAGE).with_suffix("").parts))


def wings_imported(path: Path) -> set[str]:
    return {wing(name.removeprefix("migrate.")) for name in imported(path) if name.startswith("migrate.")}


def allowed(where: str) -> set[str]:
    if where in ADAPTERS:
        return {where, *BELOW_ADAPTERS}
    below = set(WINGS[: WINGS.index(where) + 1])
    return below | set(ADAPTERS) if where in ("session", "cli", "extras") else below


def test_a_module_imports_its_own_wing_and_those_below_it() -> None:
    offenders = []
    for path in modules(PACKAGE):
        where = wing_of(path)
        if where == "none":
            offenders.append(f"{place(path)} lies in no wing")
        elif path.name != "__main__.py" and (above := wings_imported(path) - allowed(where)):
            offenders.append(f"{place(path)} imports from {', '.join(sorted(above))}")
    assert not offenders, "\n".join(offenders)


def importing(paths: Iterable[Path], forbidden: Callable[[str], bool]) -> str:
    """Which of these modules import what they must not, a line each."""
    return "\n".join(f"{place(path)} imports {name}" for path in paths for name in imported(path) if forbidden(name))


def test_only_the_session_makes_clients_and_sparks_but_for_what_reads_by_them_itself() -> None:
    commands = (path for path in modules(PACKAGE / "cli") if path.stem not in BY_THEMSELVES)
    assert not importing(commands, lambda name: wing(name.removeprefix("migrate.")) in ADAPTERS)


def test_an_extra_imports_no_other_and_only_the_list_of_commands_names_one() -> None:
    extras = {path.name for path in (PACKAGE / "extras").iterdir() if (path / "__init__.py").is_file()}
    offenders = []
    for path in modules(PACKAGE):
        if wing_of(path) == "extras":
            own = path.relative_to(PACKAGE / "extras").parts[0]
            others = {name for name in imported(path) if name.startswith("migrate.extras.")}
            if foreign := {name for name in others if name.split(".")[2] not in (own, own.removesuffix(".py"))}:
                offenders.append(f"{place(path)} imports {', '.join(sorted(foreign))}")
        elif path.stem != "main" and (named := re.findall(r"migrate[./]extras[./]\w+", path.read_text())):
            offenders.append(f"{place(path)} names {', '.join(named)}")
    for path in modules(ROOT / "tests"):
        of = path.relative_to(ROOT / "tests").parts
        own = of[1] if of[0] == "extras" else ""
        names = {name.split(".")[2] for name in imported(path) if re.match(r"(migrate|tests)\.extras\.\w", name)}
        if foreign := (names & extras) - {own}:
            offenders.append(f"{place(path)} imports from {', '.join(sorted(foreign))}")
    assert not offenders, "\n".join(offenders)


def test_a_module_of_a_pure_wing_imports_no_edge() -> None:
    pure = (path for wing in PURE for path in modules(PACKAGE / wing))
    assert not importing(pure, lambda name: name.split(".")[0] in EDGES)


def test_of_what_shows_only_what_notebooks_call_knows_files() -> None:
    others = (path for path in modules(PACKAGE / "show") if not path.name.startswith("review"))
    assert not importing(others, lambda name: name == "pathlib.Path")


def test_only_the_command_line_and_the_adapters_have_the_machines_clock() -> None:
    elsewhere = (path for path in modules(PACKAGE) if wing_of(path) not in ("cli", "extras", *ADAPTERS))
    assert not importing(elsewhere, lambda name: name == "migrate.clock.SystemClock")


def test_no_test_module_is_imported_by_another_what_they_share_lies_in_builders() -> None:
    assert not importing(modules(ROOT / "tests"), lambda name: bool(re.match(r"tests\.(.*\.)?test_", name)))


@pytest.mark.parametrize(
    ("statement", "left_out"),
    [
        # Every command pays at its start for what all of them import.
        ("import migrate, migrate.cli.main", r"(pyspark|py4j|confluent_kafka|fastavro|migrate\.checks)(\..*)?"),
        ("import migrate.plan.file, migrate.show.plan_export", "pyspark|py4j|confluent_kafka"),
        ("from migrate.show import review, review_outcome, review_charts", "pyspark|py4j|confluent_kafka"),
        ("import migrate.cli.status", "pyspark|py4j"),
        (
            "import click; from migrate.cli.main import cli; cli.get_help(click.Context(cli))",
            r"migrate\.cli\.(?!console|main).*",
        ),
    ],
)
def test_nothing_is_loaded_before_it_is_needed(statement: str, left_out: str) -> None:
    code = f"import sys; {statement}; print(chr(10).join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    loaded = done.stdout.split()
    assert "migrate" in loaded and not [name for name in loaded if re.fullmatch(left_out, name)]


# Distributions whose modules are named otherwise; py4j is pyspark's own, markupsafe jinja2's.
DISTRIBUTIONS = {
    "aws_msk_iam_sasl_signer": "aws-msk-iam-sasl-signer-python",
    "confluent_kafka": "confluent-kafka",
    "yaml": "pyyaml",
    "py4j": "pyspark",
    "markupsafe": "jinja2",
}


def test_whatever_the_product_imports_is_installed_with_it():
    settings = ConfigParser()
    settings.read(ROOT / "setup.cfg")

    def named(section, option):
        lines = settings[section][option].splitlines()
        return {re.split(r"[<>=\[]", line)[0].lower() for line in lines if line and not line.startswith("#")}

    required, notebook = named("options", "install_requires"), named("options.extras_require", "notebook")
    msk_iam = named("options.extras_require", "msk-iam")
    offenders = []
    for path in modules(PACKAGE):
        tops = {name.split(".")[0] for name in imported(path)} - set(sys.stdlib_module_names) - {"migrate"}
        extra = notebook if path.name.startswith("review") else msk_iam if path.name == "msk_iam.py" else set()
        if lacking := {DISTRIBUTIONS.get(top, top) for top in tops} - required - extra:
            offenders.append(f"{place(path)} imports {', '.join(sorted(lacking))}")
    assert not offenders, "\n".join(offenders)
