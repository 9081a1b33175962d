"""The scene that most tests of writing begin with."""

import pytest

from tests.unit.applyscene import Scene, three_groups


@pytest.fixture
def scene(tmp_path) -> Scene:
    """Groups `a` with two rows, `b` with two topics, which is new on the target, and `c`."""
    return three_groups(tmp_path)
