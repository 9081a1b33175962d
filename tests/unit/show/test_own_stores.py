"""Connectors whose sinks keep positions of their own are told by their usual names, and others are not."""

import pytest

from migrate.show.explain import explanation, kept_elsewhere
from tests.builders import make_plan, make_row


@pytest.mark.parametrize(
    ("group", "topic", "word"),
    [
        ("cg-control-orders", "orders", "apache/iceberg#16360"),
        ("anything", "control-iceberg", "new control topic"),
        ("connect-my-Snowflake-sink", "orders", "offset token for each channel"),
    ],
)
def test_a_store_of_its_own_is_named_with_what_to_do(group, topic, word):
    rows = [make_row(group, topic)]
    (said,) = kept_elsewhere(group, rows)
    assert word in said and said.startswith(group)
    assert word in " ".join(" ".join(explanation(make_plan(rows), group, width=100)).split())


@pytest.mark.parametrize("group", ["billing", "connect-jdbc", "snowflake", "control", "my-cg-control"])
def test_other_groups_are_left_alone(group):
    assert not list(kept_elsewhere(group, [make_row(group, "orders")]))
