"""All checks together: a sound cutover, and one judge for each check in the order of the list."""

from migrate.checks import checklist
from migrate.checks.checklist import JUDGES
from migrate.checks.registry import CHECKS
from migrate.model import CheckResult, Level, Scope
from migrate.survey.policies import Policies, Waiver
from tests.unit.checkscene import FACTS, ROWS


def test_a_sound_cutover_has_no_block_and_says_that_its_rows_are_estimated():
    results = checklist.run(FACTS, ROWS, Policies())
    assert not [r for r in results if r.counts_as is Level.BLOCK]
    assert [r.check for r in results if r.level is Level.WARN] == ["estimated-rows"]


def test_a_waiver_leaves_what_does_not_block_as_it_is():
    waive_all = Policies(waivers=tuple(Waiver(check.name) for check in CHECKS))
    assert checklist.run(FACTS, ROWS, waive_all) == checklist.run(FACTS, ROWS, Policies())


def test_every_check_is_declared_once_and_judged_by_one_function_in_the_order_in_which_they_are_told():
    judged = [check for each in JUDGES for check in each.checks]
    assert sorted(judged, key=CHECKS.index) == judged == list(CHECKS)
    assert len({check.name for check in CHECKS}) == len(CHECKS)


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
