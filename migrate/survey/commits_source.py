"""Where the commits of a plan come from, as a value: who reads and judges them asks it."""

from collections.abc import Mapping
from dataclasses import dataclass

from migrate.clock import iso
from migrate.survey.policies import CommitsFrom

AS_OF_SETTING = "commits-as-of"


@dataclass(frozen=True, slots=True)
class CommitsSource:
    """The source's coordinators, or its offsets topic, or MM2's checkpoints on the target.

    `asks_source` is False where checkpoints stand in for a source that is down: nothing of it is known then.
    `reads_topic` is True where commits are read in the offsets topic; `as_of_ms` is the time, in ms since 1970, whose
    commits are asked for there, None for those of now.
    """

    asks_source: bool = True
    reads_topic: bool = False
    as_of_ms: int | None = None

    @property
    def settings(self) -> Mapping[str, str]:
        """What a plan's header says of it, by option; nothing of what is usual."""
        choices = {
            "commits-from": str(CommitsFrom.CONSUMER_OFFSETS) if self.reads_topic else "",
            AS_OF_SETTING: "" if self.as_of_ms is None else iso(self.as_of_ms),
            "source-down": "" if self.asks_source else "yes",
        }
        return {name: text for name, text in choices.items() if text}


FROM_COORDINATORS = CommitsSource()
FROM_CHECKPOINTS = CommitsSource(asks_source=False)
