"""A topic that is compacted while it is read is read anew, a few times."""

import pytest

from migrate.errors import ClusterError
from migrate.survey.offsets_pin import ATTEMPTS, CompactedMeanwhileError, persistently


def reading(times, answers):
    """What fails so many times, and counts in `answers` how often it was asked."""

    def read():
        answers.append(len(answers))
        if len(answers) <= times:
            raise CompactedMeanwhileError("checkpoints")
        return "all of it"

    return read


def test_it_is_read_anew_until_nothing_is_missing():
    answers = []
    assert persistently(reading(ATTEMPTS - 1, answers)) == "all of it" and len(answers) == ATTEMPTS


def test_one_that_is_compacted_each_time_is_an_error_that_names_it():
    answers = []
    with pytest.raises(CompactedMeanwhileError, match="checkpoints was compacted while it was read"):
        persistently(reading(ATTEMPTS, answers))
    assert len(answers) == ATTEMPTS


def test_another_failure_is_told_at_once():
    with pytest.raises(ClusterError, match="no leader"):
        persistently(failing)


def failing():
    raise ClusterError("no leader")
