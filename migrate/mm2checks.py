"""Checks on MirrorMaker 2 itself: what it writes besides, what it leaves out, and whether it still emits."""

from collections.abc import Iterable

from migrate.checks import CheckFacts, groups_of, result, unseen
from migrate.clock import minute
from migrate.expiry import MINUTE_MS, span
from migrate.model import CheckResult, Failure, Level, Row, Scope
from migrate.policies import GROUP_SYNC, Policies
from migrate.terminal import many

OLD_AFTER_MS = 60 * MINUTE_MS


def group_sync(facts: CheckFacts, rows: tuple[Row, ...], policies: Policies) -> Iterable[CheckResult]:
    """Block groups whose offsets MM2 writes on the target as well: it may overwrite what `apply` sets.

    KAFKA-19794: a group that was alive when MM2 looked and empty when it wrote is set back. Groups that MM2's own
    filter leaves out are not touched.
    """
    expected = f"sync.group.offsets.enabled=false: nobody but apply sets offsets on {facts.target_alias}"
    todo = (
        "Set it to false for this flow and restart MM2, or stop its checkpoint connector, then plan again; or waive "
        "with --accept group-sync:GROUP."
    )
    groups = groups_of(rows)
    touched = sorted(set(groups) - set(facts.left_out_by_mm2))
    if facts.group_sync is None:
        yield unseen(
            Level.WARN, GROUP_SYNC, Scope.CLUSTER, facts.target_alias, expected,
            "no MM2 configuration was given", "Look there yourself: MM2's default is false.",
        )  # fmt: skip
    elif facts.group_sync:
        for group in touched:
            seen = "sync.group.offsets.enabled is true, and MM2's group filter takes this group (KAFKA-19794)"
            yield result(Level.BLOCK, GROUP_SYNC, Scope.GROUP, group, expected, seen, todo)
    elif groups:
        yield result(Level.PASS, GROUP_SYNC, Scope.CLUSTER, facts.target_alias, expected, "it is false")


def left_out_by_mm2(facts: CheckFacts, rows: tuple[Row, ...], policies: Policies) -> Iterable[CheckResult]:
    """Name groups of the plan that MM2's own filter leaves out."""
    for group in facts.left_out_by_mm2:
        yield result(
            Level.WARN, "mm2-group-filter", Scope.GROUP, group, "a group that MM2's own filter takes",
            "its groups and groups.exclude leave it out",
            "It has no checkpoints; it is translated from the records and the offset syncs all the same.",
        )  # fmt: skip


def still_emits(facts: CheckFacts, rows: tuple[Row, ...], policies: Policies) -> Iterable[CheckResult]:
    """Warn where MM2's newest offset sync or checkpoint is old: a task of it may have stopped.

    MM2 writes none while nothing is copied or committed, so that it is no proof.
    """
    if facts.failback:
        return
    for check, what, when, task in (
        ("old-offset-syncs", "offset sync", facts.groups.newest_sync_ms, "source connector (MirrorSourceConnector)"),
        ("old-checkpoints", "checkpoint", facts.newest_checkpoint_ms, "checkpoint connector"),
    ):
        expected = f"an {what}" if what.startswith("o") else f"a {what}"
        expected += f" not older than {span(OLD_AFTER_MS)}"
        if isinstance(when, Failure):
            if facts.source_down:
                continue
            yield unseen(
                Level.WARN, check, Scope.CLUSTER, facts.target_alias, expected,
                f"the time of the newest one was not told ({when.code})", "Look at MM2's log or its REST status.",
            )  # fmt: skip
        elif when is not None:
            age = facts.now_ms - when
            if age > OLD_AFTER_MS:
                yield result(
                    Level.WARN, check, Scope.CLUSTER, facts.target_alias, expected,
                    f"the newest is of {minute(when)}, {many(age // (60 * MINUTE_MS), 'hour')} before this plan",
                    f"Fine if nothing was copied or committed since. Else look whether MM2's {task} runs.",
                )  # fmt: skip
            else:
                yield result(
                    Level.PASS, check, Scope.CLUSTER, facts.target_alias, expected, f"the newest is of {minute(when)}"
                )
