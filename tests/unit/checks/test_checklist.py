"""All checks together: which there are, a sound cutover, waivers by name, and what a block touches."""

from importlib import import_module
from itertools import chain
from pkgutil import iter_modules

import pytest

from migrate import checks
from migrate.checks import checklist
from migrate.checks.check import Check
from migrate.checks.checklist import CHECKS, NEVER_ACCEPTABLE, parse_waiver
from migrate.errors import UsageError
from migrate.model import CheckResult, Level, Scope
from migrate.survey.policies import Policies, Waiver
from tests.unit.checkscene import ROWS, SURVEY, surveyed


def test_a_sound_cutover_has_no_block_and_its_results_come_in_the_order_of_the_list_whatever_is_waived():
    results = checklist.run(SURVEY, ROWS)
    assert not [r for r in results if r.counts_as is Level.BLOCK]
    assert [r.check for r in results if r.level is Level.WARN] == ["estimated-rows"]
    names = [check.name for check in CHECKS]
    told = [names.index(result.check) for result in results]
    assert told == sorted(told) and len(set(told)) > 10
    assert checklist.run(surveyed(policies=Policies(waivers=tuple(map(Waiver, names)))), ROWS) == results


def test_every_check_that_a_module_has_is_in_the_list_once_and_under_a_name_of_its_own():
    modules = [import_module(f"migrate.checks.{module.name}") for module in iter_modules(checks.__path__)]
    values = [value for module in modules if module is not checklist for value in vars(module).values()]
    each = chain.from_iterable(value if isinstance(value, tuple) else (value,) for value in values)
    written = [value.name for value in each if isinstance(value, Check)]
    assert sorted(written) == sorted(check.name for check in CHECKS) == sorted(set(written))


@pytest.mark.parametrize("check", sorted(NEVER_ACCEPTABLE))
def test_what_protects_the_data_itself_can_never_be_waived(check):
    with pytest.raises(UsageError, match="never be waived"):
        parse_waiver(check)


def test_a_misspelt_waiver_is_refused_and_told_the_names_that_exist():
    with pytest.raises(UsageError) as refused:
        parse_waiver("source-group-stoped")
    names = refused.value.todo.removeprefix("Checks that can: ").removesuffix(".").split(", ")
    assert all(parse_waiver(name) == Waiver(name) for name in names)
    assert {"source-group-stopped", "missing-on-target", "not-drained", "open-transaction"} <= set(names)


def test_a_clusters_block_touches_every_group_a_topics_those_on_it_a_groups_itself_and_a_rows_its_row():
    def block(check, scope, subject):
        return CheckResult(check, Level.BLOCK, scope, subject, "this", "it is that", counts_as=Level.BLOCK)

    blocks = [block("d", Scope.ROW, "g/t/0"), block("e", Scope.ROW, "g/t/0")]
    blocks += [block("c", Scope.GROUP, "h"), block("b", Scope.TOPIC, "t")]
    said = "It is that; expected this."
    assert checklist.blocked_groups(blocks, ROWS) == {"g": ("b", said), "h": ("c", said)}
    whole = block("a", Scope.CLUSTER, "A")
    assert checklist.blocked_groups([*blocks, whole], ROWS) == {"g": ("a", said), "h": ("a", said)}
    assert checklist.blocked_rows(blocks) == {"g/t/0": ("d", said)}, "the first of several is the reason"
