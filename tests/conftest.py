"""Options that all suites share."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run every count in full")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--long"):
        return
    skip = pytest.mark.skip(reason="runs with scripts/test --long")
    for item in items:
        if "long" in item.keywords:
            item.add_marker(skip)
