"""Promise 8: nothing on the cluster that the groups leave is any different after a cutover."""

import pytest

from tests.integration.conftest import Cutover

pytestmark = pytest.mark.kafka


@pytest.mark.parametrize("what", ["topics", "configs", "groups", "commits"])
def test_the_source_is_the_same_before_and_after_a_whole_cutover(cutover: Cutover, what: str) -> None:
    cutover.applied.expect(0)
    assert cutover.source_before[what]
    assert cutover.source_after[what] == cutover.source_before[what]
