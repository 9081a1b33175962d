"""Options that all suites share."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run every count in full")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep each file on one of the workers, and all that walk the same cutover on the same; skip what is long."""
    for item in items:
        shares = "killed_scene" in getattr(item, "fixturenames", ())
        item.add_marker(pytest.mark.xdist_group("cutover" if shares else str(item.path)))
    if config.getoption("--long"):
        return
    skip = pytest.mark.skip(reason="runs with scripts/test --long")
    for item in items:
        if "long" in item.keywords:
            item.add_marker(skip)
