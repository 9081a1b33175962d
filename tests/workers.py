"""Which worker of a run has which test file: those that share what is dear to start are on one."""

import ast
import re
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadFileScheduling

# The lab, and what is staged on it once a run.
OF_THE_LAB = {"lab", "killed_scene", "cutover"}
BY_NAME = re.compile(r'getfixturevalue\("(\w+)"\)')


class SharedStarts(LoadFileScheduling):
    """A file is one worker's, as with `--dist loadfile`; all that use a lab are the same one's, or Spark's JVM."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return shared_start(Path(file)) or file


def shared_start(file: Path) -> str:
    """What a file shares with others of one worker, "" for nothing."""
    asked = asked_for(file)
    if asked & OF_THE_LAB:
        # One for all would be what the whole run waits for.
        return "the lab of the extras" if "extras" in file.parts else "the lab"
    return "Spark" if "spark" in asked and file.parent.name == "spark" else ""


@cache
def asked_for(file: Path) -> set[str]:
    """The fixtures that the tests and fixtures of a file ask for."""
    text = file.read_text()
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    asking = [node for node in functions if node.name.startswith("test_") or node.decorator_list]
    return {argument.arg for node in asking for argument in node.args.args} | {*BY_NAME.findall(text)}
