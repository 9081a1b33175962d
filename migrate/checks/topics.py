"""Checks on the plan's topics: there, copied in full, no record missing, and timestamps that can be trusted."""

from collections import Counter
from collections.abc import Iterable
from itertools import groupby

from migrate.checks.check import check
from migrate.match.equality import Equality
from migrate.match.protocol import Why, WhyUnmatched
from migrate.model import (
    PROVEN_SYNC,
    CheckResult,
    Decision,
    Failure,
    Grade,
    Level,
    LogRange,
    Method,
    Row,
    Scope,
    TopicPartition,
    between,
    lag,
)
from migrate.row_table import PlanRows
from migrate.survey.drain import Drained, drains
from migrate.survey.producers import LEAST_SECONDS, Growth, rate_text
from migrate.survey.survey import Case, CopyEnd, Survey, copy_of
from migrate.text import many, safe, some

NOT_JUDGED = Drained(None, "the ranges of its logs are unknown")
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


@check("target-topic-exists", Scope.TOPIC)
def target_topic_exists(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block topics of the plan that the target lacks.

    No waiver covers it: its rows have no place, and `--untranslatable` decides on these.
    """
    flow = survey.flow
    blocked = {topic for decision, topic in rows.values("decision", "source_topic") if decision is Decision.BLOCK}
    for topic in sorted(blocked):
        copy = flow.policy.target_topic(topic)
        if not copy or copy in survey.target.topics:  # without a copy of anything there, its rows say so
            continue
        # What is missing on the way back is the original, which MM2 does not make.
        why = flow.why_perhaps_not_replicated(topic) if flow.mm2_delivers else ""
        todo = (
            f"Check MM2's topics filter and the replication policy. Or {survey.request.way_to_leave_out}, or choose "
            "--untranslatable target-topic-missing=skip to set what there is elsewhere."
        )
        yield target_topic_exists.blocks(
            topic, f"topic {copy} on {flow.target.alias}", "there is no such topic", f"{why} {todo}" if why else todo
        )


@check("target-partitions", Scope.TOPIC, can_be_accepted=True)
def target_partitions(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block topics of the plan that the target has with fewer partitions."""
    source, fine, unknown = survey.flow.source.alias, 0, []
    for topic in sorted(rows.tally("source_topic")):
        copy = survey.flow.policy.target_topic(topic)
        on_source, on_target = survey.source.topics.get(topic), survey.target.topics.get(copy)
        if not copy or on_target is None:
            continue
        if on_source is None:
            unknown.append(topic)
        elif on_target < on_source:
            yield target_partitions.blocks(
                topic, f"{many(on_source, 'partition')} on {copy}", f"it has {on_target}",
                "MM2 adds partitions at its next topic refresh: wait for it, or leave the topic out.",
            )  # fmt: skip
        elif on_target > on_source:
            yield target_partitions.warns(
                topic, f"{many(on_source, 'partition')} on {copy}", f"it has {on_target}",
                "Records with keys that local producers write there go to other partitions than before.",
            )  # fmt: skip
        else:
            fine += 1
    if unknown:
        yield target_partitions.on_cluster.unseen(
            Level.WARN, source, "as many partitions on both sides",
            f"how many {source} has is not known of {some(unknown)}",
            "Partitions that the target lacks have no row here. Find out how many there were.",
        )  # fmt: skip
    if fine:
        yield target_partitions.passes(many(fine, "topic"), "as many partitions", "they have")


@check("not-drained", Scope.TOPIC, can_be_accepted=True, case=Case.SOURCE_READ | Case.WAY_THERE)
def not_drained(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block topics that MM2 has not copied in full: their rows hold only if MM2 goes on.

    Nothing is copied the way that a failback goes; there `unread_on_target_only` is what matters.
    """
    judged, who, positions_unknown = drains(survey), survey.flow.replicator.name, survey.mm2.positions.unknown
    expected = "every record up to the source's end copied"
    writes = (
        f"Stop the producers and let {who} copy the rest, then plan again; or waive with --accept not-drained:TOPIC if "
        f"{who} goes on."
    )
    # Nobody writes: a waiver while MM2 copies nothing gives up what is left.
    quiet = f"Let {who} copy the rest, then plan again. If what is left stays the same, it copies nothing: restart it."
    fine = 0
    for topic, partitions in _by_topic(rows):
        verdicts = [(p.partition, judged.get(p, NOT_JUDGED)) for p in partitions]
        waiting = [f"partition {partition}: {drain.seen}" for partition, drain in verdicts if not drain.verdict]
        seen = some(waiting, 5, "; ")
        if not waiting:
            fine += 1
        elif any(drain.verdict is False for _, drain in verdicts):
            growth = [survey.growth.get(p) for p in partitions]
            is_quiet = all(isinstance(g, Growth) and g.is_idle for g in growth)
            yield not_drained.blocks(topic, expected, seen, quiet if is_quiet else writes)
        else:
            unknown = f" ({positions_unknown})" if positions_unknown else ""
            yield not_drained.unseen(Level.BLOCK, topic, expected, seen + unknown, writes)
    if fine:
        yield not_drained.passes(many(fine, "topic"), expected, "they are")


@check("target-recreated", Scope.TOPIC, can_be_accepted=True, case=Case.BY_MM2)
def target_recreated(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block topics that lack on the target what MM2 says of them, or a group is owed: created anew since, or cut.

    Only where no records were compared: those that were show what is missing.
    """
    topics, ends = rows.tally("source_topic"), survey.copy_ends
    sayings = {partition: saying for partition, end in ends.items() if (saying := _sync_beyond(end))}
    seen_of = {partition for partition, end in ends.items() if end.newest_sync is not None}
    fields = ("source_topic", "partition", "checkpoint_target_offset", "missing_on_target")
    for place in {(t, p) for t, p, offset, missing in rows.values(*fields) if offset is not None and missing is None}:
        seen_of.update({TopicPartition(*place)} & ends.keys())
    least = min((end.target_end for end in ends.values() if isinstance(end.target_end, int)), default=None)
    for row in rows.where("checkpoint_target_offset", lambda offset: least is not None and (offset or 0) > least):
        end = ends.get(row.source_partition)
        if end is not None and row.missing_on_target is None and (saying := _checkpoint_beyond(row, end)):
            sayings.setdefault(row.source_partition, saying)
    # On the way back the copies are the source, and may hold what MM2 wrote twice before it.
    for row in rows.where("upper_target_offset", lambda offset: offset == 0 and not survey.flow.failback):
        if row.source_partition in ends and row.missing_on_target is None and (saying := _begins_beyond(row)):
            sayings.setdefault(row.source_partition, saying)
    target, fine = survey.flow.target.alias, 0
    expected = f"topics on {target} that hold what MM2's syncs and checkpoints say"
    for topic, same in groupby(sorted(seen_of), key=lambda partition: partition.topic):
        if topic not in topics:
            continue
        partitions = list(same)
        copy = survey.flow.policy.target_topic(topic)
        dark = [f"partition {p.partition}: {e}" for p in partitions if isinstance(e := ends[p].target_end, Failure)]
        cut = [p for p in partitions if p in sayings]
        beyond = [f"partition {p.partition} of {safe(copy)} {sayings[p]}" for p in cut]
        if beyond:
            yield target_recreated.blocks(
                topic, expected, some(beyond, 5, "; "),
                f"{safe(copy)} was created anew on {target}, or cut, or MM2 began late: records may be missing. "
                "Let records be compared, or waive with --accept target-recreated:TOPIC if all of it is there again.",
            )  # fmt: skip
        elif dark:
            yield target_recreated.unseen(
                Level.BLOCK, topic, expected, some(dark, 5, "; "), "Grant DESCRIBE on the topic, or try again."
            )
        else:
            fine += 1
    if fine:
        yield target_recreated.passes(many(fine, "topic"), expected, "they do")
    untold = {p.topic for p in ends.keys() - seen_of} & topics.keys()
    if untold:
        yield target_recreated.on_cluster.unseen(
            Level.PASS, target, expected,
            f"of {many(len(untold), 'topic')} no sync or checkpoint that could show it was seen, and not all commits "
            "were compared",
            f"Only if one was deleted and created anew on {target}: let {survey.flow.replicator.name} copy all of it "
            "again, then plan again.",
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


@check("producers-stopped", Scope.TOPIC, can_be_accepted=True, case=Case.SOURCE_READ)
def producers_stopped(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block topics whose log ends move: what is written from now on is not in the plan, and MM2 is never done."""
    topics, source = _by_topic(rows), survey.flow.source.alias
    read = {p: survey.growth.get(p, NOT_READ_AGAIN) for _, partitions in topics for p in partitions}
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
            yield producers_stopped.blocks(topic, expected, seen, todo)
        elif failed:
            seen = some((f"partition {p}: {failure.message}" for p, failure in failed.items()), 5, "; ")
            yield producers_stopped.unseen(Level.BLOCK, topic, expected, seen, todo)
        else:
            fine += 1
    if fine and any(isinstance(growth, Growth) and not growth.is_conclusive for growth in read.values()):
        yield producers_stopped.on_cluster.unseen(
            Level.BLOCK, source, f"two readings of the log ends, at least {LEAST_SECONDS:.0f} s apart",
            "they were read twice at about the same time: whether anybody writes is not known",
            f"Set --settle to some seconds, or waive with --accept {producers_stopped}:{source}.",
        )  # fmt: skip
    elif fine:
        yield producers_stopped.passes(many(fine, "topic"), expected, "none was")


# Rows of which nobody has looked for a copy of each owed record.
UNREAD = frozenset({str(Why.NOT_ALL_READ), str(Why.LEAST_TIMESTAMP)})


@check("missing-on-target", Scope.ROW, can_be_accepted=True, needs_records=True, case=Case.WAY_THERE)
def missing_on_target(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block rows that are owed records of which the target has no copy: no offset can bring them."""
    expected = "a copy on the target of every record that the group is owed"
    compared = len(rows) - rows.tally("missing_on_target")[None]
    lacking = 0
    for row in rows.where("missing_on_target", bool):
        missing, lacking = row.missing_on_target or 0, lacking + 1
        yield missing_on_target.blocks(
            row.subject, expected, f"{many(missing, 'owed record')} {'has none' if missing == 1 else 'have none'}",
            f"{survey.flow.replicator.loses} Let the "
            "group read them on the source first, or waive with --accept missing-on-target:GROUP/TOPIC/PARTITION.",
        )  # fmt: skip
    if compared and not lacking:
        yield missing_on_target.passes(many(compared, "row"), expected, "none is missing")
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
        yield missing_on_target.on_cluster.unseen(
            Level.WARN, survey.flow.target.alias, expected,
            f"not all that is owed was compared of {many(unread.total(), 'row')}: {whys}",
            "Let more be read (--match-limit, --max-fetch; not --by timestamp), or let these groups read on the source "
            "first.",
        )  # fmt: skip


@check("unread-on-target-only", Scope.ROW, can_be_accepted=True, needs_records=True, case=Case.WAY_BACK)
def unread_on_target_only(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block rows of a failback whose group would leave records unread that are on MM2's target only.

    Where records were not compared nobody knows whether there are any, unless the group has read all.
    """
    left, kept = survey.flow.source.alias, survey.flow.target.alias
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
            yield unread_on_target_only.blocks(row.subject, expected, seen, todo)
        elif (row.missing_on_target is None or row.why == Why.NOT_ALL_READ) and (unread is None or unread > 0):
            count = "an unknown number of unread records"
            if unread is not None:
                count = f"up to {many(unread, 'unread record')}"
            seen = f"{count} on {left}, and they were not all compared"
            yield unread_on_target_only.unseen(Level.BLOCK, row.subject, expected, seen, todo)
        elif _only_looks_alike(row) and unread:
            seen = (
                f"some of {many(unread, 'unread record')} on {left} look like others, and no timestamp tells them apart"
            )
            yield unread_on_target_only.unseen(Level.BLOCK, row.subject, expected, seen, todo)
        else:
            fine += 1
    if fine:
        yield unread_on_target_only.passes(many(fine, "row"), expected, "it is")


def _only_looks_alike(row: Row) -> bool:
    """True where records are counted as copied that repeat what others said, and have timestamps of their own there."""
    return row.why == Why.LOOK_ALIKES and bool(row.equality) and not Equality(row.equality).keeps_time


@check("target-topic-dedicated", Scope.TOPIC, case=Case.WAY_THERE)
def target_topic_dedicated(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Name target topics that hold records of somebody else: producers write there already, or MM2 alters records.

    An MM2 that reads uncommitted copies aborted records as well: what these explain is listed, and no warning.
    """
    source, target, topics = survey.flow.source.alias, survey.flow.target.alias, rows.tally("source_topic")
    unread = sorted(_unread_tails(survey) & topics.keys())
    if unread:
        yield target_topic_dedicated.on_cluster.unseen(
            Level.WARN, target, "only copies of the source in the topics that groups move to",
            f"what is near the ends of {many(len(unread), 'topic')} was not compared: {some(map(safe, unread), 5)}",
            "Let them be compared (no --no-match, not --by timestamp), or make sure that no other client writes there.",
        )  # fmt: skip
    foreign, perhaps = Counter[str](), Counter[str]()
    for partition, answer in survey.answers.items():
        foreign[partition.topic] += answer.tail.foreign
        perhaps[partition.topic] += answer.tail.perhaps_copies
    for topic, count in sorted(foreign.items()):
        if not count or topic not in topics:
            continue
        perhaps_copies, copy = perhaps[topic], survey.flow.policy.target_topic(topic)
        expected = f"only copies of the source in {safe(copy)}"
        equal = "equals" if count == 1 else "equal"
        where = f"near the end of {safe(copy)} on {target}"
        seen = f"{many(count, 'record')} {where} {equal} none that was read of {source}"
        todo = f"Consumers will read these, too. Find out who writes to {safe(copy)} on {target}."
        if not perhaps_copies:
            yield target_topic_dedicated.warns(topic, expected, f"{seen}: another client writes there", todo)
            continue
        seen += (
            f"; up to {perhaps_copies} may be copies of records that {source} does not show (aborted or compacted "
            "ones, or of an open transaction)"
        )
        explained = count == perhaps_copies
        level = Level.PASS if explained else Level.WARN
        yield target_topic_dedicated.unseen(level, topic, expected, seen, "" if explained else todo)


def _unread_tails(survey: Survey) -> set[str]:
    """Return the source's topics with records on both sides whose ends no comparing has judged."""
    unread: set[str] = set()
    for source, log in survey.logs.source.items():
        copy, answer = survey.logs.target.get(copy_of(survey.flow, source)), survey.answers.get(source)
        if answer is None:
            is_known = survey.comparison is not None  # it has no commit that could be placed
        else:
            is_known = answer.tail.uncopied is not None or answer.tail.foreign > 0
        if not is_known and all(isinstance(each, LogRange) and each.start < each.end for each in (log, copy)):
            unread.add(source.topic)
    return unread


@check("sync-unguarded", Scope.ROW, can_be_accepted=True, needs_records=True)
def sync_unguarded(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block rows at a sync that is not proven, where no record could be read that guards it (Law 2)."""
    for row in rows.where("why", lambda why: why == WhyUnmatched.NOT_READABLE):
        if row.lower_kind == "sync" and row.grade is Grade.ESTIMATED:
            yield sync_unguarded.blocks(
                row.subject, "a proven sync, or a timestamp beside it", safe(row.sentence),
                "Plan again; grant READ on the topic on both clusters if that is refused; or waive with --accept "
                "sync-unguarded:GROUP/TOPIC/PARTITION, if MM2's syncs are known to be of these logs.",
            )  # fmt: skip


@check("timestamps-not-kept", Scope.ROW, can_be_accepted=True, needs_records=True)
def timestamps_not_kept(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block rows that rest on unproven syncs while no timestamp can guard them (Law 2 under LogAppendTime).

    Or, with `--by timestamp`, on nothing at all (Law 2b).
    """
    for row in rows.where("grade", lambda grade: grade is Grade.ESTIMATED):
        unguarded = row.why and row.lower_kind != PROVEN_SYNC
        if unguarded and row.why == timestamps_not_kept.name:
            yield timestamps_not_kept.blocks(
                row.subject, "the source's timestamps on the target",
                "nothing shows that they are kept: message.timestamp.type is LogAppendTime or may not be read "
                "(DESCRIBE_CONFIGS), or too few records have one key and one timestamp on both sides",
                "Compare records instead (--by records), or waive with --accept "
                "timestamps-not-kept:GROUP/TOPIC/PARTITION: the row is where nothing can have been skipped.",
            )  # fmt: skip
        elif unguarded and row.equality and not Equality(row.equality).keeps_time:
            yield timestamps_not_kept.blocks(
                row.subject, "a proven sync, or the source's timestamps on the target",
                "its records could not be compared, and the target's timestamps are its own (LogAppendTime)",
                "Raise --match-limit or --max-fetch, or waive with --accept timestamps-not-kept:GROUP/TOPIC/PARTITION.",
            )  # fmt: skip


@check("open-transaction", Scope.ROW, can_be_accepted=True, needs_records=True)
def open_transaction(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block rows that timestamps place while the source has records of which nobody knows the timestamps.

    One of these may be older than all that was read, and its copy stand below the row, where it would be skipped.
    """
    for row in rows.where("why", lambda why: why == Why.LEAST_TIMESTAMP):
        log = survey.logs.source.get(row.source_partition)
        is_open = isinstance(log, LogRange) and survey.watermarks.is_open(row.source_partition, log)
        if is_open and row.target_offset != row.target_log_start:
            yield open_transaction.blocks(
                row.subject, "the timestamps of all that the group is owed",
                f"on {survey.flow.source.alias} the log may reach beyond what could be read (a transaction is open, or "
                "producers write): the row may pass over the copies of such records",
                "End the transaction (kafka-transactions.sh), stop the producers and plan again; or compare records "
                f"(--by records); or waive with --accept {open_transaction}:GROUP/TOPIC/PARTITION.",
            )  # fmt: skip
