"""Which errors prove that a write was not made: a short list, and everything else is unknown."""

import pytest

from migrate.kafka.errors import RETRIABLE
from migrate.spark import java_admin
from migrate.write_outcome import NOT_WRITTEN, PASSING, may_be_written


@pytest.mark.parametrize("code", [
    "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "REQUEST_TIMED_OUT", "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    "_TIMED_OUT", "_TRANSPORT", "UNKNOWN", "",
])  # fmt: skip
def test_what_brokers_may_say_after_the_append_or_nobody_said_at_all_proves_nothing(code):
    assert may_be_written(code)


def test_what_is_checked_before_the_append_proves_that_nothing_was_written():
    assert NOT_WRITTEN and not [code for code in NOT_WRITTEN if may_be_written(code)]


def test_both_clients_try_again_on_the_same_of_kafkas_errors():
    assert {code for code in RETRIABLE if not code.startswith("_")} == PASSING
    assert java_admin.PASSING is PASSING
