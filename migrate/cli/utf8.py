"""UTF-8 whatever the locale says: what Kafka calls groups and topics is UTF-8, and so are the files of this tool."""

import io
import locale
import os
import sys

from migrate.text import output_takes

C_LOCALES = frozenset({"C", "POSIX"})
# Every glibc has it; elsewhere an unknown locale is the C locale again.
C_WITH_UTF8 = "C.UTF-8"


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
