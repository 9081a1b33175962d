"""Commits that were made on another log than the one that is there now: what topic ids and leader epochs prove. Pure.

Brokers from Kafka 4.1 on store with a commit the id of the topic that it was made on (`OffsetCommitValue` version 4).
No client reports it. The records of the offsets topic do, and tell both ways, of the commit whose offset they hold.

Where they are not at hand, leader epochs may tell. A consumer commits an offset with the leader epoch of the record
before it, and a log's leader epoch never falls. So a commit whose epoch is greater than that of the log's end was made
on another log: that of a topic which was deleted since, or of another cluster, from where somebody carried it over.
Nothing else follows: a new log reaches every epoch in time, and a commit need not carry any. So the answer of epochs is
"yes" or "unknown", never "no".
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from migrate.commit_table import GroupCommits, has_epochs, partitions_of_keys
from migrate.model import Commit, Failure, GroupPartition, LogRange, TopicPartition
from migrate.survey.offsets_topic import CommitTopic
from migrate.survey.survey import Survey, copy_of

# librdkafka prints ids in plain base64, Kafka in the form for addresses.
_KAFKA_DIGITS = str.maketrans("+/", "-_")


@dataclass(frozen=True)
class LogProofs:
    """`others` are the commits that are proven to be of another log, `own` those proven to be of the one there.

    Each proof of another log follows the words "its commit on A", without a full stop.
    """

    others: Mapping[GroupPartition, str] = field(default_factory=dict)
    own: frozenset[GroupPartition] = frozenset()


def other_topic(commit: Commit, made_on: CommitTopic | None, topic_id: str | None) -> str | None:
    """Return the proof that a commit was made on another topic than that of `topic_id`; "" where it was made there.

    None where nobody can tell: no record says so, the topic's id is not known, or the record is of a later commit.
    """
    if made_on is None or topic_id is None or made_on.source_offset != commit.offset:
        return None
    now = topic_id.translate(_KAFKA_DIGITS)
    if made_on.topic_id == now:
        return ""
    return f"was made on the topic with id {made_on.topic_id}, and the topic there has id {now}"


def other_log(commit: Commit | None, log: LogRange | Failure | None) -> str | None:
    """Return the proof by epochs that a commit is of another log than `log`; None, which says nothing, without one."""
    if commit is None or commit.leader_epoch is None or not isinstance(log, LogRange):
        return None
    if log.end_leader_epoch is None or commit.leader_epoch <= log.end_leader_epoch:
        return None
    epoch, log_epoch = commit.leader_epoch, log.end_leader_epoch
    return f"has leader epoch {epoch}, and the log there has not come further than {log_epoch}"


def log_proofs(
    commits: Mapping[GroupPartition, Commit | None],
    logs: Mapping[TopicPartition, LogRange | Failure],
    made_on: Mapping[str, Mapping[TopicPartition, CommitTopic]],
    topic_ids: Mapping[str, str],
) -> LogProofs:
    """Return what is proven of the commits; `made_on` are their topics, by group, as far as records tell."""
    with_epochs = not isinstance(commits, GroupCommits) or any(map(has_epochs, commits.groups().values()))
    if not with_epochs and not any(made_on.values()):
        return LogProofs()
    others: dict[GroupPartition, str] = {}
    own = set()
    for key, commit in commits.items():
        if commit is None:
            continue
        place = key.source_partition
        by_id = other_topic(commit, made_on.get(key.group, {}).get(place), topic_ids.get(key.topic))
        if proof := by_id or other_log(commit, logs.get(place)):
            others[key] = proof
        elif by_id is not None:
            own.add(key)
    return LogProofs(others, frozenset(own))


def proofs_on_source(survey: Survey) -> LogProofs:
    """Return what is proven of the logs that the commits on the source were made on; nothing while it is down."""
    records, made_on = survey.group_facts.source_records, survey.selected.made_on
    # Of an earlier commit the newest records say nothing, not even where its offset is the same.
    if survey.selected.now is None and not isinstance(records, Failure):
        made_on = {group: record.made_on for group, record in records.items()}
    return log_proofs(survey.keys, survey.logs.source, made_on, survey.source.topic_ids)


def proofs_on_target(survey: Survey) -> LogProofs:
    """Return the places, by their names on the source, whose commit on the target is of another log than it has now."""
    if not any(map(has_epochs, survey.priors.values())):
        return LogProofs()
    copies = {source: copy_of(survey.flow, source) for source in partitions_of_keys(survey.keys)}
    committed = ((key, survey.priors.get(key.group, {}).get(copies[key.source_partition])) for key in survey.keys)
    proofs = (
        (key, other_log(prior, survey.logs.target.get(copies[key.source_partition])))
        for key, prior in committed
        if prior is not None
    )
    return LogProofs({key: proof for key, proof in proofs if proof is not None})
