"""The passes of `follow`, one after the other, until its mandate ends or somebody stops it.

Invariants:
- A cluster that does not answer, or a client that fails, ends a pass, never the passes: the next one may find it well.
- A pass begins a fixed time after the one before began; one that took longer is followed at once.
- After a wish to stop (Ctrl-C, `kill`) nothing new is begun; the group in hand is finished.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from migrate.apply.journal import JournalLost
from migrate.clock import Clock
from migrate.errors import EXIT_DONE, EXIT_FAILED, EXIT_PARTLY, EXIT_REFUSED, MigrateError
from migrate.extras.follow.delay import DelaySum
from migrate.extras.follow.engine import Follower, PassResult
from migrate.plan.companions import companion_path
from migrate.whole_file import replacing

# How long a wish to stop may go unheard between two passes.
STEP_SECONDS = 0.2


@dataclass
class PassSum:
    """All passes of a run: how many there were, and failed, what they set, and how late commits reached the target.

    `longest_seconds` is what the longest pass took, `last` is the newest pass, `last_whole` the newest that no trouble
    ended.
    """

    passes: int = 0
    failed: int = 0
    rows_set: int = 0
    delays: DelaySum = field(default_factory=DelaySum)
    longest_seconds: float = 0.0
    last: PassResult | None = None
    last_whole: PassResult | None = None

    def add(self, result: PassResult) -> None:
        """Count one more pass; one that was asked to stop before it wrote is none."""
        if result.is_stopped:
            return
        self.passes += 1
        self.failed += bool(result.trouble)
        self.rows_set += result.rows_set
        self.delays.add(result.delays)
        self.longest_seconds = max(self.longest_seconds, result.seconds)
        self.last = result
        if not result.trouble:
            self.last_whole = result

    @property
    def exit_code(self) -> int:
        """0 if the newest pass left nothing out; 1 if no pass succeeded, 3 if no group was there, else 4."""
        if self.last_whole is None:
            return EXIT_FAILED
        if self.last_whole.is_empty:
            return EXIT_REFUSED
        return EXIT_PARTLY if self.last is not self.last_whole or self.last_whole.refused else EXIT_DONE


@dataclass(frozen=True)
class Cadence:
    """How often passes begin, in seconds, when they end (ms since 1970), and after how many: 0 for any number."""

    every_seconds: float
    until_ms: int
    passes: int = 0


def follow(
    follower: Follower, cadence: Cadence, clock: Clock, is_stopped: Callable[[], bool],
    tell: Callable[[PassResult, PassSum], None],
) -> tuple[PassSum, str]:  # fmt: skip
    """Make passes; return their sum, and why they ended. `tell` hears of each pass when it is over."""
    total = PassSum()
    while True:
        began, began_ms = clock.monotonic(), clock.now_ms()
        if began_ms >= cadence.until_ms:
            return total, "the mandate has ended"
        try:
            result = follower.look_and_write(lambda: not is_stopped())
        except MigrateError as error:
            result = PassResult(total.passes + 1, began_ms, trouble=str(error))
        except JournalLost as error:
            # Without its journal a write could not be taken back: none more is made.
            result = PassResult(total.passes + 1, began_ms, trouble=str(error), has_lost_journal=True)
        result = replace(result, seconds=round(clock.monotonic() - began, 3))
        total.add(result)
        if result.is_stopped:
            return total, "it was asked to stop" if is_stopped() else "the mandate has ended"
        tell(result, total)
        if result.has_lost_journal:
            return total, "the journal cannot be written any more"
        if is_stopped():
            return total, "it was asked to stop"
        if total.passes == cadence.passes:
            return total, f"it made the {cadence.passes} passes that it was asked for"
        if not _wait(began + cadence.every_seconds, cadence, clock, is_stopped):
            return total, "it was asked to stop"


def _wait(until: float, cadence: Cadence, clock: Clock, is_stopped: Callable[[], bool]) -> bool:
    """Wait for the next pass, or the mandate's end; return False if somebody wants it to stop."""
    while not is_stopped():
        left = min(until - clock.monotonic(), (cadence.until_ms - clock.now_ms()) / 1000)
        if left <= 0:
            return True
        clock.wait(min(left, STEP_SECONDS))
    return False


ENCODER = json.JSONEncoder(separators=(",", ":"))


def status_path(plan_path: Path, fingerprint: str) -> Path:
    """Return where the status file of a mandate lies, there or not; raises as `companion_path` does."""
    return companion_path(plan_path, fingerprint, "status.json")


def write_status(path: Path, document: Mapping[str, Any]) -> str:
    """Replace the status file durably, mode 0600; return why that failed, "" if it did not.

    Nothing rests on this file: that a disk is full is said with the pass, and the passes go on.
    """
    try:
        with replacing(path) as file:
            file.write(ENCODER.encode(document).encode("ascii") + b"\n")
    except OSError as error:
        return f"the status file could not be written ({error.strerror})"
    return ""


def read_status(path: Path) -> dict[str, Any] | None:
    """Return what the status file says, None where there is none; raises `MigrateError` if it cannot be read."""
    try:
        document = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise MigrateError(
            f"The status file {path} cannot be read: {error}.", "Look at what `follow` says on stderr."
        ) from None
    return dict(document)
