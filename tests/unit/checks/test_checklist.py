"""All checks together: which there are, a sound cutover, waivers by name, and what a block touches."""

from importlib import import_module
from itertools import chain
from pkgutil import iter_modules

import pytest

from migrate import checks
from migrate.checks import checklist
from migrate.checks.check import Check, groups_of, is_without_members
from migrate.checks.checklist import CHECKS, NEVER_ACCEPTABLE, parse_waiver
from migrate.errors import UsageError
from migrate.model import CheckResult, Failure, GroupState, Level, Scope
from migrate.row_table import PlanRows
from migrate.survey.policies import Policies, Waiver
from tests.unit.checkscene import ROWS, SURVEY, row, surveyed


def test_a_sound_cutover_has_no_block_and_says_that_its_rows_are_estimated():
    results = checklist.run(SURVEY, ROWS)
    assert not [r for r in results if r.counts_as is Level.BLOCK]
    assert [r.check for r in results if r.level is Level.WARN] == ["estimated-rows"]


def test_results_come_in_the_order_of_the_list():
    names = [check.name for check in CHECKS]
    told = [names.index(result.check) for result in checklist.run(SURVEY, ROWS)]
    assert told == sorted(told) and len(set(told)) > 10


def test_every_check_that_a_module_has_is_in_the_list_once_and_under_a_name_of_its_own():
    modules = [import_module(f"migrate.checks.{module.name}") for module in iter_modules(checks.__path__)]
    values = [value for module in modules if module is not checklist for value in vars(module).values()]
    each = chain.from_iterable(value if isinstance(value, tuple) else (value,) for value in values)
    written = [value for value in each if isinstance(value, Check)]
    assert len(written) == len(CHECKS) == len({check.name for check in CHECKS})
    assert {check.name for check in written} == {check.name for check in CHECKS}


def test_a_waiver_covers_every_subject_or_the_one_that_it_names_even_if_that_holds_colons():
    waiver = parse_waiver("source-group-stopped")
    assert waiver.covers("source-group-stopped", "g1") and not waiver.covers("re-read-limit", "g1")
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


def test_a_waiver_leaves_what_does_not_block_as_it_is():
    waive_all = Policies(waivers=tuple(Waiver(check.name) for check in CHECKS))
    assert checklist.run(surveyed(policies=waive_all), ROWS) == checklist.run(SURVEY, ROWS)


def block(check, scope, subject):
    return CheckResult(check, Level.BLOCK, scope, subject, "this", "it is that", counts_as=Level.BLOCK)


def test_a_clusters_block_touches_every_group_a_topics_those_on_it_and_a_groups_itself():
    of_cluster, of_topic, of_group = (
        block("a", Scope.CLUSTER, "A"), block("b", Scope.TOPIC, "t"), block("c", Scope.GROUP, "h"),
    )  # fmt: skip
    said = "It is that; expected this."
    assert checklist.blocked_groups([of_group, of_topic, of_cluster], ROWS) == {"g": ("a", said), "h": ("a", said)}
    assert checklist.blocked_groups([of_topic, of_group], ROWS) == {"g": ("b", said), "h": ("c", said)}


def test_a_rows_block_touches_its_row_and_the_first_of_several_is_the_reason():
    blocks = [block("a", Scope.ROW, "g/t/0"), block("b", Scope.ROW, "g/t/0")]
    assert checklist.blocked_groups(blocks, ROWS) == {}
    assert checklist.blocked_rows(blocks) == {"g/t/0": ("a", "It is that; expected this.")}


@pytest.mark.parametrize(
    ("state", "stopped"),
    [
        (GroupState("Empty"), True),
        (GroupState("Dead"), True),
        (GroupState("Absent"), True),
        (GroupState("Stable", 1), False),
        (GroupState("Unknown"), False),
        (Failure("GROUP_AUTHORIZATION_FAILED", "no"), False),
        (None, False),
    ],
)
def test_a_group_is_without_members_only_where_that_was_seen(state, stopped):
    assert is_without_members(state) is stopped


def test_groups_of_rows_come_once_and_in_order():
    assert groups_of(PlanRows.of([row("h"), row("h", "u"), row("g")])) == ["g", "h"]
