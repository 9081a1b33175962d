"""Which groups need not be described, as far as a broker's list cannot be made to say it; and what a slow one costs."""

from types import SimpleNamespace

from confluent_kafka import ConsumerGroupState, ConsumerGroupType

from migrate.errors import ClusterError
from migrate.kafka.admin import LISTING_SECONDS, WORTH_LISTING, EmptyGroups
from migrate.kafka.settings import ClientSettings
from migrate.model import Side

MANY = [f"g{number}" for number in range(WORTH_LISTING)]


def listed(group, state=ConsumerGroupState.EMPTY, kind=ConsumerGroupType.CLASSIC):
    return SimpleNamespace(group_id=group, state=state, type=kind)


def over(*groups, error=None, errors=()):
    """The groups that are listed, each as the first broker in the states asked for has it; and what was asked."""
    asked = []

    class Client:
        def list_consumer_groups(self, states=frozenset(ConsumerGroupState), types=frozenset(ConsumerGroupType), **_):
            asked.append((states, types))
            first = {}
            for group in groups:
                if group.state in states and group.type in types:
                    first.setdefault(group.group_id, group)
            return SimpleNamespace(valid=list(first.values()), errors=errors)

    def answer(what, submit):
        if error is not None:
            asked.append(what)
            raise error
        return submit(Client())

    empty = EmptyGroups(ClientSettings(Side.SOURCE, "A", "source A", {}), deadline_seconds=60.0)
    empty._connection = SimpleNamespace(answer=answer)
    return empty, asked


def test_a_classic_group_that_is_listed_as_empty_is_empty():
    empty, _ = over(listed("g1"), listed("g2"), listed("not-asked-for"))
    assert empty.among(MANY) == {"g1", "g2"}


def test_where_a_broker_gives_no_answer_all_are_described_for_it_may_have_become_their_coordinator():
    empty, asked = over(listed("g1"), listed("g2"), errors=["COORDINATOR_LOAD_IN_PROGRESS"])
    assert empty.among(MANY) == frozenset() and len(asked) == 1
    assert empty.among(MANY) == frozenset() and len(asked) == 2, "it may load for a moment only"


def test_whatever_else_is_listed_is_left_to_be_described():
    states = [state for state in ConsumerGroupState if state is not ConsumerGroupState.EMPTY]
    kinds = [kind for kind in ConsumerGroupType if kind is not ConsumerGroupType.CLASSIC]
    groups = [listed(f"g{number}", state) for number, state in enumerate(states)]
    groups += [listed(f"g{len(states) + number}", kind=kind) for number, kind in enumerate(kinds)]
    assert len(states) > 4 and len(kinds) > 1
    assert over(*groups)[0].among(MANY) == frozenset()


def test_a_group_in_the_lists_of_two_brokers_is_left_to_be_described():
    rebalancing, stable = ConsumerGroupState.PREPARING_REBALANCING, ConsumerGroupState.STABLE
    empty, asked = over(listed("g1"), listed("g1", stable), listed("g2", rebalancing), listed("g2"), listed("g3"))
    assert empty.among(MANY) == {"g3"} and len(asked) == 3


def test_a_group_that_has_become_one_of_the_newer_protocol_elsewhere_is_left_to_be_described():
    """Its states there are none that librdkafka asks for."""
    newer = listed("g1", ConsumerGroupState.UNKNOWN, ConsumerGroupType.CONSUMER)
    empty, _ = over(listed("g1"), newer, listed("g2"))
    assert empty.among(MANY) == {"g2"}


def test_few_groups_are_not_worth_a_listing():
    empty, asked = over(listed("g1"))
    assert empty.among(MANY[1:]) == frozenset() and not asked


def test_a_listing_that_does_not_come_soon_is_asked_for_once_and_never_waited_for_long():
    empty, asked = over(error=ClusterError("source A did not answer", ""))
    assert empty.among(MANY) == empty.among(MANY) == frozenset() and len(asked) == 1
    patient = EmptyGroups(ClientSettings(Side.SOURCE, "A", "source A", {}), deadline_seconds=60.0)
    assert patient._connection.deadline_seconds == LISTING_SECONDS
