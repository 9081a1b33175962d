"""Topics that a cluster has and does not show us: what its brokers' log directories tell."""

from migrate.model import Failure
from migrate.survey.hidden_topics import in_full

REFUSED = Failure("CLUSTER_AUTHORIZATION_FAILED", "not allowed")


def test_log_directories_that_lack_a_topic_that_is_shown_tell_not_all():
    assert in_full(frozenset({"t", "hidden"}), {"t"}) == {"t", "hidden"}
    partial = in_full(frozenset({"hidden"}), {"t", "u"})
    assert isinstance(partial, Failure) and partial.code == "PARTIAL_ANSWER" and "2 topics" in partial.message
    assert in_full(REFUSED, {"t"}) is REFUSED
