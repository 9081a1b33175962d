"""Which topics a cleaner works on, by what the target tells of their policies."""

from types import SimpleNamespace

import pytest

from migrate.model import Failure, TopicPartition
from migrate.survey.records import compacted_topics

DENIED = Failure("CLUSTER_AUTHORIZATION_FAILED", "no")
TOLD = {"a": "compact", "b": "compact,delete", "c": "delete", "d": DENIED}


@pytest.mark.parametrize(
    ("topics", "told", "found"), [("abcd", TOLD, {"a", "b"}), ("a", DENIED, set()), ("", None, set())]
)
def test_a_topic_is_compacted_that_says_so_alone_or_beside_deletion_and_none_that_does_not_tell(topics, told, found):
    target = SimpleNamespace(alias="B", topic_settings=lambda asked, setting: told)
    logs = SimpleNamespace(target=dict.fromkeys(TopicPartition(topic, 0) for topic in topics))
    timer = SimpleNamespace(run=lambda step, text, ask: ask())
    assert compacted_topics(SimpleNamespace(target=target), logs, timer) == found
