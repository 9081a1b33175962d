"""Commits that were made on another log than the one that is there now: what leader epochs prove. Pure.

A consumer commits an offset with the leader epoch of the record before it, and a log's leader epoch never falls. So a
commit whose epoch is greater than that of the log's end was made on another log: that of a topic which was deleted
since, or of another cluster, from where somebody carried it over. Nothing else follows: a new log reaches every epoch
in time, and a commit need not carry any. So the answer is "yes" or "unknown", never "no".
"""

from collections.abc import Mapping
from dataclasses import dataclass

from migrate.commit_table import GroupCommits, has_epochs
from migrate.model import Commit, Failure, GroupPartition, LogRange, TopicPartition


@dataclass(frozen=True, slots=True)
class OtherLog:
    """The two leader epochs that give a commit away; `log_epoch` is that of the log's end."""

    commit_epoch: int
    log_epoch: int


def other_log(commit: Commit | None, log: LogRange | Failure | None) -> OtherLog | None:
    """Return the proof that a commit is of another log than `log`; None where there is none, which says nothing.

    Topic ids would decide it both ways, and come first as soon as a client reports the one of a commit
    (OffsetCommitValue version 4): compare it here with the id of the topic.
    """
    if commit is None or commit.leader_epoch is None or not isinstance(log, LogRange):
        return None
    if log.end_leader_epoch is None or commit.leader_epoch <= log.end_leader_epoch:
        return None
    return OtherLog(commit.leader_epoch, log.end_leader_epoch)


def of_other_logs(
    commits: Mapping[GroupPartition, Commit | None], logs: Mapping[TopicPartition, LogRange | Failure]
) -> dict[GroupPartition, OtherLog]:
    """Return the commits that are proven to be of another log."""
    if isinstance(commits, GroupCommits) and not any(map(has_epochs, commits.groups().values())):
        return {}
    proofs = ((key, other_log(commit, logs.get(key.source_partition))) for key, commit in commits.items())
    return {key: proof for key, proof in proofs if proof is not None}
