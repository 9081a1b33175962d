"""The tool's own filters: which groups and topics a plan is about.

Pure but for `read_groups_file`. Regular expressions match in full, as in MM2; excludes win. What a filter
takes is counted by its name, so that rows + filtered = commits read.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from migrate.errors import UsageError
from migrate.mm2.settings import java_pattern

# A dot is in many names, and so says nothing; nor does any other character that has no meaning in an expression, or is
# escaped. A backslash before a letter or a digit has one.
_NAME = re.compile(r"[^\\^$*+?{}\[\]()|]+")
_ESCAPED = re.compile(r"\\([^A-Za-z0-9])")
# The verdicts on groups that are not to move at all; the others choose which move now.
EXCLUDED = frozenset({"exclude-group", "default-exclude"})
_DEFAULT_EXCLUDES = re.compile("__.*|console-consumer-.*")


@dataclass(frozen=True, slots=True)
class Filters:
    """What was given by `--group`, `--exclude-group`, `--topic`, `--exclude-topic` and `--groups-file`.

    An empty tuple, or None for the file, takes nothing away. Given together they narrow each other. The default
    excludes do not hold for a group that is named literally: a pattern equal to its name, or a line of the groups file.
    """

    groups: tuple[re.Pattern[str], ...] = ()
    exclude_groups: tuple[re.Pattern[str], ...] = ()
    topics: tuple[re.Pattern[str], ...] = ()
    exclude_topics: tuple[re.Pattern[str], ...] = ()
    groups_file: frozenset[str] | None = None

    @classmethod
    def from_options(
        cls,
        groups: Sequence[str] = (),
        exclude_groups: Sequence[str] = (),
        topics: Sequence[str] = (),
        exclude_topics: Sequence[str] = (),
        groups_file: Path | None = None,
    ) -> "Filters":
        """Compile the options' texts and read the file.

        Raises `UsageError` naming the option, and which of its uses is wrong.
        """
        return cls(
            _compiled("--group", groups),
            _compiled("--exclude-group", exclude_groups),
            _compiled("--topic", topics),
            _compiled("--exclude-topic", exclude_topics),
            None if groups_file is None else read_groups_file(groups_file),
        )

    def without(self, groups: Iterable[str]) -> "Filters":
        """Return these filters with more groups excluded, by their names."""
        return replace(self, exclude_groups=(*self.exclude_groups, *(re.compile(re.escape(g)) for g in groups)))

    def verdict(self, group: str, topic: str) -> str | None:
        """Return the name of the filter that takes this commit away; None if it stays.

        `topic` is the source's name. Filters on groups come before those on topics.
        """
        return self.group_verdict(group) or self.topic_verdict(topic)

    def group_verdict(self, group: str) -> str | None:
        """Return the name of the filter that takes the whole group away; None if none does."""
        if _matches(self.exclude_groups, group):
            return "exclude-group"
        listed = self.groups_file is not None and group in self.groups_file
        literal = any(group in (pattern.pattern, name_of(pattern)) for pattern in self.groups)
        if _DEFAULT_EXCLUDES.fullmatch(group) and not (literal or listed):
            return "default-exclude"
        if self.groups_file is not None and not listed:
            return "groups-file"
        if self.groups and not _matches(self.groups, group) and not literal:
            return "group"
        return None

    def unknown_names(self, existing: Collection[str]) -> tuple[str, ...]:
        """Return the names asked for that none of `existing` has, sorted: most likely misspelt.

        They are those of the groups file, and the `--group` patterns that read like a name, not like a pattern.
        """
        named = ((name_of(pattern), pattern) for pattern in self.groups)
        names = {name for name, p in named if name is not None and not any(map(p.fullmatch, existing))}
        return tuple(sorted(names | (self.groups_file or frozenset()).difference(existing)))

    def topic_verdict(self, topic: str) -> str | None:
        """Return the name of the filter that takes a source topic away; None if none does."""
        if _matches(self.exclude_topics, topic):
            return "exclude-topic"
        if self.topics and not _matches(self.topics, topic):
            return "topic"
        return None


def name_of(pattern: re.Pattern[str]) -> str | None:
    """Return the name that a pattern reads like, escaped or not; None for what reads like a pattern."""
    text = pattern.pattern
    return _ESCAPED.sub(r"\1", text) if _NAME.fullmatch(_ESCAPED.sub("-", text)) else None


def is_one_name(pattern: re.Pattern[str]) -> bool:
    """True if a pattern matches a single name: every dot in it is escaped."""
    return name_of(pattern) is not None and "." not in _ESCAPED.sub("", pattern.pattern)


def read_groups_file(path: Path) -> frozenset[str]:
    """Return the group ids of a groups file (UTF-8), one per line; blank lines and lines that start with # are none.

    Raises `UsageError` if it cannot be read or names no group.
    """
    try:
        lines = map(str.strip, path.read_text(encoding="utf-8-sig").split("\n"))
    except OSError as error:
        raise UsageError(f"--groups-file {path} cannot be read: {error.strerror}.", "Check the path.") from None
    except UnicodeDecodeError:
        raise UsageError(f"--groups-file {path} is not UTF-8 text.", "Write one group id per line.") from None
    groups = frozenset(line for line in lines if line and not line.startswith("#"))
    if not groups:
        raise UsageError(f"--groups-file {path} names no group.", "Write one group id per line.")
    return groups


def _compiled(option: str, texts: Sequence[str]) -> tuple[re.Pattern[str], ...]:
    patterns = []
    for number, text in enumerate(texts, 1):
        try:
            patterns.append(java_pattern(text))
        except re.error as error:
            raise UsageError(
                f"{option} {text!r} (number {number}) is not a regular expression: {error}.",
                "The whole name must match; write \\. for a dot and .* for anything.",
            ) from None
    return tuple(patterns)


def _matches(patterns: Iterable[re.Pattern[str]], name: str) -> bool:
    return any(pattern.fullmatch(name) for pattern in patterns)
