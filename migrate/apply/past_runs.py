"""The runs that a journal tells of, one after the other, and what each read back in the end. Pure.

`migrate.apply.history` folds the same events into the state that `apply` and `rollback` go by; here they are for
people.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from migrate.apply.history import APPLY, ROLLBACK, answers_of, offsets_of
from migrate.model import TopicPartition

UNDONE = "apply of an undo plan"


@dataclass(frozen=True, slots=True)
class PastRun:
    """One run of `apply` or `rollback`, or `UNDONE`: the apply of a plan that undoes this one, with its own journal.

    Times are ISO 8601; `ended` is "" and `exit_code` None where no end was noted. `counts` are rows by status, as
    `row_results.RowStatus` names them. `source_not_seen` is why the source was not compared, "" where it was.
    """

    command: str
    began: str
    who: str
    ended: str = ""
    exit_code: int | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    source_not_seen: str = ""

    @property
    def end_told(self) -> str:
        """When it ended, or where that can be looked up."""
        return self.ended or ("see its own journal" if self.command == UNDONE else "no end noted")


@dataclass(frozen=True, slots=True)
class PastRuns:
    """All runs of a journal. `seen` are the offsets last read back, by command and group (None: no offset there).

    `errors` are what the cluster answered last where a write failed, by command, group and partition.
    """

    runs: tuple[PastRun, ...] = ()
    seen: Mapping[tuple[str, str], Mapping[TopicPartition, int | None]] = field(default_factory=dict)
    errors: Mapping[tuple[str, str, TopicPartition], str] = field(default_factory=dict)

    def last(self, command: str) -> PastRun | None:
        """Return the last run of this command; None if there was none."""
        return next((run for run in reversed(self.runs) if run.command == command), None)


def past_runs(content: bytes) -> PastRuns:
    """Return the runs that a journal's bytes tell of; they are those that `history.read_history` took without error."""
    runs: list[PastRun] = []
    seen: dict[tuple[str, str], Mapping[TopicPartition, int | None]] = {}
    errors: dict[tuple[str, str, TopicPartition], str] = {}
    for line in content.split(b"\n")[:-1]:  # what follows the last line feed was torn off by a crash
        event = json.loads(line)
        kind, command = event["event"], runs[-1].command if runs else APPLY
        if kind == "begin":
            command = ROLLBACK if event["command"] == ROLLBACK else APPLY
            who, unseen = f"process {event['pid']} on {event['host']}", str(event.get("source_not_seen", ""))
            runs.append(PastRun(command, event["time"], who, source_not_seen=unseen))
        elif kind == "end" and runs:
            runs[-1] = replace(
                runs[-1], ended=event["time"], exit_code=event["exit_code"], counts=dict(event["counts"])
            )
        elif kind == "spent" and runs:
            # Noted before the first write of the undo: how that went stands in its own journal.
            runs[-1] = replace(runs[-1], command=UNDONE)
        elif kind == "readback":
            seen[command, event["group"]] = offsets_of(event)
        elif kind == "outcome":
            for partition, _, code, message in answers_of(event):
                key = (command, event["group"], partition)
                errors.pop(key, None)
                if code:
                    errors[key] = f"{code}: {message}"
    return PastRuns(tuple(runs), seen, errors)
