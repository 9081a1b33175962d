"""What a Java exception says, in one phrase: Spark wraps the cause in pages of stack trace."""

from collections.abc import Iterator
from typing import Any

_NO_TICKET = "Identifier doesn't match expected value"


def root_cause(error: BaseException) -> str:
    """Return the innermost cause of an error raised through py4j, as "ClassName: message"."""
    throwable = java_exception(error)
    if throwable is None:
        text = str(error).strip() or type(error).__name__
        return text.splitlines()[0].rstrip(".")
    return described(throwable)


def described(throwable: Any) -> str:
    """Return a Java throwable's innermost cause as "ClassName: message", on one line."""
    inner = innermost(throwable)
    name = inner.getClass().getSimpleName()
    message = " ".join((inner.getMessage() or "").split())
    return (f"{name}: {message}" if message else name).rstrip(".")


def last_line(error: BaseException) -> str:
    """Return the error of a Python worker without its stack trace, which names its cause last."""
    from py4j.protocol import Py4JJavaError

    if not isinstance(error, Py4JJavaError):
        return root_cause(error)
    # The end of a worker's stream has no message of its own: what it came from says that the worker is gone.
    said = [text for throwable in causes(error.java_exception) if (text := str(throwable.getMessage() or "").strip())]
    return (said or ["no reason was given"])[-1].splitlines()[-1].strip().rstrip(".")


def causes(throwable: Any) -> Iterator[Any]:
    """Yield a Java throwable, its cause, and so on, the innermost last."""
    while throwable is not None:
        yield throwable
        throwable = throwable.getCause()


def innermost(throwable: Any) -> Any:
    """Return the last cause of a Java throwable; of a KDC's refusal, the refusal.

    Java takes it for a ticket first, and has what came of that as its cause.
    """
    found = list(causes(throwable))
    return next((each for each in reversed(found) if _NO_TICKET not in (each.getMessage() or "")), found[-1])


def java_exception(error: BaseException) -> Any:
    """Return the Java throwable that an error carries; None if it carries none."""
    # pyspark keeps it in `_origin`, py4j in `java_exception`.
    for name in ("java_exception", "_origin"):
        if (throwable := getattr(error, name, None)) is not None:
            return throwable
    cause = error.__cause__
    return java_exception(cause) if cause is not None else None
