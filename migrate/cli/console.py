"""The terminal: results on stdout, progress and errors on stderr, one paragraph and an exit code for every error."""

import contextlib
import errno
import io
import locale
import os
import re
import shutil
import signal
import socket
import stat
import sys
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from threading import Thread
from types import FrameType
from typing import Any, NoReturn

import click

from migrate.errors import EXIT_DONE, EXIT_FAILED, MigrateError
from migrate.text import output_takes, safe, wants_colour

_telling: list[tuple[Any, Any]] = []
# Those of our stdouts whose reader has gone.
_unread: list[Any] = []
# Some 10,000 rows: from there on reading it takes seconds.
LARGE_PLAN_BYTES = 40_000
STAYS_DONE = (
    "What the command did before stays done. Fix the output, then run the same command again; after apply or rollback, "
    "`mm2-migrate verify` shows what is on the target."
)

# A command inside of a message: in backticks, or all that follows a colon.
_COMMAND = re.compile(r"`[^`]*`|(?<=: )mm2-migrate .*")

C_LOCALES = frozenset({"C", "POSIX"})
# Every glibc has it; elsewhere an unknown locale is the C locale again.
C_WITH_UTF8 = "C.UTF-8"


def one_paragraph(command: Callable[[], int], debug: bool = False) -> Callable[[], NoReturn]:
    """Turn a command's errors into one paragraph on stderr and the exit code that the error carries.

    With `debug` the stack trace is shown, too.
    """

    def run() -> NoReturn:
        try:
            code = command()
        except MigrateError as error:
            if debug:
                traceback.print_exc()
            _complain(error.problem, error.todo)
            code = error.exit_code
        except (click.exceptions.Exit, click.ClickException):
            raise
        except KeyboardInterrupt as end:
            code = _interrupted(end)
        except Exception as error:  # the last net: a user gets a sentence, never a stack trace
            if debug:
                traceback.print_exc()
            code = _unexpected(error)
        sys.exit(code)

    return run


class Ended(KeyboardInterrupt):
    """Raised where a signal ends a command: as Ctrl-C does, so that no file is left half made."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.name = signal.Signals(number).name
        self.exit_code = 128 + number


def take_signals() -> None:
    """Have SIGTERM and SIGHUP end a command as Ctrl-C does, a second SIGTERM at once; `nohup` is heeded.

    The first one waits, as Ctrl-C, for a call of librdkafka's that is under way: for its deadline at most.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)
    reading, writing = socket.socketpair()
    writing.setblocking(False)
    signal.set_wakeup_fd(writing.detach(), warn_on_full_buffer=False)
    Thread(target=_end_at_the_second, args=(reading,), name="signals", daemon=True).start()


def _end(number: int, frame: FrameType | None) -> None:
    # A terminal that closes sends SIGHUP twice, by its shell and by the kernel: the second must not end the clean-up.
    signal.signal(number, signal.SIG_IGN if number == signal.SIGHUP else signal.SIG_DFL)
    raise Ended(number)


def _end_at_the_second(signals: socket.socket) -> None:
    """End the process at the second SIGTERM, also while its main thread is in a call that no handler interrupts."""
    terms = 0
    while came := signals.recv(64):
        terms += came.count(signal.SIGTERM)
        if terms > 1:
            os._exit(128 + signal.SIGTERM)


def _unexpected(error: Exception) -> int:
    if isinstance(error, SystemError) and isinstance(error.__cause__, KeyboardInterrupt):
        # What a signal's exception becomes that is raised inside a call of librdkafka's Python client.
        return _interrupted(error.__cause__)
    if isinstance(error, FileNotFoundError) and _working_folder_is_gone():
        _complain("The working folder is gone.", "Change to one that exists, and run the same command again.")
    else:
        _complain(
            f"Unexpected {type(error).__name__}: {_first_line(error)}",
            "This is a fault of mm2-migrate. Run again with --debug and report the stack trace.",
        )
    return EXIT_FAILED


def _interrupted(end: KeyboardInterrupt) -> int:
    by = f" by {end.name}" if isinstance(end, Ended) else ""
    _complain(f"Interrupted{by}.", "Run the same command again: it starts afresh, or takes up what is left.")
    return end.exit_code if isinstance(end, Ended) else EXIT_FAILED


def print_lines(lines: Iterable[str]) -> None:
    """Print results; if the reader (`head`, a pager, a terminal) has gone, drop the rest: what was done stays done.

    Raises `MigrateError` where the output takes no more, as a file on a full disk: nobody has the results then.
    """
    _hush()
    try:
        for line in lines:
            sys.stdout.write(line + "\n")
        sys.stdout.flush()
    except OSError as error:
        # A file that takes no more is a failure; a terminal that has closed is one of those who are gone.
        hung_up = error.errno == errno.EIO and stat.S_ISCHR(os.fstat(sys.stdout.fileno()).st_mode)
        _close_stdout()
        if not (hung_up or error.errno == errno.EPIPE):
            raise MigrateError(_output_lost(error), STAYS_DONE) from error
        _unread.append(sys.stdout)


class ReaderGone(Exception):
    """Raised in a watch once nobody reads what it prints."""


def reader_has_gone() -> bool:
    """Return whether results were dropped because nobody reads them any more: there is nothing left to watch for."""
    return any(stdout is sys.stdout for stdout in _unread)


def printed(lines: Iterable[str], code: int = EXIT_DONE) -> int:
    """Print results; return the exit code."""
    print_lines(lines)
    return code


def exit_code_of(command_line: click.Command) -> int:
    """Run the whole command line, with what click itself prints and refuses; return the exit code."""
    try:
        # Click returns the code of `Context.exit`, and what the command returned where that was not called.
        code = command_line(standalone_mode=False)
    except click.Abort as end:
        return end.__cause__.exit_code if isinstance(end.__cause__, Ended) else EXIT_FAILED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except OSError as error:  # --help and --version, which click prints
        _close_stdout()
        _complain(_output_lost(error), "")
        return EXIT_FAILED
    return code if isinstance(code, int) else EXIT_DONE


def _output_lost(error: OSError) -> str:
    return f"The output could not be written to stdout: {error.strerror}."


def _close_stdout() -> None:
    """Send stdout nowhere: Python flushes it again at exit, and would complain of what is left in it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _working_folder_is_gone() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


def _first_line(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # Java's errors ask the JVM for their text, which may be gone by now
        text = ""
    return text.strip().splitlines()[0][:500] if text.strip() else "(no message)"


def _complain(problem: str, todo: str) -> None:
    _hush()
    text = safe(f"mm2-migrate: {problem} {todo}".rstrip())
    if columns := _stderr_columns():
        from migrate.show.lines import wrapped

        # A command has to be copied whole: it is one word here, joined by blanks that `safe` never leaves in a text.
        text = _COMMAND.sub(lambda found: found[0].replace(" ", "\xa0"), text)
        text = "\n".join(wrapped(text, columns, "", "  ")).replace("\xa0", " ")
    say_beside(text)


def _stderr_columns() -> int:
    """Return the terminal's columns, 0 where stderr is none: a log is searched by lines."""
    return shutil.get_terminal_size((80, 24)).columns if sys.stderr.isatty() else 0


def say_beside(text: str, end: str = "\n") -> None:
    """Print on stderr, beside the results; where it takes nothing, the text is dropped.

    A log pipe that died must not stop an apply between two groups, nor leave a folder half written.
    """
    with contextlib.suppress(OSError):
        click.echo(text + end, err=True, nl=False)


def progress_on_stderr(log_format: str, quiet: bool = False) -> Any:
    """Return a command's progress, which ends by itself when results or an error are printed; `quiet` says nothing."""
    from migrate.clock import SystemClock
    from migrate.progress import LineProgress, beating

    write = (lambda text: None) if quiet else partial(say_beside, end="")
    progress = LineProgress(write, SystemClock(), as_json=log_format == "json", columns=_stderr_columns())
    _telling.append((progress, beating(progress)))
    return progress


def say_reading(progress: Any, *plans: Path) -> None:
    """Say that plan files are read, if that takes long enough to wonder."""
    for plan in plans:
        with contextlib.suppress(OSError):  # the one that reads it says why it cannot
            if plan.stat().st_size > LARGE_PLAN_BYTES:
                progress.step(f"reading {plan}")


def _hush() -> None:
    """End the progress: what comes now are results, or the error."""
    while _telling:
        progress, stop = _telling.pop()
        stop()
        progress.end()


def terminal_width() -> int:
    """Return the terminal's columns; where stdout is none, $COLUMNS, or 200: a pipe has no edge to cut at."""
    if sys.stdout.isatty():
        return shutil.get_terminal_size((80, 24)).columns
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdecimal() and int(columns) else 200


class ColourChoice(StrEnum):
    """When results are coloured: on a terminal, unless NO_COLOR says otherwise, or by the reader's word."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


_colour = ColourChoice.AUTO


def choose_colour(context: click.Context, parameter: click.Parameter, word: str) -> str:
    """Take what `--color` says for all that this command prints."""
    global _colour
    _colour = ColourChoice(word)
    return word


def coloured() -> bool:
    """Return whether results may be coloured."""
    if _colour is ColourChoice.AUTO:
        return wants_colour(sys.stdout.isatty(), os.environ)
    return _colour is ColourChoice.ALWAYS


@dataclass(frozen=True)
class Terminal:
    """Where results go: whether they may be coloured, whether it is a screen, how wide it is now, and what prints."""

    colour: bool = False
    is_screen: bool = False
    columns: Callable[[], int] = terminal_width
    show: Callable[[Iterable[str]], None] = print_lines

    @classmethod
    def here(cls) -> "Terminal":
        """Return this process's stdout."""
        return cls(coloured(), sys.stdout.isatty())

    @property
    def width(self) -> int:
        """How many columns results may have; it changes while somebody watches."""
        return self.columns()


def open_standard_streams() -> None:
    """Have something behind stdin, stdout and stderr: what is closed would be the next file, or socket, that is opened.

    Python has None for such a stream; what is written there is lost, as it would be.
    """
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest that is free, which is this one
            setattr(sys, name, os.fdopen(descriptor, "r" if name == "stdin" else "w", closefd=False))


def take_utf8() -> None:
    """Have UTF-8 in the C locale, for this process and what it starts; begin this process anew where Python has not.

    In the C locale Java takes every name for ASCII, and finds no jar in a folder with another one. Python takes UTF-8
    there by itself, unless PYTHONUTF8=0 forbids it: then no option or file name would be what was typed.
    """
    if locale.setlocale(locale.LC_CTYPE) not in C_LOCALES:
        return
    os.environ["LC_ALL"] = C_WITH_UTF8
    once = os.environ.get("PYTHONUTF8") != "1" and not sys.flags.ignore_environment
    if sys.getfilesystemencoding() != "utf-8" and once and sys.executable:
        os.environ["PYTHONUTF8"] = "1"
        os.execv(sys.executable, sys.orig_argv)


def escape_what_output_lacks() -> None:
    """Show what stdout's or stderr's encoding lacks escaped, and not crash; layout and quoting reckon with it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    output_takes(sys.stdout.encoding or "utf-8")


def print_in_utf8() -> None:
    """Print what programs read: a name that is escaped there is another name."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
