"""Lines of text for people: wrapped at a word's end and never cut, labelled, listed up to a number, counted. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from migrate.text import Colour, cells, name, paint, some


def wrapped(
    text: str, width: int, first: str = "", rest: str | None = None, colour: Colour | None = None
) -> Iterator[str]:
    """Yield the text in lines of at most `width`, broken between words and never inside one, each in the colour.

    The first line begins with `first`, the others with `rest` (by default as many blanks). A word that is
    longer than a line has a line of its own, uncut: names are copied from here.
    """
    begin = " " * cells(first) if rest is None else rest
    words = text.split(" ")
    lines, used = [first + words[0]], cells(first) + cells(words[0])
    for word in words[1:]:
        needed = cells(word)
        if used + 1 + needed > width:
            lines.append(begin + word)
            used = cells(begin) + needed
        else:
            lines[-1] += " " + word
            used += 1 + needed
    for line in lines:
        yield paint(line.rstrip(), colour, True) if colour else line.rstrip()


def headed(head: str, colour: Colour | None, lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines, with the head that the first one begins with, if it is whole there, in the colour."""
    for i, line in enumerate(lines):
        yield line.replace(head, paint(head, colour, True), 1) if colour and i == 0 else line


def at_most(texts: Sequence[str], most: int, width: int, more: str = "more", indent: str = "  ") -> Iterator[str]:
    """Yield the first texts, indented and wrapped, and on a last line how many there are beyond `most`."""
    for text in texts[:most]:
        yield from wrapped(text, width, indent, indent + "  ")
    if len(texts) > most:
        yield f"{indent}and {len(texts) - most} {more}"


def number(value: int | None, without: str = "-") -> str:
    """Return a number, or the sign for none."""
    return without if value is None else str(value)


def tally(counts: Mapping[Any, int], order: Iterable[Any] | None = None) -> str:
    """Return "3 set, 1 keep": what there is some of, in this order, else in that of the counts."""
    return ", ".join(f"{counts[word]} {word}" for word in order or counts if counts.get(word))


def names(texts: Sequence[str], most: int) -> str:
    """Return at most so many names on one line, and how many there are beyond."""
    return some(map(name, texts), most)


def aligned(pairs: Iterable[tuple[str, str]], width: int, least: int = 0) -> Iterator[str]:
    """Yield labels and texts in two columns, the first at least so wide, the texts wrapped beside their label."""
    listed = list(pairs)
    widest = max([least, *(cells(label) for label, _ in listed)])
    for label, text in listed:
        yield from wrapped(text, width, label + " " * (widest - cells(label) + 2))
