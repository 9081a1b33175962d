"""What a Java exception says, in one phrase."""

from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JJavaError

from migrate.spark.java_errors import described, innermost, java_exception, last_line, root_cause


class Throwable:
    """A `java.lang.Throwable` as py4j shows one."""

    def __init__(self, name, message, cause=None):
        self._name, self._message, self._cause = name, message, cause

    def getClass(self):  # noqa: N802
        return SimpleNamespace(getSimpleName=lambda: self._name)

    def getMessage(self):  # noqa: N802
        return self._message

    def getCause(self):  # noqa: N802
        return self._cause


CAUSE = Throwable("TimeoutException", "timed out\n  after 5 s.")
WRAPPED = Throwable("SparkException", "Job aborted", Throwable("ExecutionException", "x", CAUSE))


class OfPy4j(Exception):
    """Carries its throwable as py4j's errors do."""

    java_exception = WRAPPED


class OfPyspark(Exception):
    """Carries its throwable as pyspark's errors do."""

    _origin = WRAPPED


@pytest.mark.parametrize("error", [OfPy4j(), OfPyspark()])
def test_an_error_is_its_innermost_cause_on_one_line(error):
    assert innermost(WRAPPED) is CAUSE
    assert root_cause(error) == "TimeoutException: timed out after 5 s"


def test_a_kdcs_refusal_is_told_and_not_that_it_is_no_ticket():
    no_ticket = Throwable("Asn1Exception", "Identifier doesn't match expected value (906)")
    again = Throwable("KrbException", "Identifier doesn't match expected value (906)", no_ticket)
    refusal = Throwable("KrbException", "Server not found in Kerberos database (7) - LOOKING_UP_SERVER", again)
    assert innermost(Throwable("GSSException", "No valid credentials provided", refusal)) is refusal


class Raised(Py4JJavaError):
    """As py4j raises it, without a JVM to ask."""

    def __init__(self, throwable):
        self.java_exception = throwable


def test_the_end_of_a_workers_stream_is_told_by_what_it_came_from():
    gone = Throwable("SparkException", "Python worker exited unexpectedly (crashed).", Throwable("EOFException", None))
    assert last_line(Raised(Throwable("SparkException", "Job aborted", gone))) == (
        "Python worker exited unexpectedly (crashed)"
    )
    trace = Throwable("PythonException", "Traceback\n  File x\nModuleNotFoundError: No module named 'y'\n")
    assert last_line(Raised(trace)) == "ModuleNotFoundError: No module named 'y'"
    assert last_line(Raised(Throwable("EOFException", None))) == "no reason was given"


@pytest.mark.parametrize("message", [None, "", " \n"])
def test_a_throwable_without_a_message_is_its_class(message):
    assert described(Throwable("EOFException", message)) == "EOFException"


@pytest.mark.parametrize(("error", "phrase"), [(ValueError("no.\nmore"), "no"), (KeyError(), "KeyError")])
def test_an_error_of_pythons_own_is_its_first_line_or_its_class(error, phrase):
    assert java_exception(error) is None
    assert root_cause(error) == phrase
