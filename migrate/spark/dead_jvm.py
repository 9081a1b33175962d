"""A JVM that ends while it is asked: what py4j raises then, as one error of ours.

That is an `OSError`, an error of py4j's own, or both in a chain; an `OSError` that escapes would be taken for the
journal's.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from migrate.errors import ClusterError
from migrate.spark.java_errors import root_cause
from migrate.spark.machine import log_file, machine_ending


class LostMachine(ClusterError):
    """Raised when the JVM gave no answer: what it was asked to write may be written."""


@contextmanager
def asking_machine() -> Iterator[None]:
    """Make one `LostMachine` of whatever py4j raises inside; only what is asked of the JVM belongs there."""
    from py4j.protocol import Py4JError

    try:
        yield
    except (Py4JError, OSError) as error:
        ending = machine_ending() if _may_be_its_end(error) else None
        if ending is not None:
            raise _ended(ending) from error
        raise LostMachine(
            f"Kafka's Java client failed: {root_cause(error)}.", f"Its JVM's own log is {log_file()}."
        ) from error


@contextmanager
def needing_machine() -> Iterator[None]:
    """Raise `LostMachine` instead of what came of it that the JVM has ended; all else stays what it is."""
    try:
        yield
    except Exception as error:
        ending = machine_ending() if _may_be_its_end(error) else None
        if ending is None or isinstance(error, LostMachine):
            raise
        raise _ended(ending) from error


def _may_be_its_end(error: BaseException) -> bool:
    """True if a broken connection is in the chain, or an error of py4j's that Java has not raised.

    PySpark's own stream of rows ends with `EOFError`.
    """
    from py4j.protocol import Py4JError, Py4JJavaError

    if isinstance(error, ConnectionError | EOFError):
        return True
    if isinstance(error, Py4JError) and not isinstance(error, Py4JJavaError):
        return True
    return error.__cause__ is not None and _may_be_its_end(error.__cause__)


def _ended(ending: str) -> LostMachine:
    return LostMachine(
        f"The JVM that Spark and Kafka's Java client need ended {ending}, before it had answered.",
        "Run the same command again. If the machine's memory ran out, the kernel's log says so; "
        f"the JVM's own log is {log_file()}.",
    )
