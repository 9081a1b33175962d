"""`python -m scripts.sizing`: how large the product is, and how much of it a command reaches."""

import argparse
import ast
import io
import json
import os
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

TREE = Path(__file__).parents[1]
PACKAGE = "migrate"
EXTRAS = f"{PACKAGE}.extras"
STARTS = ("cli.plan", "cli.apply")
COMMANDS = ("plan", "status", "groups export")
NOT_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
}  # fmt: skip
LATE = (ast.FunctionDef, ast.AsyncFunctionDef)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
# Prints how many options each command has; argv names the commands.
COUNT_OPTIONS = """
import json, sys
import click
from migrate.cli.main import cli

def options(words):
    command = cli
    for word in words.split():
        command = command.commands[word]
    return sum(isinstance(parameter, click.Option) for parameter in command.params)

print(json.dumps({words: options(words) for words in sys.argv[1:]}))
"""
# A command of the product that leaves the names of all modules that it has loaded; argv names the file first.
RUN_COMMAND = """
import pathlib, sys
loaded = pathlib.Path(sys.argv.pop(1))
from migrate.cli.main import main
try:
    main()
finally:
    loaded.write_text("\\n".join(list(sys.modules)))
"""


@dataclass(frozen=True)
class Module:
    """What is counted in a module; classes and imports also inside functions.

    `code` lines are not blank, and no comment, docstring or import. `imports` has those that are for types alone, too;
    `at_import` has what is imported while the module itself is. `options` counts functions that take `**options: Any`,
    `lookups` the places where an option is looked up by a string.
    """

    lines: int
    code: int
    classes: int
    imports: frozenset[str]
    at_import: frozenset[str]
    options: int
    lookups: int


def read_modules(tree: Path) -> dict[str, Module]:
    """Return the product's modules by dotted name; their imports name only each other."""
    paths = {_dotted(path.relative_to(tree)): path for path in sorted((tree / PACKAGE).rglob("*.py"))}
    found = {}
    for name, path in paths.items():
        text = path.read_text()
        parsed, package = ast.parse(text), path.relative_to(tree).parent.parts
        nodes = list(ast.walk(parsed))
        found[name] = Module(
            lines=len(text.splitlines()),
            code=_code_lines(text, nodes),
            classes=sum(isinstance(node, ast.ClassDef) for node in nodes),
            imports=frozenset(_imported(nodes, package) & paths.keys() - {name}),
            at_import=frozenset(_imported(_run_at_import(parsed), package) & paths.keys() - {name}),
            options=sum(_takes_any_options(node) for node in nodes),
            lookups=sum(_looks_up_an_option(node) for node in nodes),
        )
    return found


def _dotted(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def _code_lines(text: str, nodes: Iterable[ast.AST]) -> int:
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NOT_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in nodes:
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node = node.body[0]
        elif not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def _imported(nodes: Iterable[ast.AST], package: tuple[str, ...]) -> set[str]:
    """Return every dotted name that imports may mean: `from a import b` gives `a` and `a.b`."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            found |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    return found


def _run_at_import(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what is below a node, without the bodies of functions and what is only for types."""
    for child in ast.iter_child_nodes(node):
        for_types = isinstance(child, ast.If) and ast.unparse(child.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")
        if not for_types and not isinstance(child, LATE):
            yield child
            yield from _run_at_import(child)


def _takes_any_options(node: ast.AST) -> bool:
    taken = node.args.kwarg if isinstance(node, ast.FunctionDef) else None
    return taken is not None and ast.unparse(taken) == "options: Any"


def _looks_up_an_option(node: ast.AST) -> bool:
    """Return whether this is `options["name"]`, `options.get("name")` or `options.pop("name")`."""
    match node:
        case ast.Subscript(value=ast.Name(id="options"), slice=ast.Constant(value=str())):
            return True
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="options"), attr="get" | "pop"), args=[ast.Constant(value=str()), *_]
        ):
            return True
    return False


def reach(imports: Mapping[str, Iterable[str]], start: str) -> set[str]:
    """Return the modules that `start` imports, that these import, and so on, with itself."""
    found, following = {start}, [start]
    while following:
        new = set(imports[following.pop()]) - found
        found |= new
        following += new
    return found


def circles(imports: Mapping[str, Iterable[str]]) -> list[tuple[str, ...]]:
    """Return the groups of modules of which each reaches all others."""
    reached = {name: reach(imports, name) for name in imports}
    found = {tuple(sorted(other for other in reached[name] if name in reached[other])) for name in imports}
    return sorted(circle for circle in found if len(circle) > 1)


def options_of(tree: Path) -> dict[str, int]:
    """Return how many options the commands have, without --help."""
    words = [sys.executable, "-P", "-c", COUNT_OPTIONS, *COMMANDS]
    done = subprocess.run(words, env={**os.environ, "PYTHONPATH": str(tree)}, stdout=subprocess.PIPE, check=True)
    counted: dict[str, int] = json.loads(done.stdout)
    return counted


def loaded_by_commands(tree: Path) -> Iterator[tuple[str, set[str]]]:
    """Run a plan, its apply and its verify on the scene of `scripts/bench start`; yield the modules that each loads.

    Processes that a command starts, for Kafka's client and for Spark's tasks, are not counted.
    """
    # Only here: the scene imports the product, which counting does not need.
    from migrate.plan.file import stored_fingerprint
    from scripts.benchmarks.eve import SMALL, Eve, on_stage

    with tempfile.TemporaryDirectory(prefix="mm2-sizes-") as name, on_stage(Eve.of(SMALL), Path(name)) as stage:
        plan, loaded = Path(name, "small.plan"), Path(name, "loaded.txt")

        def run(command: str, *words: str) -> set[str]:
            typed = [sys.executable, "-P", "-c", RUN_COMMAND, str(loaded), command, *words]
            subprocess.run(typed, cwd=name, env={**os.environ, "PYTHONPATH": str(tree)}, stdout=sys.stderr, check=True)
            return set(loaded.read_text().splitlines())

        yield f"a plan of {SMALL} rows", run("plan", *stage.words, "--settle", "1", "--out", str(plan))
        approved = ("--approve", stored_fingerprint(plan))
        yield "its apply --execute", run("apply", str(plan), *stage.words, *approved, "--execute")
        yield "its verify", run("verify", str(plan), *stage.words)


def size_line(what: str, modules: Iterable[Module]) -> str:
    """Return a line of the table."""
    counted = list(modules)
    sizes = (sum(m.lines for m in counted), sum(m.code for m in counted), sum(m.classes for m in counted))
    return f"{what:48}" + "".join(f"{number:>9,}" for number in (len(counted), *sizes))


def report(tree: Path, run: bool) -> None:
    """Print the table of a checkout."""
    modules = read_modules(tree)
    imports = {name: module.imports for name, module in modules.items()}
    print(f"{'':48}{'modules':>9}{'lines':>9}{'code':>9}{'classes':>9}")
    print(size_line(f"all of {PACKAGE}/", modules.values()))
    core = [module for name, module in modules.items() if not f"{name}.".startswith(f"{EXTRAS}.")]
    if len(core) < len(modules):
        print(size_line("the core: all but extras/", core))
    for start in STARTS:
        found = reach(imports, f"{PACKAGE}.{start}")
        print(size_line(f"{start}, by imports at any depth", (modules[name] for name in found)))
    print()
    at_import = {name: module.at_import for name, module in modules.items()}
    for where, graph in (("at any depth, for types too", imports), ("while modules are imported", at_import)):
        found_circles = circles(graph)
        print(f"import circles {where}: {len(found_circles)}")
        for circle in found_circles:
            print(f"  {', '.join(name.removeprefix(f'{PACKAGE}.') for name in circle)}")
    print("options: " + ", ".join(f"{words} {number}" for words, number in options_of(tree).items()))
    places, lookups = sum(m.options for m in modules.values()), sum(m.lookups for m in modules.values())
    print(f"**options: Any: {places} functions; options looked up by a string: {lookups} places", flush=True)
    if run:
        print()
        # All at once in the end: the commands say what they do meanwhile, on stderr.
        for command, loaded in list(loaded_by_commands(tree)):
            print(size_line(f"sys.modules after {command}", (modules[name] for name in modules.keys() & loaded)))


def _checkout(path: str) -> Path:
    folder = Path(path).resolve()
    if not (folder / PACKAGE / "__init__.py").is_file():
        raise argparse.ArgumentTypeError(f"there is no checkout in {folder}")
    return folder


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="scripts/sizes", description=__doc__)
    parser.add_argument("tree", type=_checkout, nargs="?", default=TREE, help="the checkout (default: this one)")
    parser.add_argument("--run", action="store_true",
                        help="also what a real plan, its apply and its verify load; starts two brokers")  # fmt: skip
    chosen = parser.parse_args()
    report(chosen.tree, chosen.run)


if __name__ == "__main__":
    main()
