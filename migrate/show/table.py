"""Columns of text: sized to their content, never cut. What does not fit goes on the next line, at a word's end."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from migrate.text import cells


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its heading, its width in terminal columns, and whether values stand to the right (numbers do)."""

    heading: str
    width: int
    right: bool = True


@dataclass(frozen=True, slots=True)
class Layout:
    """Columns wide enough for their values and headings, and the heading's lines. `gap` is the blanks between."""

    columns: tuple[Column, ...]
    headings: tuple[str, ...]
    gap: int

    @property
    def width(self) -> int:
        """The width of columns and gaps."""
        return sum(c.width for c in self.columns) + self.gap * (len(self.columns) - 1)

    def line(self, values: Sequence[str]) -> str:
        """Return one line of values under their columns, without blanks at its end."""
        return _line(self.columns, values, self.gap)


def layout(columns: Sequence[Column], width: int, gap: int = 2) -> Layout:
    """Return the columns laid out, with headings on one line if the table then keeps within `width`.

    Otherwise headings are broken before their last word (LOG-END-OFFSET becomes LOG-END- above OFFSET).
    """
    one_line = _with_headings(columns, [[c.heading] for c in columns], gap)
    if one_line.width <= width:
        return one_line
    return _with_headings(columns, [_broken(c.heading) for c in columns], gap)


def wrapped(text: str, width: int, first: str = "", rest: str | None = None) -> Iterator[str]:
    """Yield the text in lines of at most `width`, broken between words and never inside one.

    The first line begins with `first`, the others with `rest` (by default as many blanks). A word that is
    longer than a line stands on its own, uncut: names are copied from here.
    """
    begin = " " * cells(first) if rest is None else rest
    words = text.split(" ")
    current, used = first + words[0], cells(first) + cells(words[0])
    for word in words[1:]:
        needed = cells(word)
        if used + 1 + needed > width:
            yield current.rstrip()
            current, used = begin + word, cells(begin) + needed
        else:
            current, used = f"{current} {word}", used + 1 + needed
    yield current.rstrip()


def aligned(pairs: Iterable[tuple[str, str]], width: int) -> Iterator[str]:
    """Yield labels and texts in two columns, the texts wrapped beside their label."""
    listed = list(pairs)
    widest = max((cells(label) for label, _ in listed), default=0)
    for label, text in listed:
        yield from wrapped(text, width, label + " " * (widest - cells(label) + 2))


def _with_headings(columns: Sequence[Column], words: Sequence[Sequence[str]], gap: int) -> Layout:
    deep = max(len(w) for w in words)
    stacked = [[""] * (deep - len(w)) + list(w) for w in words]
    wide = tuple(replace(c, width=max(c.width, *map(cells, w))) for c, w in zip(columns, stacked, strict=True))
    return Layout(wide, tuple(_line(wide, [w[i] for w in stacked], gap) for i in range(deep)), gap)


def _broken(heading: str) -> list[str]:
    before, hyphen, last = heading.rpartition("-")
    return [before + hyphen, last] if hyphen else [last]


def _line(columns: Sequence[Column], values: Sequence[str], gap: int) -> str:
    padded = [_pad(value, column) for column, value in zip(columns, values, strict=True)]
    return (" " * gap).join(padded).rstrip()


def _pad(value: str, column: Column) -> str:
    blanks = " " * (column.width - cells(value))
    return blanks + value if column.right else value + blanks
