"""Errors that end a command: what each says, and the exit code that a script sees."""

import pytest

from migrate import errors
from migrate.errors import (
    ClusterError,
    ConfigError,
    EnvironmentLacks,
    MigrateError,
    NoSuchPlan,
    Refused,
    UnreadablePlan,
    UsageError,
)

KINDS = {value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, MigrateError)}


def test_an_error_reads_as_one_paragraph_of_what_is_wrong_and_what_to_do():
    assert str(MigrateError("It is so.", "Do this.")) == "It is so. Do this."
    assert str(MigrateError("It is so.")) == "It is so."


@pytest.mark.parametrize("kind", sorted(KINDS, key=str))
def test_every_error_has_an_exit_code_that_is_not_success(kind):
    expected = {UsageError: 2, ConfigError: 2, NoSuchPlan: 2, Refused: 3}
    assert kind("x").exit_code == expected.get(kind, 1)


def test_no_kind_of_error_was_forgotten_here():
    assert {
        MigrateError, UsageError, ConfigError, ClusterError, UnreadablePlan, NoSuchPlan, Refused, EnvironmentLacks,
    } == KINDS  # fmt: skip


def test_exit_codes_differ():
    codes = [value for name, value in vars(errors).items() if name.startswith("EXIT_")]
    assert sorted(codes) == [0, 1, 2, 3, 4]
