"""What a standing plan holds in place of rows: what `follow` may write. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class MappedGroup:
    """A line of a mandate's group map: what the target calls a group.

    With `is_expression`, what it calls each group whose whole name `source` matches.
    """

    source: str
    target: str
    is_expression: bool


@dataclass(frozen=True, slots=True)
class Mandate:
    """What a standing plan allows `follow` to write, until `until_ms` (ms since 1970).

    `groups`, `exclude_groups`, `topics` and `exclude_topics` are regular expressions; `named_groups` are those of a
    groups file as it was when the mandate was made, None where none was given. `grades` are those that may be written,
    `max_rereads` bounds what a group would read twice. `match_limit` is how many offsets of either log a pass may read
    of a partition, `max_fetch` how many bytes from either cluster, None for any. `untranslatable` are the choices for
    commits that no law translates, as they are typed. `moving_groups` are regular expressions of groups that are
    written although their commits move without a member. `group_map` says what groups are called on the target: the
    first line that fits decides, and a group that none fits keeps its name.
    """

    until_ms: int
    groups: tuple[str, ...]
    exclude_groups: tuple[str, ...]
    topics: tuple[str, ...]
    exclude_topics: tuple[str, ...]
    named_groups: tuple[str, ...] | None
    grades: tuple[str, ...]
    max_rereads: int
    match_limit: int
    max_fetch: int | None
    untranslatable: tuple[str, ...]
    moving_groups: tuple[str, ...]
    group_map: tuple[MappedGroup, ...]


def mandate_from(document: Mapping[str, Any]) -> Mandate:
    """Return the mandate that a document holds, its lists as tuples.

    Raises TypeError or KeyError where it does not fit.
    """
    lists = {name: tuple(value) for name, value in document.items() if isinstance(value, list)}
    group_map = tuple(MappedGroup(**line) for line in document["group_map"])
    return Mandate(**{**document, **lists, "group_map": group_map})
