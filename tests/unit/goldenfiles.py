"""The files of tests/golden, and of an extra's folder of that name: what output was agreed to look like."""

import os
from pathlib import Path

GOLDEN = Path(__file__).parents[1] / "golden"


def compare_with_golden(name: str, shown: str, folder: Path = GOLDEN) -> None:
    """Compare with a file of `folder`; MM2_MIGRATE_REWRITE_GOLDEN=1 rewrites it, to be read as a diff."""
    path = folder / name
    if os.environ.get("MM2_MIGRATE_REWRITE_GOLDEN"):
        path.write_text(shown)
    assert shown == path.read_text()
