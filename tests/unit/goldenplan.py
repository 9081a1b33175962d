"""A plan with every decision and every reason, made by hand: what the golden files show."""

from migrate.model import Decision, Grade, Level, Method, Row, Scope
from migrate.plan.plan import Plan, PlannedActivity, PlannedGroupState
from tests.builders import make_check, make_plan, make_row, make_untranslated

SYNC_ON_COMMIT = "A sync stands on the committed offset: 700."
HELD = {
    "decision": Decision.BLOCK, "reason": "group-blocked",
    "sentence": "orders-2 of this group is blocked, and a group is set whole or not at all.",
}  # fmt: skip


def golden_rows() -> list[Row]:
    """Return rows of nine groups: fine ones, kept ones, chosen risks, and blocks of all sorts."""
    return [
        # A group that is simply moved: by window, by sync, from the log start, and already there.
        make_row("billing", "orders", 0),
        make_row("billing", "orders", 1, method=Method.SYNC, source_committed=1000, target_offset=960,
                 rereads_estimate=0, checkpoint_target_offset=960, sentence=SYNC_ON_COMMIT),
        make_row("billing", "orders", 2, target_offset=0, rereads_estimate=650, lower_kind="log-start",
                 checkpoint_source_offset=None, checkpoint_target_offset=None),
        make_row("billing", "refunds", 0, decision=Decision.KEEP, reason="already-there", target_prior=650,
                 sentence="The target group is already there."),
        make_row("billing", "refunds", 1, checkpoint_target_offset=655),
        make_row("billing", "refunds", 2, grade=Grade.BOUNDED, method=Method.MATCH, rereads_at_most=40,
                 rereads_estimate=None, reason="unknown-record", why="unknown-record", equality="all",
                 missing_on_target=0, lower_kind="proven-sync",
                 sentence="A record on the target that equals none of the source may be an owed one."),
        make_row("billing", "refunds", 3, grade=Grade.EXACT, method=Method.MATCH, rereads_at_most=0,
                 rereads_estimate=None, reason="proven", why="proven", equality="without-headers",
                 missing_on_target=0, lower_kind="proven-sync", checkpoint_target_offset=690,
                 sentence="The records of both sides were compared."),
        # A group that one row blocks, so that the others are held back.
        make_row("orders-service", "orders", 0, **HELD),
        make_row("orders-service", "orders", 1, **HELD),
        make_untranslated(Decision.BLOCK, "commit-beyond-log-end", "orders-service", "orders", 2,
                          source_committed=1205),
        # Rows on which a reviewer's choice decided: each may skip or re-read.
        make_row("payments", "payments", 0, reason="rewound", target_prior=900,
                 sentence="The offset after the nearest sync. Rewinds the target group from 900, as --rewind set "
                          "says."),
        make_untranslated(Decision.SKIP, "topic-not-replicated", "payments", "local-only", 0,
                          sentence="MM2's topics filter leaves it out. Left alone, as --untranslatable says."),
        make_row("kept-ahead", "payments", 0, decision=Decision.KEEP, reason="ahead-kept", target_prior=700,
                 sentence="The target group is at 700, 50 beyond the planned 650; kept by --rewind keep, "
                          "which may skip records."),
        make_row("reset-to-latest", "payments", 0, reason="commit-beyond-log-end", method=Method.EXPLICIT,
                 grade=None, rereads_estimate=None, target_offset=960, lower_kind="log-latest",
                 sentence="Set to the target's latest offset, as --untranslatable says."),
        make_untranslated(Decision.SKIP, "target-topic-missing", "left-alone", "old-topic", 0),
        make_row("undone", "payments", 0, decision=Decision.REMOVE, reason="no-prior-offset", target_offset=None,
                 method=None, grade=None, rereads_estimate=None, target_prior=650, source_committed=None,
                 sentence="There was no offset before."),
        make_row("new-partitions", "orders", 7, reason="never-committed", method=Method.EXPLICIT, grade=None,
                 source_committed=None, rereads_estimate=None, target_offset=0, lower_kind="log-start",
                 checkpoint_source_offset=None, checkpoint_target_offset=None,
                 sentence="The group never committed this partition; --uncommitted earliest sets it."),
        # Rows blocked by themselves or by their group's state; one by a reason that no check tells.
        make_row("live-on-target", "clicks", 0, decision=Decision.BLOCK, reason="target-group-empty",
                 sentence="Stable on B with 3 members; expected no member on B."),
        make_row("streams-app", "orders", 0, decision=Decision.BLOCK, reason="metadata-too-long",
                 source_metadata="AgAAAZ", target_metadata="AgAAAZ", sentence="5000 characters."),
        make_untranslated(Decision.BLOCK, "source-topic-missing", "no-check-tells", "gone", 0),
    ]  # fmt: skip


def golden_plan() -> Plan:
    """Return the plan of these rows with the checks that belong to it."""
    rows = golden_rows()
    groups = sorted({row.group for row in rows})
    live, stopped = "live-on-target", [group for group in groups if group != "live-on-target"]
    states = [(side, g, state, 0) for side, state in (("source", "Empty"), ("target", "Absent")) for g in stopped]
    states += [("source", live, "Empty", 0), ("target", live, "Stable", 3)]
    return make_plan(
        rows,
        flow={
            "replication_policy": "default", "separator": ".", "offset_syncs_location": "source",
            "checkpoints_topic": "A.checkpoints.internal", "offset_syncs_topic": "mm2-offset-syncs.B.internal",
            "source_bootstrap": "a1:9092,a2:9092", "target_bootstrap": "b1:9092,b2:9092",
        },
        settings={
            "exclude-group": "test-.*", "max-rereads": "1000000", "rewind": "set", "settle": "15",
            "uncommitted": "ignore", "untranslatable": "block, topic-not-replicated=skip",
        },
        waivers=("source-group-stopped:payments",),
        group_states=tuple(PlannedGroupState(*state, "classic") for state in states),
        activity=(
            PlannedActivity("billing", 1_785_553_190_500, 5_000, 12),
            PlannedActivity("streams-app", 1_785_294_000_000, None, None),
        ),
        counts={
            "commits_read": len(rows) + 42, "rows": len(rows), "uncommitted_added": 1,
            "filtered:__* and console-consumer-*": 31, "filtered:exclude-group": 12,
        },
        comparison={
            "partitions": 3, "left_out": 1,
            "source_bytes_estimated": 1_240_000_000, "source_bytes_fetched": 1_180_000_000,
            "source_records_estimated": 5_400_000, "source_records_read": 5_312_004,
            "target_bytes_estimated": 1_300_000_000, "target_bytes_fetched": 1_260_000_000,
            "target_records_estimated": 5_500_000, "target_records_read": 5_411_112,
        },
        mm2_counts={
            "checkpoints topic: checkpoint": 4711, "checkpoints topic: undecodable:bad-length": 2,
            "offset-syncs topic: offset-sync": 90210,
        },
        checks=(
            make_check("clusters-differ", "B", level=Level.PASS, scope=Scope.CLUSTER, todo=""),
            make_check("target-group-empty", "live-on-target", expected="no member on B",
                       seen="Stable on B with 3 members: etl-1@10.0.0.5, etl-2@10.0.0.6, etl-3@10.0.0.7",
                       todo="Stop these consumers: the broker refuses to set offsets under a live group."),
            make_check("source-group-stopped", "payments", level=Level.WARN, accepted=True,
                       seen="Stable on A with 1 members: payments-1@10.0.0.9",
                       todo="Stop these consumers, then plan again: what they commit from now on is not in the "
                            "plan."),
            make_check("source-group-stopped", "17 groups", level=Level.PASS, todo=""),
            make_check("commit-beyond-log-end", "orders-service/orders/2", scope=Scope.ROW,
                       expected="a committed offset inside the source's log",
                       seen="The group's committed offset 1205 lies beyond the source's end 1000",
                       todo="Reset the group on the source, or choose "
                            "--untranslatable commit-beyond-log-end=earliest|latest."),
            make_check("not-drained", "orders", scope=Scope.TOPIC,
                       expected="every record up to the source's end copied",
                       seen="partition 1: 17 records not copied yet",
                       todo="Stop the producers and let MM2 copy the rest, then plan again."),
            make_check("missing-on-target", "orders-service/orders/1", level=Level.WARN, scope=Scope.ROW,
                       accepted=True, seen="28 owed records have none",
                       expected="a copy on the target of every record that the group is owed"),
            make_check("metadata-too-long", "streams-app/orders/0", scope=Scope.ROW,
                       expected="metadata of at most 4096 characters", seen="5000 characters",
                       todo="Raise offset.metadata.max.bytes on the target's brokers."),
            make_check("topic-exists-rights", "orders", level=Level.NOT_VISIBLE, counts_as=Level.WARN,
                       scope=Scope.TOPIC, expected="the topic's configuration", seen="no right to describe it",
                       todo="Grant DESCRIBE_CONFIGS on the topic."),
            make_check("partitions-never-committed", "billing", level=Level.WARN,
                       expected="a commit on every partition of its topics", seen="none on orders-3",
                       todo="There auto.offset.reset decides on the target: set it to earliest, or use "
                            "--uncommitted earliest."),
            make_check("estimated-rows", "B", level=Level.WARN, scope=Scope.CLUSTER,
                       expected="rows proven by their records",
                       seen="11 rows rest on MM2's syncs alone: 8 match-limit, 3 not-readable",
                       todo="Loss-free while MM2's syncs tell the truth."),
        ),
    )  # fmt: skip
