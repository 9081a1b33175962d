"""Which groups need not be described, as far as a broker's list cannot be made to say it; and what a slow one costs."""

from types import SimpleNamespace

from confluent_kafka import ConsumerGroupState, ConsumerGroupType

from migrate.errors import ClusterError
from migrate.kafka.empty_groups import LISTING_SECONDS, WORTH_LISTING, EmptyGroups
from migrate.kafka.settings import ClientSettings
from migrate.model import Side

MANY = [f"g{number}" for number in range(WORTH_LISTING)]


def listed(group, state=ConsumerGroupState.EMPTY, kind=ConsumerGroupType.CLASSIC):
    return SimpleNamespace(group_id=group, state=state, type=kind)


def over(*groups, error=None):
    """The groups that are listed, and who was asked."""
    asked = []

    def answer(what, submit):
        asked.append(what)
        if error is not None:
            raise error
        return SimpleNamespace(valid=groups, errors=["a broker's part is missing"])

    empty = EmptyGroups(ClientSettings(Side.SOURCE, "A", "source A", {}), deadline_seconds=60.0)
    empty._connection = SimpleNamespace(answer=answer)
    return empty, asked


def test_a_classic_group_that_is_listed_as_empty_is_empty_also_where_another_broker_says_nothing():
    empty, _ = over(listed("g1"), listed("g2"), listed("not-asked-for"))
    assert empty.among(MANY) == {"g1", "g2"}


def test_whatever_else_is_listed_is_left_to_be_described():
    states = [state for state in ConsumerGroupState if state is not ConsumerGroupState.EMPTY]
    kinds = [kind for kind in ConsumerGroupType if kind is not ConsumerGroupType.CLASSIC]
    groups = [listed(f"g{number}", state) for number, state in enumerate(states)]
    groups += [listed(f"g{len(states) + number}", kind=kind) for number, kind in enumerate(kinds)]
    assert len(states) > 4 and len(kinds) > 1
    assert over(*groups)[0].among(MANY) == frozenset()


def test_a_group_in_the_lists_of_two_brokers_is_left_to_be_described():
    empty, _ = over(listed("g1"), listed("g1", ConsumerGroupState.STABLE), listed("g2"), listed("g2"), listed("g3"))
    assert empty.among(MANY) == {"g3"}


def test_few_groups_are_not_worth_a_listing():
    empty, asked = over(listed("g1"))
    assert empty.among(MANY[1:]) == frozenset() and not asked


def test_a_listing_that_does_not_come_soon_is_asked_for_once_and_never_waited_for_long():
    empty, asked = over(error=ClusterError("source A did not answer", ""))
    assert empty.among(MANY) == empty.among(MANY) == frozenset() and len(asked) == 1
    patient = EmptyGroups(ClientSettings(Side.SOURCE, "A", "source A", {}), deadline_seconds=60.0)
    assert patient._connection.deadline_seconds == LISTING_SECONDS
