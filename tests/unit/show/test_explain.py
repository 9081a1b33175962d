"""Why a row is what it is: numbers that are the row's own, and MM2's commands for the way it runs."""

import pytest

from migrate.errors import UsageError
from migrate.model import Decision, Grade, Method
from migrate.show.explain import explanation, kept_elsewhere
from tests.builders import make_check, make_plan, make_row, make_untranslated
from tests.unit.goldenplan import golden_plan

SOURCE_DOWN, AS_OF = {"source_down": True}, {"settings": {"commits-as-of": "2026-11-23T22:00:00.000Z"}}
CONVERTED = {"flow": {"mm2_converters": "header.converter x.Simple", "mm2_transforms": "y"}}
EXACT = {"grade": Grade.EXACT, "method": Method.MATCH, "rereads_estimate": None}
NONE_BELOW = {"lower_source_offset": None, "lower_target_offset": None}
NONE_ABOVE = {"upper_source_offset": None, "upper_target_offset": None}
BLOCK, KEEP, SKIP = ({"decision": decision} for decision in (Decision.BLOCK, Decision.KEEP, Decision.SKIP))
LEFT_OUT = "Beyond what --match-limit and --max-fetch allow to read."
PROVEN = "all that the group is owed lies at or after this offset, and no later offset would do."
SECOND_COPY = "a second copy lies among what the group is owed, and every later offset would skip some of that."
COMMITS = "Commits 650 on B, where the group has no offset and the log was [0, 960)."
CHECKPOINT = "Its newest checkpoint says"
START, END = (
    "the log's start 0 misses nothing and reads up to 650 offsets more",
    "the log's end 960 would skip up to 310",
)


def told(plan, group="billing", place=None, **how):
    """The explanation on one line, as words."""
    how = {"width": 10_000, "mm2_commands": True} | how
    return " ".join(" ".join(explanation(plan, group, place, **how)).split())


@pytest.mark.parametrize(("label", "row", "header", "said"), [
    ("Stood", {}, {}, "At 700 on A, whose log was [0, 1000): 300 offsets before its end."),
    ("Stood", {"source_committed": 1000}, {}, "At 1000 on A, whose log was [0, 1000): at its end."),
    ("Stood", {"source_committed": 1001}, {}, "At 1001 on A, whose log was [0, 1000): 1 beyond its end."),
    ("Stood", {"source_log_start": 701, "source_log_end": 1000}, {}, "At 700 on A, whose log was [701, 1000): 300 "
     "offsets before its end. Retention had removed 1 offset from there on."),
    ("Stood", {"source_log_start": 700, "source_metadata": "état"}, {}, "At 700 on A, whose log was [700, 1000): 300 "
     "offsets before its end. The commit carries 4 characters of metadata."),
    ("Stood", {"source_committed": None}, {}, "The group never committed this partition on A."),
    ("Stood", {"source_log_start": None}, {}, "At 700 on A, and the log there was not known."),
    ("Stood", {"source_log_end": None}, SOURCE_DOWN, "At 700 on A, as MM2's checkpoint has it."),
    ("Stood", {"source_committed": None}, SOURCE_DOWN, "A was down: where the group stood there is not known."),
    ("Stood", {"source_committed": None, "reason": "commit-as-of-gone", "sentence": "Gone."}, AS_OF, "Gone."),
    ("Now", {"live_source_offset": 99}, AS_OF,
     "That is as of 2026-11-23T22:00:00.000Z; when the plan was made, 99 was committed."),
    ("Now", {}, AS_OF, "That is as of 2026-11-23T22:00:00.000Z; when the plan was made, nothing was committed."),
    ("Syncs", {}, {}, "MM2's nearest, A -> B: 687 -> 649 at or below it, 800 -> 760 above."),
    ("Syncs", NONE_BELOW | {"lower_kind": "proven-sync"}, {},
     "MM2's nearest, proven by their records, A -> B: none at or below it, 800 -> 760 above."),
    ("Syncs", NONE_ABOVE | {"lower_kind": "log-start", "target_log_start": 655}, {}, "MM2's nearest, A -> B: 687 -> "
     "649 at or below it, none above. The target's log starts at 655, behind the lower one."),
    ("Syncs", NONE_ABOVE | {"lower_kind": "log-start", "target_log_start": None}, {},
     "MM2's nearest, A -> B: 687 -> 649 at or below it, none above."),
    ("Syncs", NONE_BELOW | {"lower_kind": "log-start"}, {},
     "MM2's nearest, A -> B: none at or below it, 800 -> 760 above."),
    ("Syncs", NONE_BELOW | NONE_ABOVE, {}, "No offset sync consistent with both logs surrounds this offset."),
    ("Syncs", NONE_BELOW | NONE_ABOVE | {"method": Method.EXPLICIT}, {}, None),
    ("Syncs", NONE_BELOW | NONE_ABOVE | {"target_offset": None}, {}, None),
    ("Compared", {}, {}, "Nothing: this row was not placed by records."),
    ("Compared", {}, SOURCE_DOWN, "Nothing: A was down."),
    ("Compared", {"why": "match-limit", "equality": "all"}, CONVERTED,
     f"Records had to agree in timestamp, key, value and headers. {LEFT_OUT}"),
    ("Compared", {"why": "proven", "equality": "without-headers", "missing_on_target": 1}, CONVERTED,
     "Records had to agree in timestamp, key and value (headers are changed on the way). The records of both sides "
     f"were compared: {PROVEN} 1 owed record found no copy on B. MM2's connector has header.converter x.Simple; y."),
    ("Compared", {"why": "match-limit", "equality": "key-and-value"}, {},
     f"Records had to agree in key and value (headers and timestamps are changed on the way). {LEFT_OUT}"),
    ("Compared", {"why": "least-timestamp", "equality": "all"}, {}, "Placed by timestamps (--by timestamp): nothing "
     "that the group is owed is older than what the target has from this offset on. What is copied there later comes "
     "on top."),
    ("Compared", {"why": "match-limit", "sentence": f"{LEFT_OUT} So it is."}, {}, None),
    ("Decided", {}, {}, "translated: The nearest sync below is source 687 at target 649: the offset after it."),
    ("MM2", {}, {}, f"{CHECKPOINT} 560, made when the group stood at 600: 90 offsets before this one, so following it "
     "would read as many more twice."),
    ("MM2", {"checkpoint_target_offset": 650}, {}, f"{CHECKPOINT} 650, made when the group stood at 600: the same "
     "offset."),
    ("MM2", {"checkpoint_target_offset": 651, "checkpoint_source_offset": None}, {},
     f"{CHECKPOINT} 651: 1 offset beyond this one, which may skip records."),
    ("MM2", EXACT | {"checkpoint_target_offset": 690, "rereads_at_most": 0}, {}, f"{CHECKPOINT} 690, made when the "
     "group stood at 600: 40 offsets beyond this one, and this one is proven: following MM2 would skip records."),
    ("MM2", {"checkpoint_target_offset": None}, {},
     "It has no checkpoint here: consumers that follow it would start where auto.offset.reset says."),
    ("MM2", {"target_offset": None}, {}, f"{CHECKPOINT} 560, made when the group stood at 600."),
    ("MM2", EXACT | {"checkpoint_source_offset": 701, "checkpoint_target_offset": 700}, {}, f"{CHECKPOINT} 700, made "
     "when the group stood at 701, beyond the commit of this row: it is not compared, for the group went on since its "
     "commit was read, or was set back."),
    ("MM2", {}, {"failback": True}, "It makes no checkpoints for the way back."),
    ("Applying", {}, {}, f"{COMMITS} About 12 records are read twice: an estimate, and no bound."),
    ("Applying", {"rereads_estimate": 1}, {}, f"{COMMITS} About 1 record is read twice: an estimate, and no bound."),
    ("Applying", EXACT | {"rereads_at_most": 0, "target_prior": 600, "target_log_end": None}, {},
     "Commits 650 on B, where the group is at 600. Nothing is read twice."),
    ("Applying", EXACT | {"rereads_at_most": 2}, {},
     f"{COMMITS} 2 records are read twice, most often because MM2 was restarted and copied them twice: {SECOND_COPY}"),
    ("Applying", EXACT | {"rereads_at_most": 1}, {},
     f"{COMMITS} 1 record is read twice, most often because MM2 was restarted and copied it twice: {SECOND_COPY}"),
    ("Applying", {"grade": Grade.BOUNDED, "rereads_at_most": 1}, {}, f"{COMMITS} At most 1 record is read twice."),
    ("Applying", {"rereads_estimate": None}, {}, f"{COMMITS} What is read twice is not known."),
    ("Applying", {"decision": Decision.REMOVE}, {}, "Deletes the offset on B: the group had none there before."),
    ("Applying", KEEP | {"target_prior": 650}, {}, "Writes nothing: the group is at 650 on B."),
    ("Applying", KEEP | {"reason": "ahead-kept", "target_prior": 700}, {},
     "Writes nothing: the group is at 700 on B. Records between the two may be skipped."),
    ("Applying", SKIP, {}, "Writes nothing: the group has no offset on B, so auto.offset.reset decides there."),
    ("Applying", SKIP | {"target_prior": 3}, {}, "Writes nothing: the group is at 3 on B."),
    ("Applying", BLOCK, {}, "Writes nothing for any partition of this group: it has no offset on B, and stays so."),
    ("Considered", {}, {}, f"{START}; {END} offsets."),
    ("Considered", {"target_offset": 0, "target_log_end": 1}, {}, "the log's end 1 would skip up to 1 offset."),
    ("Considered", {"target_log_end": 650}, {}, f"{START}."),
    ("Considered", {"target_log_start": None}, {}, None),
    ("Considered", {"target_log_end": None}, {}, None),
    ("Considered", BLOCK | {"reason": "rewind", "target_prior": 800}, {},
     f"--rewind set goes back to 650, --rewind keep stays and may skip records; {START}; {END} offsets."),
    ("Considered", BLOCK | {"reason": "target-topic-missing", "target_offset": None}, {}, "a reviewer may choose "
     "--untranslatable target-topic-missing=skip, or earliest or latest where it exists."),
    ("Considered", BLOCK | {"reason": "re-read-limit", "target_offset": None}, {}, None),
])  # fmt: skip
def test_each_sentence_about_a_row_has_its_numbers(label, row, header, said):
    lines = list(explanation(make_plan([make_row(**row)], **header), "billing", width=10_000))
    paragraphs = dict(line.strip().split(None, 1) for line in lines if line.startswith("  "))
    assert paragraphs.get(label) == said


def test_a_row_is_titled_with_where_it_goes_and_what_was_decided():
    assert "billing, orders:0 -> A.orders:0 (A -> B): SET 650, window, estimated" in told(make_plan([make_row()]))
    same = make_untranslated(Decision.SKIP, "left", target_topic="orders")
    assert "billing, orders:0 (A -> B): SKIP " in told(make_plan([same]))


def test_behind_another_replicator_nothing_is_said_of_mm2_nor_of_an_undo_anything_of_its_syncs_and_checkpoints():
    row = make_row(why="least-timestamp", equality="all", checkpoint_target_offset=None, sentence="By time.")
    by_mm2, by_another = told(make_plan([row])), told(make_plan([row], flow={"replicator": "any"}))
    assert "MM2 ITSELF" in by_mm2 and "Syncs" in by_mm2
    assert "MM2" not in by_another and "Syncs" not in by_another
    undo = told(make_plan([make_row(decision=Decision.REMOVE, target_offset=None)], kind="undo"))
    assert not [word for word in ("Syncs", "Compared", "checkpoint", "Considered") if word in undo]


def test_a_block_is_told_with_the_check_that_lifts_it():
    row = make_row(decision=Decision.BLOCK, reason="source-group-stopped", sentence="Stable on A.")
    text = told(make_plan([row], checks=(make_check(subject="billing"),)))
    assert "Block source-group-stopped: expected no member on A; seen: Stable on A" in text
    assert "Stop these consumers, then plan again." in text
    assert "By orders:0 (source-group-stopped); a group is set whole or not at all." in text


def test_one_row_is_picked_by_either_sides_name_and_a_wrong_name_is_told_with_the_right_ones():
    plan = make_plan([make_row(partition=p) for p in range(3)] + [make_row("other")])
    assert "orders:1 ->" in told(plan, place="orders:1")
    assert "orders:2 ->" not in told(plan, place="orders:1")
    assert told(plan, place="A.orders:1") == told(plan, place="orders-1")
    with pytest.raises(UsageError, match=r"no row orders:7.*orders:0, orders:1"):
        list(explanation(plan, "billing", "orders:7"))
    with pytest.raises(UsageError, match=r"no group BILL\. Groups: billing\.$"):
        list(explanation(plan, "BILL"))


def test_every_row_of_a_plan_with_every_reason_is_explained_within_the_width():
    plan = golden_plan()
    for group, rows in plan.groups().items():
        lines = list(explanation(plan, group, width=80))
        assert sum(line.startswith(f"{group}, ") for line in lines) == len(rows) + 1
        assert all(len(line) <= 80 for line in lines if "curl" not in line)
        for row in rows:
            assert told(plan, group, f"{row.source_topic}:{row.partition}")


def test_names_cannot_touch_the_terminal_or_the_shell():
    row = make_row("b\x1b[2J", "or\nders", target_topic="A.or\nders")
    plan = make_plan([row], flow={"mm2_runs": "dedicated"})
    text = "\n".join(explanation(plan, row.group, "or\nders:0", mm2_commands=True))
    assert "\x1b" not in text and "or\nders" not in text


def test_mm2s_own_commands_are_for_those_who_ask_and_what_nobody_told_stands_in_capitals():
    plan = make_plan([make_row()], flow={"mm2_runs": "dedicated"})
    assert "kill" not in told(plan, mm2_commands=False)
    asked = told(plan)
    assert "kill PID" in asked and "$(pgrep" not in asked
    text = told(make_plan([make_row()]), place="orders:0")
    for words in ("CONNECT-URL/connectors/CONNECTOR/stop", "OFFSETS-TOPIC", "copy orders:0 again"):
        assert words in text
    back = told(make_plan([make_row()], failback=True), place="orders:0")
    assert "copy A.orders:0 again" in back, "MM2 reads the plan's target"


def test_a_connector_that_keeps_positions_of_its_own_is_told_by_its_usual_name_and_no_other_group():
    for group, topic, word in (
        ("cg-control-orders", "orders", "apache/iceberg#16360"),
        ("anything", "control-iceberg", "new control topic"),
        ("connect-my-Snowflake-sink", "orders", "offset token for each channel"),
    ):
        rows = [make_row(group, topic)]
        (said,) = kept_elsewhere(group, rows)
        assert word in said and said.startswith(group) and word in told(make_plan(rows), group)
    for group in ("billing", "connect-jdbc", "snowflake", "control", "my-cg-control"):
        assert not list(kept_elsewhere(group, [make_row(group, "orders")]))
