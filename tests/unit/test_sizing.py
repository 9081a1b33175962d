"""What `scripts/sizes` counts, on a tree of three modules."""

from scripts.sizing import circles, reach, read_modules

A = '''"""A page
of prose."""

from typing import TYPE_CHECKING, Any

from migrate import b

if TYPE_CHECKING:
    from migrate.c import C


# A comment.
class A:
    """Purpose."""

    text = """two
lines"""


def run(**options: Any) -> "C":
    import migrate.c

    return b.found(options["name"], options.get("other"), options.pop("third"), {"name": 1}["name"])
'''
B = "from . import c\n\n\ndef found(*names):\n    return [c.C(name) for name in names]\n"
C = "class C:\n    class Inner:\n        pass\n\n\ndef late():\n    from .a import A\n    return A\n"


def modules(tmp_path):
    (tmp_path / "migrate").mkdir()
    for name, text in {"__init__": "", "a": A, "b": B, "c": C, "alone": "import os\n"}.items():
        (tmp_path / "migrate" / f"{name}.py").write_text(text)
    return read_modules(tmp_path)


def test_lines_of_code_are_neither_blank_nor_comment_docstring_or_import(tmp_path):
    found = modules(tmp_path)
    counted = {name: (module.lines, module.code, module.classes) for name, module in found.items()}
    # Of A: `if`, `class`, two lines of text, `def`, `return`.
    assert counted == {
        "migrate": (0, 0, 0), "migrate.a": (23, 6, 1), "migrate.b": (5, 2, 0), "migrate.c": (8, 5, 2),
        "migrate.alone": (1, 0, 0),
    }  # fmt: skip
    assert (found["migrate.a"].options, found["migrate.a"].lookups) == (1, 3)


def test_reach_follows_imports_inside_functions_and_for_types_and_circles_name_what_reaches_itself(tmp_path):
    found = modules(tmp_path)
    imports = {name: module.imports for name, module in found.items()}
    assert imports["migrate.a"] == {"migrate", "migrate.b", "migrate.c"} and imports["migrate.c"] == {"migrate.a"}
    assert reach(imports, "migrate.b") == {"migrate", "migrate.a", "migrate.b", "migrate.c"}
    assert circles(imports) == [("migrate.a", "migrate.b", "migrate.c")]
    at_import = {name: module.at_import for name, module in found.items()}
    assert at_import["migrate.a"] == {"migrate", "migrate.b"} and at_import["migrate.c"] == set()
    assert circles(at_import) == []
