"""Columns of text: sized to their content, never cut. What does not fit goes on the next line, at a word's end."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from migrate.text import Colour, cells, name, paint, some

# Rows that are measured together: a million need not be held at once.
AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its heading, its least width in terminal columns, and whether its values are right-aligned."""

    heading: str
    width: int = 0
    right: bool = True


def columns(*headings: str, right: bool = True) -> tuple[Column, ...]:
    """Return columns that are as wide as their values, all aligned alike."""
    return tuple(Column(heading, right=right) for heading in headings)


@dataclass(frozen=True, slots=True)
class Layout:
    """Columns wide enough for their values and headings, and the headings in lines. `gap` is the blanks between."""

    columns: tuple[Column, ...]
    headings: tuple[str, ...]
    gap: int
    _pattern: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        pattern = (" " * self.gap).join(f"%{'' if c.right else '-'}{c.width}s" for c in self.columns)
        object.__setattr__(self, "_pattern", pattern)

    @property
    def width(self) -> int:
        """The width of columns and gaps."""
        return sum(c.width for c in self.columns) + self.gap * (len(self.columns) - 1)

    def line(self, values: Sequence[str]) -> str:
        """Return one line of values under their columns, without blanks at its end."""
        text = self._pattern % tuple(values)
        if text.isascii():
            return text.rstrip()
        padded = []
        for column, value in zip(self.columns, values, strict=True):
            blanks = " " * (column.width - cells(value))
            padded.append(blanks + value if column.right else value + blanks)
        return (" " * self.gap).join(padded).rstrip()


def layout(columns: Sequence[Column], rows: Iterable[Sequence[str]], width: int, gap: int = 2) -> Layout:
    """Return the columns, each as wide as its widest value, with headings on one line if that keeps within `width`.

    Otherwise headings are broken before their last word (LOG-END-OFFSET becomes LOG-END- above OFFSET).
    """
    widths = [column.width for column in columns]
    waiting = iter(rows)
    while batch := list(islice(waiting, AT_ONCE)):
        widths = [max(w, _widest(texts)) for w, texts in zip(widths, zip(*batch, strict=True), strict=True)]
    wide = [Column(column.heading, w, column.right) for column, w in zip(columns, widths, strict=True)]
    one_line = _with_headings(wide, [[c.heading] for c in wide], gap)
    return one_line if one_line.width <= width else _with_headings(wide, [_broken(c.heading) for c in wide], gap)


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


def _with_headings(columns: Sequence[Column], words: Sequence[Sequence[str]], gap: int) -> Layout:
    deep = max(len(w) for w in words)
    stacked = [[""] * (deep - len(w)) + list(w) for w in words]
    wide = tuple(
        Column(c.heading, max(c.width, *map(cells, w)), c.right) for c, w in zip(columns, stacked, strict=True)
    )
    bare = Layout(wide, (), gap)
    return replace(bare, headings=tuple(map(bare.line, zip(*stacked, strict=True))))


def _widest(texts: Sequence[str]) -> int:
    # Column by column and mostly without a call of ours: to describe ten thousand groups took half as long again.
    return max(map(len if all(map(str.isascii, texts)) else cells, texts))


def _broken(heading: str) -> list[str]:
    before, hyphen, last = heading.rpartition("-")
    return [before + hyphen, last] if hyphen else [last]
