"""What can stop a command, and the exit code that each ends in.

An expected refusal of one row or group is a value in the plan, not an exception: exceptions are for
"cannot go on". Every message says what was wrong, where, what was expected and what to do next.
"""

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_REFUSED = 3
EXIT_PARTLY = 4


class MigrateError(Exception):
    """Root of all errors that end a command with one paragraph on stderr.

    `problem` says what is wrong and where; `todo` what to do next.
    """

    exit_code = EXIT_FAILED

    def __init__(self, problem: str, todo: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.todo = todo

    def __str__(self) -> str:
        return f"{self.problem} {self.todo}".strip()


class UsageError(MigrateError):
    """Raised when options or files named on the command line do not fit together."""

    exit_code = EXIT_USAGE


class ConfigError(UsageError):
    """Raised when a properties file cannot be read, lacks a setting, or has one that cannot be mapped."""


class ClusterError(MigrateError):
    """Raised when a cluster cannot be reached, or refuses or cuts short an answer."""


class UnreadablePlan(MigrateError):
    """Raised when a file is not a plan, is damaged, or is of a format this version does not know."""


class NoSuchPlan(UnreadablePlan):
    """Raised when the path of a plan names no file: it was typed wrong."""

    exit_code = EXIT_USAGE


class Refused(MigrateError):
    """Raised when a safety check says no: nothing (more) is written."""

    exit_code = EXIT_REFUSED


class EnvironmentLacks(MigrateError):
    """Raised when Java, a jar or a Python package that the command needs is missing."""
