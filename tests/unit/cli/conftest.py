"""What tests of the command line share."""

from pathlib import Path

import pytest

from migrate.plan.file import write_plan
from tests.builders import make_plan, make_row


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    path = tmp_path / "cutover.plan"
    write_plan(make_plan([make_row(group="billing"), make_row(group="refunds")]), path)
    return path
