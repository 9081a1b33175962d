"""Checks on the records of the plan's topics: copied in full, none missing, and timestamps that can be trusted."""

from collections import Counter
from collections.abc import Iterable
from itertools import groupby

from migrate.checks import registry as checks
from migrate.checks.check import CheckFacts, judges
from migrate.match.equality import Equality
from migrate.match.protocol import Why, WhyUnmatched
from migrate.model import PROVEN_SYNC, CheckResult, Failure, Grade, Level, Method, Row, TopicPartition, between, lag
from migrate.row_table import PlanRows
from migrate.survey.drain import Drained
from migrate.survey.policies import Policies
from migrate.survey.producers import LEAST_SECONDS, Growth, rate_text
from migrate.survey.survey import CopyEnd
from migrate.text import many, safe, some

NOT_JUDGED = Drained(None, "its logs were not told")
NOT_READ_AGAIN = Failure("NOT_READ", "its end was not read a second time")


def _by_topic(rows: PlanRows) -> list[tuple[str, list[TopicPartition]]]:
    """Return the source partitions that the rows translate, by topic; all in order."""
    placed = sorted(
        {
            partition
            for table in rows.groups().values()
            for partition, offset in zip(table.source_partitions(), table.whole("target_offset"), strict=True)
            if offset is not None
        }
    )
    return [(topic, list(partitions)) for topic, partitions in groupby(placed, key=lambda partition: partition.topic)]


@judges(checks.NOT_DRAINED)
def not_drained(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Block topics that MM2 has not copied in full: their rows hold only if MM2 goes on.

    Nothing is copied the way that a failback goes; there `unread_on_target_only` is what matters.
    """
    if facts.source_down or facts.failback:
        return
    expected = "every record up to the source's end copied"
    who = "MM2" if facts.mm2.copies else "the replicator"
    todo = (
        f"Stop the producers and let {who} copy the rest, then plan again; or waive with --accept not-drained:TOPIC if "
        f"{who} goes on."
    )
    fine = 0
    for topic, partitions in _by_topic(rows):
        drains = [(p.partition, facts.topics.drains.get(p, NOT_JUDGED)) for p in partitions]
        waiting = [f"partition {partition}: {drain.seen}" for partition, drain in drains if not drain.verdict]
        seen = some(waiting, 5, "; ")
        if not waiting:
            fine += 1
        elif any(drain.verdict is False for _, drain in drains):
            yield checks.NOT_DRAINED.blocks(topic, expected, seen, todo)
        else:
            unknown = f" ({facts.mm2.positions_unknown})" if facts.mm2.positions_unknown and facts.mm2.copies else ""
            yield checks.NOT_DRAINED.unseen(Level.BLOCK, topic, expected, seen + unknown, todo)
    if fine:
        yield checks.NOT_DRAINED.passes(many(fine, "topic"), expected, "they are")


@judges(checks.TARGET_RECREATED)
def target_recreated(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Block topics that lack on the target what MM2 says of them, or a group is owed: created anew since, or cut.

    Only where no records were compared: those that were show what is missing.
    """
    topics, ends = rows.tally("source_topic"), facts.topics.copy_ends
    told = {partition: saying for partition, end in ends.items() if (saying := _sync_beyond(end))}
    seen_of = {partition for partition, end in ends.items() if end.newest_sync is not None}
    fields = ("source_topic", "partition", "checkpoint_target_offset", "missing_on_target")
    for place in {(t, p) for t, p, offset, missing in rows.values(*fields) if offset is not None and missing is None}:
        seen_of.update({TopicPartition(*place)} & ends.keys())
    least = min((end.target_end for end in ends.values() if isinstance(end.target_end, int)), default=None)
    for row in rows.where("checkpoint_target_offset", lambda offset: least is not None and (offset or 0) > least):
        end = ends.get(row.source_partition)
        if end is not None and row.missing_on_target is None and (saying := _checkpoint_beyond(row, end)):
            told.setdefault(row.source_partition, saying)
    # On the way back the copies are the source, and may hold what MM2 wrote twice before it.
    for row in rows.where("upper_target_offset", lambda offset: offset == 0 and not facts.failback):
        if row.source_partition in ends and row.missing_on_target is None and (saying := _begins_beyond(row)):
            told.setdefault(row.source_partition, saying)
    target, fine = facts.target.alias, 0
    expected = f"topics on {target} that hold what MM2's syncs and checkpoints say"
    for topic, same in groupby(sorted(seen_of), key=lambda partition: partition.topic):
        if topic not in topics:
            continue
        partitions = list(same)
        copy = facts.topics.partitions.get(topic, (None, topic, None))[1]
        dark = [f"partition {p.partition}: {e}" for p in partitions if isinstance(e := ends[p].target_end, Failure)]
        cut = [p for p in partitions if p in told]
        beyond = [f"partition {p.partition} of {safe(copy)} {told[p]}" for p in cut]
        if beyond:
            yield checks.TARGET_RECREATED.blocks(
                topic, expected, some(beyond, 5, "; "),
                f"{safe(copy)} was created anew on {target}, or cut, or MM2 began late: records may be missing. "
                "Let records be compared, or waive with --accept target-recreated:TOPIC if all of it is there again.",
            )  # fmt: skip
        elif dark:
            yield checks.TARGET_RECREATED.unseen(
                Level.BLOCK, topic, expected, some(dark, 5, "; "), "Grant DESCRIBE on the topic, or try again."
            )
        else:
            fine += 1
    if fine:
        yield checks.TARGET_RECREATED.passes(many(fine, "topic"), expected, "they do")
    untold = {p.topic for p in ends.keys() - seen_of} & topics.keys()
    if untold:
        yield checks.TARGET_RECREATED.on_cluster.unseen(
            Level.PASS, target, expected,
            f"of {many(len(untold), 'topic')} no sync or checkpoint was seen that could tell, and not all commits were "
            "compared", "",
        )  # fmt: skip


def _sync_beyond(end: CopyEnd) -> str:
    """Return what MM2's newest sync says that the copy no longer has; "" for nothing."""
    if end.newest_sync is None or not end.is_below_newest_sync:
        return ""
    return f"ends at {end.target_end}, and MM2's newest sync names a record at {end.newest_sync.target_offset} there"


def _checkpoint_beyond(row: Row, end: CopyEnd) -> str:
    """Return what the checkpoint of a row's group says that the copy no longer has; "" for nothing.

    Nothing where a sync that still counts lies at or below the commit: MM2 has copied on from there since, and keeps a
    checkpoint that is too high; up to 3.4 it made some that lie beyond the end.
    """
    checkpoint, target_end, sync = row.checkpoint_target_offset, end.target_end, end.newest_sync
    if checkpoint is None or isinstance(target_end, Failure) or checkpoint <= target_end:
        return ""
    # For rows placed by timestamps nobody asked which syncs count at the commit: the newest may have others below it.
    since = sync is not None and (
        row.method is Method.TIMESTAMP
        or (row.source_committed is not None and sync.source_offset <= row.source_committed)
    )
    if row.lower_target_offset is not None or (since and not end.is_below_newest_sync):
        return ""
    return f"ends at {target_end}, and MM2's checkpoint of {safe(row.group)} says {checkpoint}"


def _begins_beyond(row: Row) -> str:
    """Return that a copy begins with a record beyond a row's commit, and has none of those between; "" if not so."""
    first, committed, start = row.upper_source_offset, row.source_committed, row.source_log_start
    if first is None or committed is None or start is None or first <= max(committed, start) or row.target_log_start:
        return ""
    return f"begins with the source's record at {first}, beyond the commit of {safe(row.group)} at {committed}"


@judges(checks.PRODUCERS_STOPPED)
def producers_stopped(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Block topics whose log ends move: what is written from now on is not in the plan, and MM2 is never done."""
    if facts.source_down:
        return
    topics = _by_topic(rows)
    read = {p: facts.topics.growth.get(p, NOT_READ_AGAIN) for _, partitions in topics for p in partitions}
    apart = min((growth.seconds for growth in read.values() if isinstance(growth, Growth)), default=0.0)
    expected = f"no record written to it for {apart:.0f} s"
    todo = (
        "Stop its producers and plan again; or, if they are to move later, waive with --accept producers-stopped:TOPIC."
    )
    fine = 0
    for topic, partitions in topics:
        moved = {p.partition: g for p in partitions if isinstance(g := read[p], Growth) and g.offsets}
        failed = {p.partition: g for p in partitions if isinstance(g := read[p], Failure)}
        if moved:
            offsets, per_second = sum(g.offsets for g in moved.values()), sum(g.per_second for g in moved.values())
            where = some((str(p) for p in moved), 5)
            rate = f", {rate_text(per_second)}" if per_second > 0 else ""
            seen = f"{many(offsets, 'offset')} in {apart:.0f} s{rate}, on {many(len(moved), 'partition')} ({where})"
            yield checks.PRODUCERS_STOPPED.blocks(topic, expected, seen, todo)
        elif failed:
            seen = some((f"partition {p}: {failure.message}" for p, failure in failed.items()), 5, "; ")
            yield checks.PRODUCERS_STOPPED.unseen(Level.BLOCK, topic, expected, seen, todo)
        else:
            fine += 1
    if fine and any(isinstance(growth, Growth) and not growth.tells for growth in read.values()):
        yield checks.PRODUCERS_STOPPED.on_cluster.unseen(
            Level.BLOCK, facts.source.alias, f"two readings of the log ends, at least {LEAST_SECONDS:.0f} s apart",
            "they were read twice at about the same time: whether anybody writes is not known",
            f"Set --settle to some seconds, or waive with --accept {checks.PRODUCERS_STOPPED}:{facts.source.alias}.",
        )  # fmt: skip
    elif fine:
        yield checks.PRODUCERS_STOPPED.passes(many(fine, "topic"), expected, "none was")


# Rows of which nobody has looked for a copy of each owed record.
UNREAD = frozenset({str(Why.NOT_ALL_READ), str(Why.LEAST_TIMESTAMP)})


@judges(checks.MISSING_ON_TARGET)
def missing_on_target(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Block rows that are owed records of which the target has no copy: no offset can bring them."""
    if facts.failback:
        return
    expected = "a copy on the target of every record that the group is owed"
    compared = len(rows) - rows.tally("missing_on_target")[None]
    loses = "MM2 loses records when a source topic is re-created, and its transforms may drop some."
    if not facts.mm2.copies:
        loses = "The replicator has left some out, or lost them."
    lacking = 0
    for row in rows.where("missing_on_target", bool):
        missing, lacking = row.missing_on_target or 0, lacking + 1
        yield checks.MISSING_ON_TARGET.blocks(
            row.subject, expected, f"{many(missing, 'owed record')} {'has none' if missing == 1 else 'have none'}",
            f"{loses} Let the "
            "group read them on the source first, or waive with --accept missing-on-target:GROUP/TOPIC/PARTITION.",
        )  # fmt: skip
    if compared and not lacking:
        yield checks.MISSING_ON_TARGET.passes(many(compared, "row"), expected, "none is missing")
    # What is owed nothing lacks nothing.
    unread = Counter(row.why for row in rows.where("why", UNREAD.__contains__) if lag(row) != 0)
    fields = ("missing_on_target", "target_offset", "method", "why", "source_committed", "source_log_end")
    unread += Counter(
        why or "not compared"
        for missing, placed, method, why, committed, end in rows.values(*fields)
        if missing is None and placed is not None and method is not Method.EXPLICIT
        if why not in UNREAD and between(committed, end) != 0
    )
    if unread:
        whys = ", ".join(f"{count} {why}" for why, count in sorted(unread.items()))
        yield checks.MISSING_ON_TARGET.on_cluster.unseen(
            Level.WARN, facts.target.alias, expected,
            f"not all that is owed was compared of {many(unread.total(), 'row')}: {whys}",
            "Let more be read (--match-limit, --max-fetch; not --by timestamp), or let these groups read on the source "
            "first.",
        )  # fmt: skip


@judges(checks.UNREAD_ON_TARGET_ONLY)
def unread_on_target_only(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Block rows of a failback whose group would leave records unread that are on MM2's target only.

    Where records were not compared nobody knows whether there are any, unless the group has read all.
    """
    if not facts.failback:
        return
    left, kept = facts.source.alias, facts.target.alias
    expected = f"every record that the group has not read on {left} also on {kept}"
    todo = (
        f"Producers have written to {left}. Let the group read on there to the end first, or waive with --accept "
        "unread-on-target-only:GROUP/TOPIC/PARTITION."
    )
    fine = 0
    for row in rows:
        if row.target_offset is None or row.source_committed is None or row.method is Method.EXPLICIT:
            continue
        unread = lag(row)
        if row.missing_on_target:
            seen = f"{many(row.missing_on_target, 'unread record')} on {left} only"
            yield checks.UNREAD_ON_TARGET_ONLY.blocks(row.subject, expected, seen, todo)
        elif (row.missing_on_target is None or row.why == Why.NOT_ALL_READ) and (unread is None or unread > 0):
            count = "nobody knows how many unread records"
            if unread is not None:
                count = f"up to {many(unread, 'unread record')}"
            seen = f"{count} on {left}, and they were not all compared"
            yield checks.UNREAD_ON_TARGET_ONLY.unseen(Level.BLOCK, row.subject, expected, seen, todo)
        elif _only_looks_alike(row) and unread:
            seen = (
                f"some of {many(unread, 'unread record')} on {left} look like others, and no timestamp tells them apart"
            )
            yield checks.UNREAD_ON_TARGET_ONLY.unseen(Level.BLOCK, row.subject, expected, seen, todo)
        else:
            fine += 1
    if fine:
        yield checks.UNREAD_ON_TARGET_ONLY.passes(many(fine, "row"), expected, "it is")


def _only_looks_alike(row: Row) -> bool:
    """True where records are counted as copied that repeat what others said, and have timestamps of their own there."""
    return row.why == Why.LOOK_ALIKES and bool(row.equality) and not Equality(row.equality).keeps_time


@judges(checks.TARGET_TOPIC_DEDICATED)
def dedicated(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Name target topics that hold records of somebody else: producers write there already, or MM2 alters records.

    An MM2 that reads uncommitted copies aborted records as well: what these explain is listed, and no warning.
    """
    source, target = facts.source.alias, facts.target.alias
    unread = sorted(facts.topics.unread_tails & rows.tally("source_topic").keys())
    if unread:
        yield checks.TARGET_TOPIC_DEDICATED.on_cluster.unseen(
            Level.WARN, target, "only copies of the source in the topics that groups move to",
            f"what is near the ends of {many(len(unread), 'topic')} was not compared: {some(map(safe, unread), 5)}",
            "Let them be compared (no --no-match, not --by timestamp), or make sure that nobody else writes there.",
        )  # fmt: skip
    for topic, (count, perhaps_copies) in sorted(facts.topics.foreign_records.items()):
        copy = facts.topics.partitions.get(topic, (None, topic, None))[1]
        expected = f"only copies of the source in {safe(copy)}"
        equal = "equals" if count == 1 else "equal"
        where = f"near the end of {safe(copy)} on {target}"
        seen = f"{many(count, 'record')} {where} {equal} none that was read of {source}"
        todo = f"Consumers will read these, too. Find out who writes to {safe(copy)} on {target}."
        if not perhaps_copies:
            yield checks.TARGET_TOPIC_DEDICATED.warns(topic, expected, f"{seen}: somebody else writes there", todo)
            continue
        seen += (
            f"; up to {perhaps_copies} may be copies of records that {source} does not show (aborted or compacted "
            "ones, or of an open transaction)"
        )
        explained = count == perhaps_copies
        level = Level.PASS if explained else Level.WARN
        yield checks.TARGET_TOPIC_DEDICATED.unseen(level, topic, expected, seen, "" if explained else todo)


@judges(checks.SYNC_UNGUARDED)
def sync_unguarded(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Block rows at a sync that is not proven, where no record could be read that guards it (Law 2)."""
    for row in rows.where("why", lambda why: why == WhyUnmatched.NOT_READABLE):
        if row.lower_kind == "sync" and row.grade is Grade.ESTIMATED:
            yield checks.SYNC_UNGUARDED.blocks(
                row.subject, "a proven sync, or a timestamp beside it", safe(row.sentence),
                "Plan again; grant READ on the topic on both clusters if that is refused; or waive with --accept "
                "sync-unguarded:GROUP/TOPIC/PARTITION, if MM2's syncs are known to be of these logs.",
            )  # fmt: skip


@judges(checks.TIMESTAMPS_NOT_KEPT)
def timestamps_not_kept(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Block rows that rest on unproven syncs while no timestamp can guard them (Law 2 under LogAppendTime).

    Or, with `--by timestamp`, on nothing at all (Law 2b).
    """
    for row in rows.where("grade", lambda grade: grade is Grade.ESTIMATED):
        unguarded = row.why and row.lower_kind != PROVEN_SYNC
        if unguarded and row.why == checks.TIMESTAMPS_NOT_KEPT.name:
            yield checks.TIMESTAMPS_NOT_KEPT.blocks(
                row.subject, "the source's timestamps on the target",
                "nothing shows that they are kept: message.timestamp.type is LogAppendTime or may not be read "
                "(DESCRIBE_CONFIGS), or too few records have one key and one timestamp on both sides",
                "Compare records instead (--by records), or waive with --accept "
                "timestamps-not-kept:GROUP/TOPIC/PARTITION: the row is where nothing can have been skipped.",
            )  # fmt: skip
        elif unguarded and row.equality and not Equality(row.equality).keeps_time:
            yield checks.TIMESTAMPS_NOT_KEPT.blocks(
                row.subject, "a proven sync, or the source's timestamps on the target",
                "its records could not be compared, and the target's timestamps are its own (LogAppendTime)",
                "Raise --match-limit or --max-fetch, or waive with --accept timestamps-not-kept:GROUP/TOPIC/PARTITION.",
            )  # fmt: skip


@judges(checks.OPEN_TRANSACTION)
def open_transaction(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Block rows that timestamps place while the source has records of which nobody knows the timestamps.

    One of these may be older than all that was read, and its copy stand below the row, where it would be skipped.
    """
    for row in rows.where("why", lambda why: why == Why.LEAST_TIMESTAMP):
        if (row.source_topic, row.partition) in facts.topics.unread_ends and row.target_offset != row.target_log_start:
            yield checks.OPEN_TRANSACTION.blocks(
                row.subject, "the timestamps of all that the group is owed",
                f"on {facts.source.alias} the log may reach beyond what could be read (a transaction is open, or "
                "producers write): the row may pass over the copies of such records",
                "End the transaction (kafka-transactions.sh), stop the producers and plan again; or compare records "
                f"(--by records); or waive with --accept {checks.OPEN_TRANSACTION}:GROUP/TOPIC/PARTITION.",
            )  # fmt: skip
