"""A pytest plugin for the runs of the mutants: a test that fails there fails because of the mutant."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import migrate
import tests


def pytest_configure() -> None:
    # An installed product would survive every mutant, and tests from elsewhere may fail for reasons of their own.
    for package in (migrate, tests):
        if not Path(str(package.__file__)).is_relative_to(Path.cwd()):
            raise pytest.UsageError(f"{package.__file__} does not lie in {Path.cwd()}")
    # A slow machine is no reason to fail, and what is found by chance is not found again.
    settings.register_profile(
        "mutants", deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
    )
    settings.load_profile("mutants")
