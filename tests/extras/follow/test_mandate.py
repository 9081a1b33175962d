"""Mandates: what is approved is the rule, all of it, and nothing else can be done with one."""

from dataclasses import fields, replace

import pytest

from migrate.errors import Refused, UnreadablePlan, UsageError
from migrate.extras.follow.mandate import (
    LONGEST_MS,
    Mandate,
    lines_of,
    mandate_of,
    parse_grades,
    policies_of_mandate,
    refuse_other_names,
    refuse_until,
)
from migrate.model import Grade
from migrate.plan.file import read_plan, write_plan
from migrate.plan.plan import Plan
from migrate.survey.policies import Rewind, Untranslatable, Waiver
from tests.extras.follow.followscene import mandate, mandated
from tests.unit.surveyscene import FLOW

NOW_MS = 1_700_000_000_000
OTHERS = {
    "until_ms": 1, "group": ("a",), "exclude_group": ("a",), "topic": ("a",), "exclude_topic": ("a",),
    "named_groups": ("a",), "grades": ("exact",), "max_rereads": 1, "match_limit": 1, "max_fetch": 1,
    "untranslatable": ("skip",), "moving_group": ("a",), "group_map": (("a", "b", False),),
}  # fmt: skip
MAPPED = (("orders", "orders-eu", False), ("team-(.*)", "\\1", True))


@pytest.mark.parametrize("changes", [{}, OTHERS, {"named_groups": (), "group_map": MAPPED}])
def test_a_mandate_is_what_it_was_after_it_was_written_and_read_all_that_it_allows(tmp_path, changes):
    assert set(OTHERS) == {field.name for field in fields(Mandate)}
    plan = mandated(FLOW, (Waiver("group-sync", "g"),), **changes)
    write_plan(plan, tmp_path / "follow.plan")
    read = read_plan(tmp_path / "follow.plan")
    assert read == plan and mandate_of(read) == mandate(**changes) and not read.rows
    assert lines_of(mandate_of(read).names()) == mandate(**changes).group_map


def test_its_filters_are_those_that_were_given_also_the_names_of_a_file_that_is_gone():
    given = mandate(group=("a.*",), exclude_topic=("x",), named_groups=("ab", "b"), moving_group=("flink-.*", "f"))
    filters = given.filters()
    assert [filters.group_verdict(g) for g in ("ab", "ac", "b")] == [None, "groups-file", "group"]
    assert filters.topic_verdict("x") == "exclude-topic" and mandate().filters().groups_file is None
    assert [p.fullmatch("flink-1") is not None for p in given.moving_groups()] == [True, False]


def test_its_policies_leave_it_to_follow_what_may_go_back_and_accept_what_is_no_block_to_it():
    plan = mandated(FLOW, (Waiver("group-sync", "g"),), untranslatable=("skip",), max_rereads=7)
    policies = policies_of_mandate(plan, ("not-drained",))
    assert policies.rewind is Rewind.SET and policies.max_rereads == 7
    assert policies.untranslatable is Untranslatable.SKIP
    assert policies.accepts("group-sync", "g") and policies.accepts("not-drained", "any")
    assert not policies.accepts("group-sync", "h")
    assert mandate(match_limit=3, max_fetch=4).limits().fetch_bytes == 4


def test_grades_are_words_of_ours_and_one_at_least():
    assert parse_grades(" bounded,exact ") == (Grade.EXACT, Grade.BOUNDED)
    for wrong in ("", "exact,best", ","):
        with pytest.raises(UsageError, match="--grades"):
            parse_grades(wrong)
    with pytest.raises(UsageError):
        mandate_of(mandated(FLOW, grades=("best",)))


def test_a_mandate_holds_for_30_days_at_most_and_not_beyond_its_end():
    refuse_until(NOW_MS + LONGEST_MS, NOW_MS)
    for until in (NOW_MS, NOW_MS + LONGEST_MS + 1):
        with pytest.raises(UsageError, match="--until"):
            refuse_until(until, NOW_MS)
    plan = mandated(FLOW)
    ends = mandate_of(plan).until_ms
    mandate_of(plan).refuse_over(plan, ends - 1)
    with pytest.raises(Refused, match="ended 2023-11-15T22:13:20.000Z"):
        mandate_of(plan).refuse_over(plan, ends)


@pytest.mark.parametrize(("other", "said"), [
    (replace(FLOW, source=replace(FLOW.source, alias="Z")), "source alias A, and here it is Z"),
    (replace(FLOW, target=replace(FLOW.target, alias="Z")), "target alias B, and here it is Z"),
    (replace(FLOW, policy=replace(FLOW.policy, source_alias="prod")), "mm2_source_alias unknown, and here it is prod"),
    (replace(FLOW, policy=replace(FLOW.policy, source_alias="")), "mm2_source_alias unknown"),
])  # fmt: skip
def test_a_mandate_is_not_followed_under_other_aliases_than_those_that_were_approved(other, said):
    refuse_other_names(mandated(FLOW), FLOW)
    with pytest.raises(Refused, match=f"approved with {said}"):
        refuse_other_names(mandated(FLOW), other)


@pytest.mark.parametrize("wrong", [{"group-map": '[["a", "b"]]'}, {"until": "soon"}, {"max-rereads": "many"}])
def test_settings_that_are_not_a_mandates_are_an_error(wrong):
    plan = mandated(FLOW)
    with pytest.raises(UnreadablePlan, match="cannot be read"):
        mandate_of(Plan(replace(plan.header, settings={**plan.header.settings, **wrong}), plan.rows))
