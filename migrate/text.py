"""Text that goes to a terminal: names made harmless, their width on the screen, and colour.

Group and topic names are other people's text: none of it may move the cursor, end a line, turn the reading
direction or look like something else. Pure: whether a terminal is there is told by the caller.
"""

import shlex
import unicodedata
from collections.abc import Mapping
from enum import StrEnum


class Colour(StrEnum):
    """The few colours there are, as the parameters of ANSI's "select graphic rendition"."""

    RED = "1;31"
    GREEN = "1;32"
    YELLOW = "33"
    BOLD = "1"
    DIM = "2"


def wants_colour(is_terminal: bool, environment: Mapping[str, str]) -> bool:
    """True if output to this stream is to be coloured: a terminal, and neither NO_COLOR nor TERM=dumb."""
    return is_terminal and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


def paint(text: str, colour: Colour, enabled: bool) -> str:
    """Return the text in a colour; the same text if colour is off or there is nothing to see."""
    return f"\x1b[{colour}m{text}\x1b[0m" if enabled and text else text


def safe(text: str) -> str:
    r"""Return the text with whatever is not plainly visible escaped as Python does: `\n`, `\x1b`, `\u202e`.

    Escaped are control characters, line ends, blanks other than the space, invisible and direction-changing
    characters, and lone surrogates; all else is kept.
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in text)


def name(text: str) -> str:
    """Return a name made `safe`; in quotes if it is empty or has spaces at its ends, which nobody would see."""
    shown = safe(text)
    return shown if shown and shown[0] != " " and shown[-1] != " " else f'"{shown}"'


def many(count: int, noun: str) -> str:
    """Return "1 group", "3 groups"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def capital(text: str) -> str:
    """Return the text with its first letter in upper case, and the rest as it is."""
    return text[:1].upper() + text[1:]


def shell_word(text: str) -> str:
    """Return the text quoted for bash: what is pasted means exactly this name, and shows no control character."""
    if text.isprintable():
        return shlex.quote(text)
    return "$'" + "".join(_in_ansi_c_quotes(c) for c in text) + "'"


def _in_ansi_c_quotes(character: str) -> str:
    if character in "\\'":
        return "\\" + character
    if character.isprintable():
        return character
    # by bytes: what bash makes of \u depends on the locale
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def cells(text: str) -> int:
    """Return how many columns of a terminal the text takes: wide characters two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(_cells(c) for c in text)


def _cells(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
