"""Waivers and policies: what can be waived, and what a misspelt one does."""

import pytest

from migrate.errors import UsageError
from migrate.survey.policies import (
    ACCEPTABLE_CHECKS,
    NEVER_ACCEPTABLE,
    UNTRANSLATABLE_REASONS,
    Policies,
    Untranslatable,
    Waiver,
    parse_untranslatable,
    parse_waiver,
)


def test_a_waiver_without_a_subject_covers_every_subject():
    waiver = parse_waiver("source-group-stopped")
    assert waiver.covers("source-group-stopped", "g1") and not waiver.covers("re-read-limit", "g1")


def test_a_waiver_with_a_subject_covers_only_that_one_even_if_it_holds_colons():
    waiver = parse_waiver("source-group-stopped:team:orders")
    assert waiver == Waiver("source-group-stopped", "team:orders")
    assert not waiver.covers("source-group-stopped", "team")


@pytest.mark.parametrize("check", NEVER_ACCEPTABLE)
def test_what_protects_the_data_itself_can_never_be_waived(check):
    with pytest.raises(UsageError, match="never be waived"):
        parse_waiver(check)


def test_a_misspelt_waiver_is_refused_and_told_the_names_that_exist():
    with pytest.raises(UsageError) as refused:
        parse_waiver("source-group-stoped")
    assert "source-group-stopped" in refused.value.todo


def test_no_check_is_both_acceptable_and_never_acceptable():
    assert not set(ACCEPTABLE_CHECKS) & set(NEVER_ACCEPTABLE)


def test_untranslatable_has_a_default_and_choices_by_reason():
    default, by_reason = parse_untranslatable(["skip", "commit-beyond-log-end=latest"])
    policies = Policies(untranslatable=default, untranslatable_by_reason=by_reason)
    assert policies.for_reason("commit-beyond-log-end") is Untranslatable.LATEST
    assert policies.for_reason("topic-not-replicated") is Untranslatable.SKIP


def test_latest_skips_records_so_it_needs_a_reason():
    with pytest.raises(UsageError, match="needs a reason"):
        parse_untranslatable(["latest"])


@pytest.mark.parametrize("text", ["later", "commit-beyond-log-end=later", "commit=skip"])
def test_unknown_words_are_refused(text):
    with pytest.raises(UsageError):
        parse_untranslatable([text])


@pytest.mark.parametrize("reason", ["target-topic-missing", "target-partition-missing"])
def test_no_offset_can_be_set_on_a_partition_that_does_not_exist(reason):
    with pytest.raises(UsageError, match="no partition"):
        parse_untranslatable([f"{reason}=earliest"])
    default, by_reason = parse_untranslatable(["earliest"])
    assert Policies(untranslatable=default).for_reason(reason) is Untranslatable.BLOCK


@pytest.mark.parametrize("reason", UNTRANSLATABLE_REASONS)
def test_every_untranslatable_commit_blocks_by_default(reason):
    assert Policies().for_reason(reason) is Untranslatable.BLOCK
