"""A terminal's screen that is drawn anew every few seconds, in place: what `watch` does, without its flicker."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from shutil import get_terminal_size

from migrate.text import cells, many

_ENTER = "\x1b[?1049h\x1b[?25l"
_LEAVE = "\x1b[?25h\x1b[?1049l"
_PAINT = re.compile(r"\x1b\[[0-9;]*m")
_HOME, _REST_OF_LINE, _REST_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"


def fitting(lines: Sequence[str], width: int, height: int) -> Sequence[str]:
    """Return the lines that a terminal has room for; what does not fit the height is counted on the last line.

    A line wider than the terminal goes on below itself there, and takes as many rows: taken for one, the top of the
    screen would scroll away, and every drawing would leave it behind anew.
    """
    rows = [max(1, -(-cells(_PAINT.sub("", line)) // max(1, width))) for line in lines]
    if sum(rows) <= height:
        return lines
    kept = sum(used < height for used in accumulate(rows))
    rest = f"... {many(len(lines) - kept, 'line')} more: without --watch all are shown"
    return [*lines[:kept], rest[:width]]


Draw = Callable[[Iterable[str]], None]


@contextmanager
def screen_if(wanted: bool) -> Iterator[Draw | None]:
    """Yield what draws lines on the terminal's alternate screen, None where it is not wanted.

    What was there before comes back when it is left, with the last drawing below it where that was by Ctrl-C or an
    error: who has watched for an hour wants to know what stood there.
    """
    if not wanted:
        yield None
        return
    last: list[str] = []

    def draw(lines: Iterable[str]) -> None:
        last[:] = lines
        _draw(last)

    sys.stdout.write(_ENTER)
    try:
        yield draw
    except BaseException:
        sys.stdout.write(_LEAVE + "".join(f"{line}\n" for line in last))
        raise
    else:
        sys.stdout.write(_LEAVE)
    finally:
        sys.stdout.flush()


def _draw(lines: Sequence[str]) -> None:
    """Draw lines from the top; what does not fit the height is counted on the last line."""
    size = get_terminal_size((80, 24))
    listed = fitting(lines, size.columns, max(2, size.lines))
    sys.stdout.write(_HOME + f"{_REST_OF_LINE}\n".join(listed) + _REST_OF_LINE + _REST_OF_SCREEN)
    sys.stdout.flush()
