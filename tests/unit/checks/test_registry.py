"""What checks say of themselves, and the waivers that name them: what can be waived, and what a misspelt one does."""

import pytest

from migrate.checks.registry import ACCEPTABLE_CHECKS, CHECKS, NEVER_ACCEPTABLE, Check, HoldsFor, parse_waiver
from migrate.errors import UsageError
from migrate.model import Scope
from migrate.survey.policies import Waiver


def test_a_waiver_without_a_subject_covers_every_subject():
    waiver = parse_waiver("source-group-stopped")
    assert waiver.covers("source-group-stopped", "g1") and not waiver.covers("re-read-limit", "g1")


def test_a_waiver_with_a_subject_covers_only_that_one_even_if_it_holds_colons():
    waiver = parse_waiver("source-group-stopped:team:orders")
    assert waiver == Waiver("source-group-stopped", "team:orders")
    assert not waiver.covers("source-group-stopped", "team")


@pytest.mark.parametrize("check", sorted(NEVER_ACCEPTABLE))
def test_what_protects_the_data_itself_can_never_be_waived(check):
    with pytest.raises(UsageError, match="never be waived"):
        parse_waiver(check)


def test_a_misspelt_waiver_is_refused_and_told_the_names_that_exist():
    with pytest.raises(UsageError) as refused:
        parse_waiver("source-group-stoped")
    assert "source-group-stopped" in refused.value.todo


def test_no_check_is_both_acceptable_and_never_acceptable():
    assert not set(ACCEPTABLE_CHECKS) & set(NEVER_ACCEPTABLE)


@pytest.mark.parametrize(
    ("scope", "holds"),
    [(Scope.ROW, True), (Scope.TOPIC, True), (Scope.HOLDER, True), (Scope.GROUP, False), (Scope.CLUSTER, False)],
)
def test_a_check_holds_for_positions_by_its_scope_unless_it_says_otherwise(scope, holds):
    assert Check("any", scope).holds_for_positions is holds
    assert not Check("any", scope, holds_for=HoldsFor.GROUPS).holds_for_positions
    assert Check("any", scope, holds_for=HoldsFor.BOTH).holds_for_positions


def test_what_is_asked_of_positions_against_its_scope_is_known_by_name():
    by_scope = {c.name for c in CHECKS if Check(c.name, c.scope).holds_for_positions}
    assert {c.name for c in CHECKS if c.holds_for_positions} ^ by_scope == {"estimated-rows", "connect-internal-topics"}
