"""Errors that end a command: what each says, and the exit code that a script sees."""

from migrate import errors
from migrate.errors import MigrateError

# What a script sees of each; 4 is of a command that ended without an error, and left something undone.
EXIT_CODES = {
    "MigrateError": 1, "ClusterError": 1, "UnreadablePlan": 1, "EnvironmentLacks": 1, "UsageError": 2, "ConfigError": 2,
    "NoSuchPlan": 2, "Refused": 3,
}  # fmt: skip


def test_each_error_has_its_exit_code_and_codes_differ():
    kinds = {value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, MigrateError)}
    assert {kind.__name__: kind("x").exit_code for kind in kinds} == EXIT_CODES
    assert sorted(value for name, value in vars(errors).items() if name.startswith("EXIT_")) == [0, 1, 2, 3, 4]


def test_an_error_reads_as_one_paragraph_of_what_is_wrong_and_what_to_do():
    assert str(MigrateError("It is so.", "Do this.")) == "It is so. Do this."
    assert str(MigrateError("It is so.")) == "It is so."
