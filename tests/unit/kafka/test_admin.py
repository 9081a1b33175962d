"""What is made of the answers to writes: nothing counts as done, or as not done, that the cluster did not say."""

from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import AclOperation

from migrate.kafka.admin import NOT_EXACT, ConfluentAdmin, _granted, _results, _topics
from migrate.kafka.errors import timed_out
from migrate.model import Commit, Failure, TopicPartition
from tests.unit.logscene import NOWHERE, settings

P0, P1, P2 = (TopicPartition("t", partition) for partition in range(3))


def answered(partition, error=None):
    return SimpleNamespace(topic="t", partition=partition, error=error)


def test_a_partition_that_the_answer_leaves_out_may_be_written_and_one_with_an_error_is_not_done():
    refused = KafkaError(KafkaError.UNKNOWN_MEMBER_ID, "no")
    results = _results([P0, P1, P2], SimpleNamespace(topic_partitions=[answered(0), answered(1, refused)]))
    done, failed, lost = (results[partition] for partition in (P0, P1, P2))
    assert done is None
    assert isinstance(failed, Failure) and failed.code == "UNKNOWN_MEMBER_ID" and not failed.outcome_unknown
    assert isinstance(lost, Failure) and lost.code == "NO_ANSWER" and lost.outcome_unknown


@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize("code", [KafkaError.UNKNOWN_MEMBER_ID, KafkaError.UNKNOWN, KafkaError._TIMED_OUT])
def test_one_refused_partition_of_a_whole_answer_is_not_done_and_the_others_are(at, code):
    answers = [answered(0), answered(1)]
    answers[at] = answered(at, KafkaError(code, "no"))
    results = _results([P0, P1], SimpleNamespace(topic_partitions=answers))
    assert isinstance(results.pop((P0, P1)[at]), Failure) and list(results.values()) == [None]


def test_a_group_with_metadata_is_left_untouched_and_no_cluster_is_even_asked():
    admin = ConfluentAdmin(settings(NOWHERE), 0.5)
    assert admin.alter({"g": {P0: Commit(7, "m"), P1: Commit(8)}}) == {"g": {P0: NOT_EXACT, P1: NOT_EXACT}}


def states(admin):
    return {group: state.state for group, state in admin.group_states(["g", "h"]).items()}


def rights(admin):
    return {topic: failure.code for topic, failure in admin._described(["g", "h"], _topics, _granted).items()}


@pytest.mark.parametrize(("ask", "told"), [(states, "Dead"), (rights, "GROUP_ID_NOT_FOUND")])
def test_what_a_broker_that_has_died_was_asked_about_is_described_by_a_fresh_client_before_the_deadline(ask, told):
    """A call for several groups answers with the last of them: one that hangs takes the deadline from all."""
    admin, asked = ConfluentAdmin(settings(NOWHERE), deadline_seconds=30.0), []

    def collect(submit, seconds):
        by_name = {
            "describe_consumer_groups": lambda groups, **_: groups,
            "describe_topics": lambda t, **_: t.topic_names,
        }
        groups = submit(SimpleNamespace(**by_name))
        asked.append((tuple(groups), seconds))
        return dict.fromkeys(groups, timed_out(seconds) if len(asked) == 1 else Failure("GROUP_ID_NOT_FOUND", "gone"))

    admin._connections = [SimpleNamespace(collect=collect, drop=lambda: None)]
    admin._connection = admin._connections[0]
    assert ask(admin) == {"g": told, "h": told}
    assert asked == [(("g", "h"), 10.0), (("g", "h"), 30.0)]


@pytest.mark.parametrize("operations", [None, []])
def test_rights_that_a_cluster_does_not_report_are_not_taken_for_missing(operations):
    admin = ConfluentAdmin(settings(NOWHERE), deadline_seconds=30.0)
    described = {
        "seen": SimpleNamespace(authorized_operations=[AclOperation.READ]),
        "unseen": SimpleNamespace(authorized_operations=operations),
    }
    admin._connection = SimpleNamespace(
        answer=lambda what, submit: SimpleNamespace(authorized_operations=None),
        collect=lambda submit, seconds: described,
    )
    rights = admin.rights(["seen", "unseen"], [])
    assert rights.groups["seen"] == {"READ"} and isinstance(rights.groups["unseen"], Failure)
