"""A journal of one plan, and what one group leaves in it: what the tests of journals share."""

from pathlib import Path

from migrate.apply.history import SET
from migrate.apply.journal import Journal, JournalWriter
from migrate.model import Commit, Failure, TopicPartition
from migrate.plan.companions import journal_path

FINGERPRINT = "0123456789abcdef" * 4
P0, P1 = TopicPartition("A.orders", 0), TopicPartition("A.orders", 1)
DENIED = Failure("GROUP_AUTHORIZATION_FAILED", "no")
TIMED_OUT = Failure("_TIMED_OUT", "no answer", True, True)


def journal(folder: Path, fingerprint: str = FINGERPRINT) -> Journal:
    return Journal(journal_path(folder / "cutover.plan", FINGERPRINT), fingerprint, lambda: 1_700_000_000_123)


def one_group(writer: JournalWriter, result: str | Failure, group: str = "g") -> None:
    writer.backup({group: {P0: Commit(10)}}, {group: [P0, P1]})
    writer.intend({group: {P0: 60, P1: 61}})
    writer.outcome(group, {P0: result, P1: SET})
