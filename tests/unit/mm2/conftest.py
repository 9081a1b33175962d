"""A flow from an mm2.properties file."""

import pytest

from migrate.mm2.config_file import Overrides, read_flow
from tests.unit.mm2.flowlines import BASE


@pytest.fixture
def flow_of(tmp_path):
    """Return a function that reads a flow from BASE and further lines."""

    def read(lines="", source="A", target="B", overrides=None):
        path = tmp_path / "mm2.properties"
        path.write_text(BASE + lines)
        return read_flow(path, source, target, overrides or Overrides())

    return read
