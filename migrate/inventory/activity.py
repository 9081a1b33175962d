"""Who still uses a group: its last commit, since when it is empty, when its offsets expire, how often it commits. Pure.

All of it is from the group's own records in `__consumer_offsets`, which no Admin call tells. The times there are the
brokers'. Compaction takes earlier commits: how often a group commits is told by those that are left.
"""

from dataclasses import dataclass

from migrate.described_group import GroupDescription
from migrate.model import Commits, Failure, GroupState
from migrate.survey.expiry import OffsetClocks, expiry_of
from migrate.survey.offsets_topic import GroupKind
from migrate.text import some

DAY_MS = 86_400_000
# Below the week for which brokers keep offsets by default: what is idle for longer than that is gone.
IDLE_AFTER_MS = 3 * DAY_MS
UNTOLD = Failure("NOT_TOLD", "its records tell of no commit, nor since when it is empty")


@dataclass(frozen=True, slots=True)
class GroupActivity:
    """What a group's records tell. Times are in ms since 1970.

    `last_commit_ms` is None where no commit of the group is there. `empty_since_ms` is None while it has members, and
    where that was not stored: only classic groups store it. `expires_ms` is when the first of its offsets goes if
    nobody comes back; None while the group has members, which keep the offsets of topics that they subscribe to, and
    where there are no offsets. The other two are medians of time and of offsets between successive commits on a
    partition, None where fewer than two commits are left.
    """

    last_commit_ms: int | None
    empty_since_ms: int | None
    expires_ms: int | None | Failure
    seconds_between_commits: float | None
    records_between_commits: int | None

    def unused_ms(self, now_ms: int) -> int | None:
        """Return how long ago a commit was made, or the last member left; None where neither is told."""
        told = [time for time in (self.last_commit_ms, self.empty_since_ms) if time is not None]
        # Clocks differ: what was committed a moment ago is not unused for a negative time.
        return max(0, now_ms - max(told)) if told else None


def is_idle(
    kind: str | Failure,
    description: GroupDescription | Failure,
    activity: GroupActivity | Failure,
    now_ms: int,
    limit_ms: int,
) -> bool | Failure:
    """Return whether nobody has used a group for so long; the `Failure` that says why nobody can tell.

    A group that somebody has used since is not idle, whatever else is not known of it.
    """
    unused_ms = None if isinstance(activity, Failure) else activity.unused_ms(now_ms)
    if unused_ms is not None and unused_ms < limit_ms:
        return False
    if isinstance(description, Failure):
        return description
    if not description.is_stopped:
        return False
    if isinstance(activity, Failure):
        return activity
    if description.state == "Dead":
        return Failure("NOT_TOLD", "its coordinator calls it Dead: another one may be taking it over")
    if kind != "classic":
        return Failure("NOT_TOLD", "only classic groups store when their last member left")
    return True if unused_ms is not None else UNTOLD


def activity_of(
    group: str, description: GroupDescription | Failure, commits: Commits | Failure, clocks: OffsetClocks
) -> GroupActivity | Failure:
    """Return what the records tell of a group; the `Failure` that says why they could not be read."""
    records = clocks.records
    if isinstance(records, Failure):
        return records
    record = records.get(group)
    if record is not None and record.kind is GroupKind.SHARE:
        return Failure("NO_CLIENT", "share groups commit nothing")
    if record is None:
        # A group that is listed has records, be they those of its commits alone, once it has formed.
        why = "an open transaction hides them, or none was written yet"
        return Failure("NOT_TOLD", f"its records were not to be seen: {why}")
    if not isinstance(commits, Failure) and (unseen := sorted(commits.keys() - record.committed_ms.keys())):
        # It may be the newest of all: the group would seem to have been idle since an older one.
        why = "that record cannot be decoded, or an open transaction hides it"
        return Failure("NOT_TOLD", f"when it committed on {some(map(str, unseen), 3)} was not to be seen: {why}")
    return GroupActivity(
        record.last_commit_ms,
        record.empty_since_ms,
        _expires_ms(group, description, commits, clocks),
        record.seconds_between_commits,
        record.records_between_commits,
    )


def _expires_ms(
    group: str, description: GroupDescription | Failure, commits: Commits | Failure, clocks: OffsetClocks
) -> int | None | Failure:
    if isinstance(description, Failure):
        return description
    if isinstance(commits, Failure):
        return commits
    # "Dead" with offsets is a group that another broker is taking over: its clock is not read off that.
    if description.state != "Empty" or not commits:
        return None
    # `kept` are all of its offsets: nothing is set.
    found = expiry_of(group, GroupState(description.state), tuple(commits), False, clocks)
    return Failure("NOT_TOLD", found.sentence) if found.back_by_ms is None else found.back_by_ms
