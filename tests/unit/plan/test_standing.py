"""Mandates: what is approved is the rule, all of it, and nothing else can be done with one."""

from dataclasses import fields, replace

import pytest

from migrate.errors import Refused, UsageError
from migrate.model import Grade
from migrate.plan.file import read_plan, write_plan
from migrate.plan.mandate import Mandate, MappedGroup
from migrate.plan.plan import Plan, refuse_standing
from migrate.plan.standing import (
    LONGEST_MS,
    filters_of_mandate,
    limits_of_mandate,
    mandate_of,
    moving_groups,
    parse_grades,
    policies_of_mandate,
    refuse_other_names,
    refuse_over,
    refuse_until,
)
from migrate.survey.policies import Rewind, Untranslatable, Waiver
from tests.builders import make_plan, make_row
from tests.unit.followscene import mandate, mandated
from tests.unit.surveyscene import FLOW

NOW_MS = 1_700_000_000_000
OTHERS = {
    "until_ms": 1, "groups": ("a",), "exclude_groups": ("a",), "topics": ("a",), "exclude_topics": ("a",),
    "named_groups": ("a",), "grades": ("exact",), "max_rereads": 1, "match_limit": 1, "max_fetch": 1,
    "untranslatable": ("skip",), "moving_groups": ("a",), "group_map": (MappedGroup("a", "b", False),),
}  # fmt: skip


def test_a_mandate_is_what_it_was_after_it_was_written_and_read(tmp_path):
    plan = mandated(FLOW, (Waiver("group-sync", "g"),), named_groups=("g", "h"), max_fetch=5, moving_groups=("f.*",))
    write_plan(plan, tmp_path / "follow.plan")
    read = read_plan(tmp_path / "follow.plan")
    assert read == plan and read.header.mandate == plan.header.mandate and not read.rows


def test_whatever_a_mandate_allows_is_in_its_fingerprint():
    assert set(OTHERS) == {field.name for field in fields(Mandate)}
    prints = {mandated(FLOW, **{name: value}).fingerprint for name, value in OTHERS.items()}
    plan = mandated(FLOW)
    waived, other = (
        mandated(FLOW, (Waiver("group-sync"),)),
        Plan(replace(plan.header, target_cluster_id="x"), plan.rows),
    )
    assert len(prints | {plan.fingerprint, waived.fingerprint, other.fingerprint}) == len(OTHERS) + 3


def test_a_plan_that_is_no_mandate_is_not_followed_and_a_mandate_is_nothing_else():
    with pytest.raises(UsageError, match="is no mandate"):
        mandate_of(make_plan([make_row()]))
    refuse_standing(make_plan([make_row()]), "apply")
    with pytest.raises(UsageError, match="apply is for rows"):
        refuse_standing(mandated(FLOW), "apply")


def test_its_filters_are_those_that_were_given_also_the_names_of_a_file_that_is_gone():
    filters = filters_of_mandate(mandate(groups=("a.*",), exclude_topics=("x",), named_groups=("ab", "b")))
    assert [filters.group_verdict(g) for g in ("ab", "ac", "b")] == [None, "groups-file", "group"]
    assert filters.topic_verdict("x") == "exclude-topic" and filters_of_mandate(mandate()).groups_file is None
    assert [p.fullmatch("flink-1") is not None for p in moving_groups(mandate(moving_groups=("flink-.*", "f")))] == [
        True, False,
    ]  # fmt: skip
    with pytest.raises(UsageError, match="--moving-group"):
        moving_groups(mandate(moving_groups=("(",)))


def test_its_policies_leave_it_to_follow_what_may_go_back_and_accept_what_is_no_block_to_it():
    plan = mandated(FLOW, (Waiver("group-sync", "g"),), untranslatable=("skip",), max_rereads=7)
    policies = policies_of_mandate(plan, ("not-drained",))
    assert policies.rewind is Rewind.SET and policies.max_rereads == 7
    assert policies.untranslatable is Untranslatable.SKIP
    assert policies.accepts("group-sync", "g") and policies.accepts("not-drained", "any")
    assert not policies.accepts("group-sync", "h")
    assert limits_of_mandate(mandate(match_limit=3, max_fetch=4)).fetch_bytes == 4


def test_grades_are_words_of_ours_and_one_at_least():
    assert parse_grades(" bounded,exact ") == (Grade.EXACT, Grade.BOUNDED)
    for wrong in ("", "exact,best", ","):
        with pytest.raises(UsageError, match="--grades"):
            parse_grades(wrong)
    with pytest.raises(UsageError):
        mandate_of(mandated(FLOW, grades=("best",)))


def test_a_mandate_holds_for_30_days_at_most_and_not_beyond_its_end():
    refuse_until(NOW_MS + LONGEST_MS, NOW_MS)
    for until in (NOW_MS, NOW_MS - 1, NOW_MS + LONGEST_MS + 1):
        with pytest.raises(UsageError, match="--until"):
            refuse_until(until, NOW_MS)
    plan = mandated(FLOW)
    ends = mandate_of(plan).until_ms
    refuse_over(mandate_of(plan), plan, ends - 1, "then")
    with pytest.raises(Refused, match="ended then"):
        refuse_over(mandate_of(plan), plan, ends, "then")


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_mandate_is_not_followed_under_another_alias_which_is_part_of_topics_names(side):
    plan = mandated(FLOW)
    refuse_other_names(plan, FLOW)
    other = replace(FLOW, **{side: replace(getattr(FLOW, side), alias="Z")})
    with pytest.raises(Refused, match=f"approved with {side} alias [AB], and here it is Z"):
        refuse_other_names(plan, other)


def test_a_mandate_is_not_followed_under_another_alias_in_mm2s_settings_whatever_its_topics_are_called():
    plan = mandated(FLOW)
    for alias in ("prod", ""):
        other = replace(FLOW, policy=replace(FLOW.policy, source_alias=alias))
        with pytest.raises(Refused, match="approved with mm2_source_alias unknown"):
            refuse_other_names(plan, other)
