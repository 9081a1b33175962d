"""Why a row is what it is: numbers that are the row's own, and MM2's commands for the way it runs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.errors import UsageError
from migrate.model import Decision, Grade, LogRange, Method, Scope
from migrate.plan.file import read_plan, write_plan
from migrate.show.explain import explanation
from tests.builders import make_check, make_plan, make_row, make_untranslated
from tests.unit.goldenplan import golden_plan


def told(plan, group="billing", place=None, **how):
    """The explanation on one line, as words."""
    return " ".join(
        " ".join(explanation(plan, group, place, **({"width": 10_000, "mm2_commands": True} | how))).split()
    )


def test_a_row_is_told_with_its_own_numbers_from_where_it_stood_to_what_applying_does():
    text = told(make_plan([make_row()]))
    for sentence in (
        "billing, orders:0 -> A.orders:0 (A -> B): SET 650, window, estimated",
        "At 700 on A, whose log was [0, 1000): 300 offsets before its end.",
        "687 -> 649 at or below it, 800 -> 760 above.",
        "translated: The nearest sync below is source 687 at target 649",
        "newest checkpoint says 560, made when the group stood at 600: 90 offsets before this one",
        "Commits 650 on B, where the group has no offset and the log was [0, 960). About 12 records are read twice",
        "the log's start 0 misses nothing and reads up to 650 offsets more",
        "the log's end 960 would skip up to 310 offsets.",
    ):
        assert sentence in text


def test_an_exact_row_says_what_records_had_to_agree_in_and_that_mm2_would_skip():
    row = make_row(
        grade=Grade.EXACT, method=Method.MATCH, rereads_at_most=0, rereads_estimate=None, reason="proven",
        why="proven", equality="without-headers", lower_kind="proven-sync", checkpoint_target_offset=690,
        missing_on_target=2,
    )  # fmt: skip
    text = told(make_plan([row], flow={"mm2_converters": "header.converter x.Simple"}))
    assert "agree in timestamp, key and value (headers are changed on the way)" in text
    assert "MM2's connector has header.converter x.Simple" in text
    assert "no later offset would do" in text
    assert "2 owed records found no copy on B" in text
    assert "40 offsets beyond this one, and this one is proven: following MM2 would skip records" in text
    assert "Nothing is read twice." in text
    assert "proven by their records" in text


def test_behind_another_replicator_nothing_is_said_of_mm2():
    row = make_row(
        grade=Grade.BOUNDED, method=Method.TIMESTAMP, rereads_at_most=310, rereads_estimate=None,
        reason="least-timestamp", why="least-timestamp", equality="all", lower_kind="timestamp", sentence="By time.",
        checkpoint_target_offset=None, lower_source_offset=None, lower_target_offset=None, upper_source_offset=None,
        upper_target_offset=None,
    )  # fmt: skip
    by_mm2, by_another = told(make_plan([row])), told(make_plan([row], flow={"replicator": "any"}))
    assert "MM2 ITSELF" in by_mm2 and "No offset sync" in by_mm2
    assert "MM2" not in by_another and "sync" not in by_another
    assert "Placed by timestamps (--by timestamp)" in by_another and "had to agree" not in by_another
    assert "At most 310 records are read twice." in by_another


def test_a_block_tells_what_was_compared_all_the_same_and_what_would_lift_it():
    check = make_check(subject="billing")
    row = make_row(decision=Decision.BLOCK, reason="source-group-stopped", sentence="Stable on A.", why="match-limit")
    text = told(make_plan([row], checks=(check,)))
    assert "Block source-group-stopped: expected no member on A; seen: Stable on A" in text
    assert "Stop these consumers, then plan again." in text
    assert "Beyond what --match-limit and --max-fetch allow to read." in text
    assert "Writes nothing for any partition of this group: it has no offset on B, and stays so." in text
    rewind = make_row(decision=Decision.BLOCK, reason="rewind", sentence="x", target_prior=800)
    assert "--rewind set goes back to 650, --rewind keep stays" in told(make_plan([rewind]))
    nowhere = make_untranslated(Decision.BLOCK, "target-topic-missing")
    assert "--untranslatable target-topic-missing=skip" in told(make_plan([nowhere]))


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (make_row(source_committed=None), "never committed this partition on A"),
        (make_row(source_committed=1205), "205 beyond its end"),
        (make_row(source_committed=1000), "[0, 1000): at its end."),
        (make_row(source_log_start=750), "Retention had removed 50 offsets"),
        (make_row(source_metadata="état"), "4 characters of metadata"),
        (make_row(checkpoint_target_offset=None), "no checkpoint here"),
        (make_row(checkpoint_target_offset=650), "the same offset"),
        (make_row(decision=Decision.KEEP, reason="already-there", target_prior=650), "is at 650 on B"),
        (make_row(decision=Decision.KEEP, reason="ahead-kept", target_prior=700), "may be skipped"),
        (make_row(decision=Decision.SKIP, target_offset=None), "auto.offset.reset decides there"),
        (make_row(lower_target_offset=None, upper_target_offset=None), "No offset sync consistent"),
    ],
)
def test_what_is_special_about_a_row_is_said(row, words):
    assert words in told(make_plan([row]))


def test_what_the_decision_says_of_the_records_is_said_once():
    sentence = "Beyond what --match-limit and --max-fetch allow to read. The nearest sync below is taken."
    said = told(make_plan([make_row(why="match-limit", reason="match-limit", sentence=sentence)]))
    assert said.count("Beyond what --match-limit") == 1 and "Decided match-limit: Beyond" in said


def test_source_down_failback_and_undo_are_told_as_what_they_are():
    down = make_row(source_committed=None, source_log_start=None, source_log_end=None)
    assert "A was down: where the group stood there is not known." in told(make_plan([down], source_down=True))
    back = make_plan([make_row(target_topic="A.orders")], failback=True)
    assert "It makes no checkpoints for the way back." in told(back)
    undo = make_plan([make_row(decision=Decision.REMOVE, target_offset=None)], kind="undo")
    said = told(undo)
    assert "Deletes the offset on B" in said and "No offset sync" not in said and "no checkpoint here" not in said
    assert "Compared" not in said


def test_one_row_is_picked_by_either_sides_name_and_a_wrong_name_is_told_with_the_right_ones():
    plan = make_plan([make_row(partition=p) for p in range(3)] + [make_row("bill-2")])
    assert "orders:1 ->" in told(plan, place="orders:1")
    assert "orders:2 ->" not in told(plan, place="orders:1")
    assert told(plan, place="A.orders:1") == told(plan, place="orders-1")
    with pytest.raises(UsageError, match=r"no row orders:7.*orders:0, orders:1"):
        list(explanation(plan, "billing", "orders:7"))
    with pytest.raises(UsageError, match=r"no group BILL.*billing"):
        list(explanation(plan, "BILL"))


def test_checks_on_a_topic_and_a_row_are_told_once_each():
    checks = (
        make_check("not-drained", "orders", scope=Scope.TOPIC),
        make_check("inside-target-log", "billing/orders/1", scope=Scope.ROW),
        make_check("not-drained", "other", scope=Scope.TOPIC),
        make_check(subject="other-group"),
    )
    text = told(make_plan([make_row(partition=0), make_row(partition=1)], checks=checks))
    assert text.count("not-drained") == 1
    assert text.count("inside-target-log") == 1
    assert "source-group-stopped" not in text


def test_every_row_of_a_plan_with_every_reason_is_explained_within_the_width_and_after_a_trip_through_its_file(
    tmp_path,
):
    write_plan(golden_plan(), tmp_path / "p.plan")
    plan = read_plan(tmp_path / "p.plan")
    for group, rows in plan.groups().items():
        lines = list(explanation(plan, group, width=80))
        assert sum(line.startswith(f"{group}, ") for line in lines) == len(rows) + 1
        assert all(len(line) <= 80 for line in lines if "curl" not in line)
        for row in rows:
            assert told(plan, group, f"{row.source_topic}:{row.partition}")


@given(
    st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6), st.none() | st.integers(0, 10**6),
    st.sampled_from(Decision),
    st.sampled_from(["", "sync", "log-start", "timestamp", "proven-sync"]),
)  # fmt: skip
def test_no_number_is_ever_negative_whatever_the_row(committed, offset, end, prior, decision, kind):
    log = LogRange(0, max(end, offset))
    row = make_row(
        source_committed=committed, target_offset=offset, target_log_start=log.start, target_log_end=log.end,
        target_prior=prior, decision=decision, lower_kind=kind,
    )  # fmt: skip
    for number in told(make_plan([row])).replace(",", " ").split():
        assert not number.lstrip("-").isdigit() or not number.startswith("-")


def test_names_cannot_touch_the_terminal_or_the_shell():
    row = make_row("b\x1b[2J", "or\nders", target_topic="A.or\nders")
    text = "\n".join(
        explanation(make_plan([row], flow={"mm2_runs": "dedicated"}), row.group, "or\nders:0", mm2_commands=True)
    )
    assert "\x1b" not in text
    assert "or\nders" not in text


# MM2's own commands


def test_who_owns_a_group_is_not_handed_commands_that_end_mm2():
    plan = make_plan([make_row()], flow={"mm2_runs": "dedicated"})
    assert "kill" not in told(plan, "billing", mm2_commands=False)
    asked = told(plan, "billing")
    assert "kill PID" in asked and "$(pgrep" not in asked


def test_an_exact_row_that_reads_records_twice_says_why():
    row = make_row(grade=Grade.EXACT, rereads_at_most=2, rereads_estimate=None)
    assert "2 records are read twice, most often because MM2 was restarted and copied them twice" in told(
        make_plan([row]), "billing"
    )


def test_where_nobody_told_how_mm2_runs_the_unknown_stands_in_capitals():
    text = told(make_plan([make_row()]), place="orders:0")
    assert "CONNECT-URL/connectors/CONNECTOR/stop" in text
    assert "OFFSETS-TOPIC" in text


def test_a_row_of_an_earlier_time_says_where_the_group_is_now():
    settings = {"commits-as-of": "2026-11-23T22:00:00.000Z"}
    text = " ".join(told(make_plan([make_row("billing", live_source_offset=99)], settings=settings)).split())
    assert "as of 2026-11-23T22:00:00.000Z; when the plan was made, 99 was committed" in text
    lost = make_untranslated(Decision.BLOCK, "commit-as-of-gone", source_committed=None)
    text = " ".join(told(make_plan([lost], settings=settings)).split())
    assert "never committed" not in text and "nothing was committed" in text


def test_a_checkpoint_of_a_later_commit_is_said_to_be_one_and_to_skip_nothing():
    row = make_row(source_committed=120, checkpoint_source_offset=130, checkpoint_target_offset=700,
                   target_offset=650, grade=Grade.EXACT)  # fmt: skip
    text = told(make_plan([row]))
    assert "says 700, made when the group stood at 130, beyond the commit of this row: it is not compared" in text
    assert "following MM2" not in text and "which may skip" not in text
