"""What is exported of `__consumer_offsets`: what was asked for, and what became of every record. Pure.

Every record that was read is counted once: as written, or as left out for one reason.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from migrate.survey.filters import Filters

# Why a record is not written. Filters have names of their own, and what is not decoded its label.
SUPERSEDED = "superseded"
TOMBSTONE_UNASKED = "tombstone"
OUTSIDE_TIME = "outside-time"
OTHER_KIND = "other-kind"
NOT_ITS_PARTITION = "not-its-partition"
FILTER = "filter:"
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


def is_url(place: str) -> bool:
    """True for what Hadoop's file systems read as a URL, with one slash or several: hdfs:/data, file:///tmp, s3a://b."""
    return bool(_URL.match(place))


class ExportKinds(StrEnum):
    """Which records are exported."""

    COMMITS = "commits"
    GROUPS = "groups"
    ALL = "all"


class Expires(StrEnum):
    """By which clock a commit expires."""

    STORED = "stored"
    FROM_COMMIT = "retention-from-commit"
    FROM_EMPTY = "retention-from-empty"
    NOT_WHILE_CONSUMED = "not-while-consumed"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class ExportRequest:
    """What to export.

    `history` takes every record, not only the newest of each key; `tombstones` also those that take something away.
    Of records whose broker's time (ms since 1970) is `since_ms` or later and before `until_ms`; None is no bound.
    """

    filters: Filters = field(default_factory=Filters)
    kinds: ExportKinds = ExportKinds.COMMITS
    history: bool = False
    tombstones: bool = False
    since_ms: int | None = None
    until_ms: int | None = None


@dataclass(frozen=True)
class Exported:
    """What became of the records: by label as read, by label as written, and by reason as left out.

    `labels` adds up to what `written` and `left_out` add up to. `unknown` are groups that were asked for by name, and
    of which there is nothing. `lost` are those of `left_out` that would have been written, could they be decoded.
    """

    labels: Mapping[str, int]
    written: Mapping[str, int]
    left_out: Mapping[str, int]
    unknown: tuple[str, ...] = ()
    lost: Mapping[str, int] = field(default_factory=dict)

    @property
    def read(self) -> int:
        """How many records were read."""
        return sum(self.labels.values())

    @property
    def lines(self) -> int:
        """How many records were written."""
        return sum(self.written.values())
