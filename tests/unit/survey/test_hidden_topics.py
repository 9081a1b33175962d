"""Topics that a cluster has and does not show us: what its brokers' log directories tell."""

from migrate.model import Failure
from migrate.progress import Timer
from migrate.survey.hidden_topics import hosted_ahead, in_full, with_hidden
from migrate.survey.survey import Clusters, ClusterSurvey
from tests.fakes import FakeClock, NoProgress
from tests.unit.planscene import world

REFUSED = Failure("CLUSTER_AUTHORIZATION_FAILED", "not allowed")


def test_log_directories_that_lack_a_topic_that_is_shown_tell_not_all():
    assert in_full(frozenset({"t", "hidden"}), {"t"}) == {"t", "hidden"}
    partial = in_full(frozenset({"hidden"}), {"t", "u"})
    assert isinstance(partial, Failure) and partial.code == "PARTIAL_ANSWER" and "2 topics" in partial.message
    assert in_full(REFUSED, {"t"}) is REFUSED


def test_a_topic_that_was_shown_and_is_deleted_meanwhile_is_not_hidden():
    source, target, mirror = world()
    everything = frozenset(target.topics()) | {"deleted", "secret"}
    target.hosted = lambda: everything
    clusters = Clusters(None, target, mirror, looks_for_hidden=True)
    before = ClusterSurvey(topics=target.topics() | {"deleted": 1})
    after = with_hidden(clusters, ClusterSurvey(), before, hosted_ahead(clusters), Timer(FakeClock(), NoProgress()))
    assert after[1].hidden == {"secret"}
