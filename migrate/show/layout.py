"""Columns of text: sized to their content, and never cut."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from migrate.text import cells

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
