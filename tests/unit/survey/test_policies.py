"""Policies: what becomes of rows that no law translates, and what a misspelt choice does."""

import pytest

from migrate.errors import UsageError
from migrate.survey.policies import UNTRANSLATABLE_REASONS, Policies, Untranslatable, parse_untranslatable


def test_every_untranslatable_commit_blocks_but_for_a_default_and_choices_by_reason():
    assert {Policies().for_reason(reason) for reason in UNTRANSLATABLE_REASONS} == {Untranslatable.BLOCK}
    policies = Policies((), *parse_untranslatable(["skip", "commit-beyond-log-end=latest"]))
    assert policies.for_reason("commit-beyond-log-end") is Untranslatable.LATEST
    assert policies.for_reason("topic-not-replicated") is Untranslatable.SKIP


@pytest.mark.parametrize("reason", ["target-topic-missing", "target-partition-missing"])
def test_no_offset_can_be_set_on_a_partition_that_does_not_exist(reason):
    with pytest.raises(UsageError, match="no partition"):
        parse_untranslatable([f"{reason}=earliest"])
    assert Policies((), *parse_untranslatable(["earliest"])).for_reason(reason) is Untranslatable.BLOCK


def test_unknown_words_are_refused_and_latest_which_skips_records_needs_a_reason():
    with pytest.raises(UsageError, match="needs a reason"):
        parse_untranslatable(["latest"])
    for text in ("later", "commit-beyond-log-end=later", "commit=skip"):
        with pytest.raises(UsageError):
            parse_untranslatable([text])
