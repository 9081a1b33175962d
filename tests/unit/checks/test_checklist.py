"""All checks together, what a block touches, and waivers by name; are both clusters others, and do they show all?"""

from importlib import import_module
from itertools import chain
from pkgutil import iter_modules

import pytest

from migrate import checks
from migrate.checks import checklist
from migrate.checks.check import Check
from migrate.checks.checklist import CHECKS, NEVER_ACCEPTABLE, parse_waiver
from migrate.errors import UsageError
from migrate.mm2.topics import CheckpointKey, CheckpointReading, CheckpointRecord
from migrate.model import CheckResult, ClusterFacts, Failure, Level, Scope
from migrate.survey.filters import Filters
from migrate.survey.policies import Policies, Waiver
from tests.unit.checkscene import NOW, ROWS, SURVEY, blocked, found, levels, surveyed, waiving


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


def test_a_waiver_of_what_protects_the_data_itself_is_refused_as_is_a_misspelt_one_with_the_names_that_exist():
    for check in NEVER_ACCEPTABLE:
        with pytest.raises(UsageError, match="never be waived"):
            parse_waiver(check)
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


def test_one_cluster_on_both_sides_blocks_everything():
    same = {"target_facts": ClusterFacts("id-a", 1, True)}
    assert levels("clusters-differ", **same) == {"B": Level.BLOCK}
    assert blocked(**same) == {"g", "h"}


def test_a_listing_that_may_be_cut_short_blocks_everything_and_not_knowing_is_no_pass():
    lacking, unknown = ({"source_facts": ClusterFacts("id-a", 1, right)} for right in (False, None))
    assert levels("listing-complete", **lacking) == {"A": Level.BLOCK, "B": Level.PASS}
    unsure = found("listing-complete", **unknown)[0]
    assert (unsure.level, unsure.counts_as) == (Level.NOT_VISIBLE, Level.BLOCK)
    assert blocked(**unknown) == {"g", "h"}
    assert levels("listing-complete", source_down=True) == {"B": Level.PASS}, "only the target's is judged"


def test_groups_only_mm2_remembers_are_named():
    latest = {CheckpointKey(g, "A.t", 0): CheckpointRecord(5, 5, "", 1, NOW) for g in ("orders", "g", "billing")}
    remembered = {"checkpoints": CheckpointReading(latest, {"checkpoint": 3})}
    (result,) = found("checkpointed-groups-listed", **remembered)
    assert result.level is Level.WARN and result.seen == "2 are not: billing, orders"
    assert not found("checkpointed-groups-listed", source_down=True, **remembered)


def test_topics_that_a_cluster_does_not_show_block_if_the_plan_is_about_them_and_warn_otherwise():
    def hidden(*topics, **changes):
        return found("topics-visible", source_hidden=frozenset(topics), **changes)[0]

    infrastructure = ("__consumer_offsets", "mm2-offset-syncs.C.internal")
    assert hidden().level is hidden(*infrastructure).level is Level.PASS
    blocks = hidden("orders", *infrastructure)
    assert blocks.counts_as is Level.BLOCK
    assert "DESCRIBE, and READ to read their records, on topic orders on A" in blocks.todo
    assert hidden("orders", filters=Filters.from_options(topics=["t"])).counts_as is Level.WARN
    assert hidden("orders", **waiving("topics-visible")).accepted
    (unknown,) = found("topics-visible", source_hidden=Failure("CLUSTER_AUTHORIZATION_FAILED", "no"))
    assert (unknown.level, unknown.counts_as) == (Level.NOT_VISIBLE, Level.WARN)
    assert "CLUSTER_AUTHORIZATION_FAILED (no)" in unknown.seen
    # By their names on the target; MM2's own topics are of every plan.
    on_target = {"A.orders": Level.BLOCK, "billing": Level.WARN, "__consumer_offsets": Level.PASS}
    for topic, level in (on_target | {"A.checkpoints.internal": Level.BLOCK}).items():
        assert levels("topics-visible", target_hidden=frozenset({topic}))["B"] is level
