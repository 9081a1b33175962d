"""Results of writing: the verdict, each row, and the command that comes next."""

from pathlib import Path

import pytest

from migrate.show.apply import Typed, apply_lines
from tests.unit.applyscene import Scene, three_groups


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return three_groups(tmp_path)


def said(result, command="apply", options=()):
    return "\n".join(apply_lines(result, Typed(command, "my plan", options), "f" * 64, 120, False))


def test_a_dry_run_ends_with_the_command_that_writes(scene):
    told = said(scene.apply(execute=False), options=("--target", "a b"))
    assert told.startswith("DRY RUN: ")
    assert told.endswith(f"  mm2-migrate apply 'my plan' --target 'a b' --approve {'f' * 64} --execute")


def test_what_was_written_is_a_row_each_and_is_verified_next(scene):
    result = scene.apply()
    told = said(result)
    assert told.startswith("APPLIED: ") and told.endswith("Next: mm2-migrate verify 'my plan'")
    assert all(row.key[0] in told for row in result.rows) and "PRIOR-OFFSET" in told
