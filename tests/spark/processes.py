"""Processes of their own for tests that start Spark, or a JVM."""

import os
from pathlib import Path


def with_our_package() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
