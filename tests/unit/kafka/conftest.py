"""The cluster that the readers of records share."""

import pytest

from tests.unit.logscene import cluster_with_logs


@pytest.fixture
def cluster():
    return cluster_with_logs()
