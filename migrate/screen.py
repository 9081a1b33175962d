"""A terminal's screen that is drawn anew every few seconds, in place: what `watch` does, without its flicker."""

import sys
from collections.abc import Iterable
from shutil import get_terminal_size

_ENTER = "\x1b[?1049h\x1b[?25l"
_LEAVE = "\x1b[?25h\x1b[?1049l"
_HOME, _REST_OF_LINE, _REST_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"


class Screen:
    """The alternate screen of stdout's terminal; what stood there before comes back when it is left."""

    def __enter__(self) -> "Screen":
        sys.stdout.write(_ENTER)
        return self

    def __exit__(self, *trouble: object) -> None:
        sys.stdout.write(_LEAVE)
        sys.stdout.flush()

    def draw(self, lines: Iterable[str]) -> None:
        """Draw lines from the top; what does not fit the height is counted on the last line."""
        listed = list(lines)
        height = max(2, get_terminal_size((80, 24)).lines)
        if len(listed) > height:
            listed = [
                *listed[: height - 1],
                f"... {len(listed) - height + 1} lines more: without --watch all are shown",
            ]
        sys.stdout.write(_HOME + f"{_REST_OF_LINE}\n".join(listed) + _REST_OF_LINE + _REST_OF_SCREEN)
        sys.stdout.flush()
