"""Names on the source and what they are called on the target, as a file of the user's says it.

Pure but for `read_name_map`. The file is UTF-8 CSV (RFC 4180), a name on each line:

    source_group,target_group
    orders,orders-eu
    "billing,2024",billing
    regex:team-a\\.(.*),\\1-eu

The heading may be left out where every line begins with `regex:`. Blank lines and lines that begin with # say nothing.
An expression has to match the whole name, in the syntax of `--group`; its replacement is in Python's (`\\1`,
`\\g<name>`). The first line that matches decides; a name that none matches keeps its own.
"""

import csv
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn

from migrate.errors import UsageError
from migrate.mm2.settings import java_pattern
from migrate.text import name

REGEX = "regex:"
# Java's and sed's way to write a group, which Python would take literally.
_JAVA_REFERENCE = re.compile(r"\$(\d|\{)")


class NoNameOfItsOwn(UsageError):
    """Raised where a map leaves names without one on the target, or gives one to several; `names` are all of them."""

    def __init__(self, problem: str, todo: str, names: tuple[str, ...]) -> None:
        super().__init__(problem, todo)
        self.names = names


@dataclass(frozen=True, slots=True)
class MapLine:
    """One line of a map: `number` is its place in the file, from 1; `source` a name or, with `pattern`, its text."""

    number: int
    source: str
    target: str
    pattern: re.Pattern[str] | None = None

    def __str__(self) -> str:
        return f"line {self.number} ({name(self.source)})"


@dataclass(frozen=True)
class NameMap:
    """What names of the source are called on the target.

    `option` and `file` are for messages, `kind` is "group" or "topic". A map without lines leaves every name as it is.
    `clusters` are the ids of those that it holds between, as far as known: a plan is of two, a user's file of any.
    """

    option: str = ""
    file: str = ""
    kind: str = "group"
    names: Mapping[str, MapLine] = field(default_factory=dict)
    expressions: tuple[MapLine, ...] = ()
    clusters: frozenset[str] = frozenset()

    @classmethod
    def from_lines(cls, option: str, file: str, kind: str, lines: Iterable[str]) -> "NameMap":
        """Read the lines of a file; raises `UsageError` with the file and the line that is wrong."""
        names: dict[str, MapLine] = {}
        expressions: list[MapLine] = []
        heading = [f"source_{kind}", f"target_{kind}"]
        place = _Place(option, file, f"{','.join(heading)} or {REGEX}EXPRESSION,REPLACEMENT")
        headed = False
        for number, text in enumerate(lines, 1):
            stripped = text.strip()
            if not stripped or stripped.startswith("#"):
                continue
            source, target = place.cells(number, stripped)
            if not headed and not expressions and [source.lower(), target.lower()] == heading:
                headed = True
            elif source.startswith(REGEX):
                expressions.append(place.expression(number, source.removeprefix(REGEX), target))
            elif not headed:
                place.wrong(number, f"{name(source)} before a heading", f"{','.join(heading)} as the first line")
            elif source in names:
                place.wrong(number, f"{name(source)}, which line {names[source].number} maps", f"each {kind} once")
            else:
                names[source] = MapLine(number, source, target)
        if not names and not expressions:
            raise UsageError(f"{option} {file} maps no {kind}.", f"Write lines of the form {place.form}.")
        return cls(option, file, kind, names, tuple(expressions))

    def lines(self) -> list[MapLine]:
        """Return the lines in the file's order."""
        return sorted([*self.names.values(), *self.expressions], key=lambda line: line.number)

    def __bool__(self) -> bool:
        return bool(self.names or self.expressions)

    def mapped(self, source: str) -> str:
        """Return what the target calls a name; raises `NoNameOfItsOwn` where a replacement leaves nothing of it."""
        line = self.line_of(source)
        if line is None:
            return source
        target = line.target
        if line.pattern is not None:
            match = line.pattern.fullmatch(source)
            assert match is not None
            target = match.expand(line.target)
        if not target.strip():
            raise NoNameOfItsOwn(
                f"{self.option} {self.file}, {line}: {self.kind} {name(source)} would be without a name on the target.",
                "Expected a replacement that leaves one.",
                (source,),
            )
        return target

    def line_of(self, source: str) -> MapLine | None:
        """Return the line that decides for a name: the first that matches. None where none does."""
        by_name = self.names.get(source)
        for line in self.expressions:
            if by_name is not None and by_name.number < line.number:
                break
            if line.pattern is not None and line.pattern.fullmatch(source):
                return line
        return by_name

    def idle_lines(self, sources: Iterable[str]) -> tuple[MapLine, ...]:
        """Return the lines that decide for none of these names, in the file's order: most likely misspelt."""
        deciding = {line.number for source in sources if (line := self.line_of(source)) is not None}
        return tuple(line for line in self.lines() if line.number not in deciding)

    def reversed(self) -> "NameMap":
        """Return the map of the way back.

        Raises `UsageError` for an expression, which cannot be read backwards, and where two lines lead to one name.
        """
        if self.expressions:
            plan = "; or name the plan that was applied, whose rows say it" if self.kind == "group" else ""
            raise UsageError(
                f"{self.option} {self.file}, {self.expressions[0]}: an expression cannot be read backwards.",
                f"Expected lines of source_{self.kind},target_{self.kind} alone for the way back{plan}.",
            )
        back: dict[str, MapLine] = {}
        for line in self.names.values():
            if line.target in back:
                raise UsageError(
                    f"{self.option} {self.file}, {line}: {back[line.target].target} becomes {name(line.target)} too.",
                    f"Expected one {self.kind} for each name, or the way back is not known.",
                )
            back[line.target] = MapLine(line.number, line.target, line.source)
        return replace(self, names=back)

    def all_mapped(self, sources: Collection[str]) -> dict[str, str]:
        """Return what the target calls each of these names.

        Raises `NoNameOfItsOwn` where several would have one name there, with or without a line of the map: it says
        which the first two are.
        """
        targets = {source: self.mapped(source) for source in sorted(sources)}
        called: dict[str, list[str]] = {}
        for source, target in targets.items():
            called.setdefault(target, []).append(source)
        sharing = {target: of_name for target, of_name in called.items() if len(of_name) > 1}
        if sharing:
            target, (first, second, *_) = next(iter(sharing.items()))
            raise NoNameOfItsOwn(
                f"{self.option} {self.file}: {self.kind}s {name(first)} and {name(second)} "
                f"would both be {name(target)} on the target.",
                f"Expected a name of its own for each; map one of the two to another, or leave one out "
                f"(--exclude-{self.kind}).",
                tuple(source for of_name in sharing.values() for source in of_name),
            )
        return targets


@dataclass(frozen=True, slots=True)
class _Place:
    """Where lines are read, and what is expected there."""

    option: str
    file: str
    form: str

    def cells(self, number: int, text: str) -> tuple[str, str]:
        """Return the two cells of a line, neither of them empty."""
        try:
            cells = next(csv.reader([text], strict=True))
        except csv.Error as error:
            self.wrong(number, f"no CSV ({error})", "quotes that are closed, as RFC 4180 says")
        if len(cells) != 2:
            self.wrong(number, f"{len(cells)} cells", f"2: {self.form}; quote a name that has a comma")
        source, target = (cell.strip() for cell in cells)
        if not source.removeprefix(REGEX) or not target:
            self.wrong(number, "an empty name", self.form)
        return source, target

    def expression(self, number: int, text: str, replacement: str) -> MapLine:
        """Return the line of an expression, once it is certain that both of its parts can be read."""
        if _JAVA_REFERENCE.search(replacement):
            self.wrong(
                number, f"the replacement {name(replacement)}", r"\1, or \g<name>, for a group of the expression"
            )
        try:
            pattern = java_pattern(text)
        except re.error as error:
            self.wrong(number, f"{name(text)}, no regular expression ({error})", "one that matches the whole name")
        try:
            # A template is looked at although nothing matches.
            pattern.sub(replacement, "")
        except (re.error, IndexError) as error:
            self.wrong(
                number, f"the replacement {name(replacement)} ({error})", r"\1 to \99 or \g<name>, of groups that exist"
            )
        return MapLine(number, f"{REGEX}{text}", replacement, pattern)

    def wrong(self, number: int, seen: str, expected: str) -> NoReturn:
        """Refuse a line."""
        raise UsageError(f"{self.option} {self.file}, line {number}: {seen}.", f"Expected {expected}.")


def read_name_map(option: str, path: Path, kind: str) -> NameMap:
    """Read the map that an option names; raises `UsageError` where it cannot be read, or is no map of this kind."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"{option} {path} cannot be read: {error.strerror}.", "Check the path.") from None
    except UnicodeDecodeError:
        raise UsageError(
            f"{option} {path} is not UTF-8 text.", f"Write lines of source_{kind},target_{kind}."
        ) from None
    return NameMap.from_lines(option, str(path), kind, text.split("\n"))
