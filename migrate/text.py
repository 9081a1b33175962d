"""Words for people: names made harmless, their width on the screen, colour, plurals, spans of time, numbers of bytes.

Group and topic names are other people's text: none of it may move the cursor, end a line, turn the reading
direction or look like something else. Pure: the caller says whether there is a terminal.
"""

import codecs
import re
import shlex
import unicodedata
from collections.abc import Iterable, Mapping
from decimal import Decimal
from enum import StrEnum


class Colour(StrEnum):
    """The few colours there are, as the parameters of ANSI's "select graphic rendition"."""

    RED = "1;31"
    GREEN = "1;32"
    YELLOW = "33"
    BOLD = "1"
    DIM = "2"


# What a spreadsheet takes for the beginning of a formula; the wide forms are what those of East Asian locales do.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


# What encoding the output has: `output_takes` says it once, when the command starts.
_encoding = ["utf-8"]


def output_takes(encoding: str) -> None:
    """Tell what encoding the output has: what it lacks is printed escaped, which takes more columns."""
    _encoding[0] = codecs.lookup(encoding).name


def _printed(character: str) -> bool:
    """True if the output has this character."""
    if _encoding[0] == "utf-8":
        return True
    try:
        character.encode(_encoding[0])
    except UnicodeEncodeError:
        return False
    return True


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


def both_names(source: str, target: str) -> str:
    """Return what something is called on the source, and on the target where that is another name."""
    return name(source) if source == target else f"{name(source)} -> {name(target)}"


def many(count: int, noun: str) -> str:
    """Return "1 group", "3,000 groups"."""
    return f"{count} {noun}" if count == 1 else f"{count:,} {noun}s"


def some(names: Iterable[str], most: int = 10, between: str = ", ") -> str:
    """Return at most `most` names in a sentence, and how many more there are."""
    listed = list(names)
    tail = f" and {len(listed) - most:,} more" if len(listed) > most else ""
    return between.join(listed[:most]) + tail


def capital(text: str) -> str:
    """Return the text with its first letter in upper case, and the rest as it is."""
    return text[:1].upper() + text[1:]


def shell_word(text: str) -> str:
    """Return the text quoted for bash: what is pasted means exactly this name, and shows no control character."""
    if text.isprintable() and _printed(text):
        return shlex.quote(text)
    return "$'" + "".join(_in_ansi_c_quotes(c) for c in text) + "'"


def _in_ansi_c_quotes(character: str) -> str:
    if character in "\\'":
        return "\\" + character
    if character.isprintable() and _printed(character):
        return character
    # by bytes: what bash makes of \u depends on the locale
    return "".join(f"\\x{byte:02x}" for byte in _bytes_of(character))


def _bytes_of(character: str) -> bytes:
    try:
        # What Python reads of a file name that is no text represents one byte each.
        return character.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return character.encode("utf-8", "surrogatepass")


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def cells(text: str) -> int:
    """Return how many columns of a terminal the text takes: wide characters two, combining ones none.

    What the output's encoding lacks takes as many as its escape.
    """
    return len(text) if text.isascii() else sum(map(_cells, text))


def _cells(character: str) -> int:
    if not _printed(character):
        return len(_escaped(character))
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def duration_text(seconds: float) -> str:
    """Return "0 s", "45 s", "3 min 20 s", "2 h 5 min", "3 d 4 h": two units are enough to decide by."""
    whole = max(0, round(seconds))
    if whole < 100:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 100:
        return f"{minutes} min {rest} s" if rest and minutes < 10 else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


_UNITS = ("", "K", "M", "G", "T", "P")


def parse_bytes(text: str) -> int:
    """Read "1048576", "500M", "1.5G" or "2GB"; raises `ValueError` for anything else."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGTP]?)B?", text.strip().upper())
    if not match:
        raise ValueError(f"invalid size {text!r}: use for example 500M, 2G or 1048576.")
    return int(Decimal(match[1]) * Decimal(1000 ** _UNITS.index(match[2])))


_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def parse_duration(text: str) -> int:
    """Read "90d", "12h", "30m", "45s" or "2w" as milliseconds; raises `ValueError` for anything else."""
    match = re.fullmatch(r"(\d{1,9})\s*([smhdw])", text.strip().lower())
    if not match:
        raise ValueError(f"invalid duration {text!r}: use for example 90d, 12h or 30m.")
    return int(match[1]) * _SECONDS[match[2]] * 1000


def bytes_text(count: int) -> str:
    """Return "999 B", "1.2 kB", "35 MB", "1.2 GB": two digits are enough to decide by."""
    size, unit = float(count), 0
    while size >= 999.5 and unit < len(_UNITS) - 1:
        size /= 1000
        unit += 1
    if unit == 0:
        return f"{count} B"
    digits = f"{size:.1f}" if size < 9.95 else f"{size:.0f}"
    return f"{digits} {'k' if unit == 1 else _UNITS[unit]}B"


def utf16_units(text: str) -> int:
    """Return the text's length as Java counts it."""
    return len(text) + sum(c > "\uffff" for c in text)
