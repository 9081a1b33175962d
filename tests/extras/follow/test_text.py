"""What is told of passes, unsafe groups first, and of a mandate before it is approved: all it allows, every name."""

import json

import pytest

from migrate.extras.follow.delay import Delay, Waiting
from migrate.extras.follow.engine import PassResult
from migrate.extras.follow.judge import Refusal
from migrate.extras.follow.mandate_text import mandate_lines, mandate_verdict
from migrate.extras.follow.passes import PassSum
from migrate.extras.follow.text import (
    dry_run_lines,
    follow_lines,
    pass_document,
    status_facts,
    status_file_document,
)
from migrate.survey.policies import Waiver
from tests.extras.follow.followscene import mandated
from tests.unit.surveyscene import FLOW

ALIVE = Refusal("alive-on-target", "It is Stable on the target: app@host.")
UNSAFE = Refusal("would-move-back", "A.orders-0: 9 stands there, beyond 5, and it is not ours.", True)
PLAN = mandated(FLOW, (Waiver("group-sync", "g"),), group=("bill.*",), moving_group=("flink",), max_fetch=500)


def passed(**values) -> PassResult:
    usual = {"groups": 3, "rows": 7, "rows_changed": 2, "rows_set": 2, "seconds": 1.5, "delays": (Delay(2.0, False),)}
    return PassResult(4, 1_700_000_000_000, **(usual | values))


def total_of(*results: PassResult) -> PassSum:
    total = PassSum()
    for result in results:
        total.add(result)
    return total


def text(lines) -> str:
    return "\n".join(lines)


def test_a_pass_is_one_json_line_with_what_it_did_and_the_reasons_counted():
    document = pass_document(passed(refused={"a": ALIVE, "b": ALIVE, "c": UNSAFE}))
    assert json.loads(json.dumps(document)) == {
        "pass": 4, "at": "2023-11-14T22:13:20.000Z", "seconds": 1.5, "groups": 3, "rows": 7, "rows_changed": 2,
        "rows_set": 2, "rows_already_there": 0, "refused": {"alive-on-target": 2, "would-move-back": 1},
        "unsafe_to_fail_over": ["c"],
        "delay_seconds": {"p50": 2.0, "p99": 2.0, "max": 2.0, "rows": 1, "from_first_seen": 0},
        "waiting_for_mm2": {"rows": 0, "oldest_seconds": 0.0}, "source_bytes": 0, "target_bytes": 0,
        "offsets_topic_records": 0, "trouble": None,
    }  # fmt: skip


def test_a_group_with_another_name_on_the_target_is_told_of_by_both():
    total = total_of(passed(refused={"a": ALIVE, "c": UNSAFE}, target_names={"c": "c-eu"}))
    assert "c -> c-eu  would-move-back: unsafe" in text(follow_lines(PLAN, total, "told to stop", 200, False))
    refused = status_file_document(PLAN, total, 30.0, "process 7", "")["refused_groups"]
    assert [refused[group]["target_group"] for group in "ac"] == ["", "c-eu"]


def test_the_status_file_names_each_group_that_is_left_out_as_the_newest_whole_pass_saw_it():
    total = total_of(passed(refused={"c": UNSAFE}), PassResult(5, 1_700_000_030_000, trouble="B is down."))
    document = status_file_document(PLAN, total, 30.0, "process 7 on night", "")
    assert document["pass"]["trouble"] == "B is down." and document["fingerprint"] == PLAN.fingerprint
    assert document["refused_at"] == "2023-11-14T22:13:20.000Z"
    assert document["refused_groups"]["c"] == {
        "target_group": "", "reason": "would-move-back", "sentence": UNSAFE.sentence, "unsafe_to_fail_over": True,
    }  # fmt: skip
    assert document["run"] == {
        "passes": 2, "failed": 1, "rows_set": 2, "longest_pass_seconds": 1.5,
        "delay_seconds": pass_document(passed())["delay_seconds"],
    }  # fmt: skip


def test_how_it_ended_says_the_unsafe_groups_first_and_that_the_rest_was_followed():
    shown = text(
        follow_lines(PLAN, total_of(passed(refused={"a": ALIVE, "c": UNSAFE})), "it was asked to stop", 200, False)
    )
    assert shown.startswith("FOLLOWED IN PART: 1 pass, 2 rows set; 2 groups left out")
    assert shown.index("c  would-move-back: unsafe-to-fail-over") < shown.index("a  alive-on-target")
    assert "p50 2 s, p99 2 s, at most 2 s (1 row)" in shown
    assert text(follow_lines(PLAN, total_of(passed(), passed()), "x", 200, False)).startswith("FOLLOWED: 2 passes")


def test_where_no_pass_was_well_the_trouble_is_told():
    shown = text(follow_lines(PLAN, total_of(PassResult(1, 0, trouble="B is down.")), "x", 200, False))
    assert shown.startswith("FAILED: 1 pass") and "1 pass failed; B is down." in shown


def test_a_dry_run_says_what_would_be_set_and_what_to_type():
    shown = text(dry_run_lines(PLAN, "follow.plan", passed(rows_to_set=5, refused={"a": ALIVE}), 200, False))
    assert shown.startswith("DRY RUN: a pass would set 5 rows of 3 groups; nothing was written")
    assert f"mm2-migrate follow run follow.plan --approve {PLAN.fingerprint} --execute" in shown and "a  alive" in shown
    unsigned = text(dry_run_lines(PLAN, "follow.plan", passed(rows_to_set=5), 200, False, "Sign it."))
    assert unsigned.endswith("Sign it.") and "--execute" not in unsigned


def test_what_a_status_file_says_is_told_with_its_age_and_without_one_that_there_is_none():
    document = status_file_document(PLAN, total_of(passed(refused={"c": UNSAFE})), 30.0, "process 7 on night", "")
    shown = dict(status_facts(document, 1_700_000_012_000, 1_700_000_000_000))
    assert shown["Follow"] == "pass 4, 12 s ago; running by its own account (process 7 on night)"
    assert shown["Writes"].startswith("process 7 on night may move commits of groups without members on the target")
    assert shown["Pass"] == "3 groups, 7 rows, 2 set; left out: 1 would-move-back"
    assert shown["Unsafe"] == "unsafe-to-fail-over: c"
    ended = {**document, "ended": "it was asked to stop"}
    told = dict(status_facts(ended, 0, 0))
    assert "ended: it was asked to stop" in told["Follow"] and "Writes" not in told
    assert "no status file" in dict(status_facts(None, 0, None))["Follow"]


A_IS_DOWN = PassResult(5, 1_700_000_030_000, trouble="A is down.")


def test_a_pass_that_judged_no_group_does_not_say_that_none_is_left_out_or_unsafe():
    document = pass_document(A_IS_DOWN)
    assert (document["refused"], document["unsafe_to_fail_over"]) == (None, None)
    amid_writing = pass_document(passed(refused={"c": UNSAFE}, trouble="B is down."))
    assert (amid_writing["refused"], amid_writing["unsafe_to_fail_over"]) == ({"would-move-back": 1}, ["c"])


def test_while_a_cluster_is_down_the_status_goes_on_naming_the_unsafe_groups_and_says_when_they_were_seen():
    document = status_file_document(PLAN, total_of(passed(refused={"c": UNSAFE}), A_IS_DOWN), 30.0, "process 7", "")
    shown = dict(status_facts(document, 1_700_000_042_000, 1_700_000_030_000))
    assert shown["Pass"] == (
        "ended before any group was judged; at 2023-11-14T22:13:20.000Z, left out: 1 would-move-back"
    )
    assert shown["Unsafe"] == "unsafe-to-fail-over: c" and shown["Trouble"] == "A is down."


def test_a_new_run_keeps_what_the_one_before_knew_until_a_pass_of_its_own_is_well():
    earlier = status_file_document(PLAN, total_of(passed(refused={"c": UNSAFE})), 30.0, "process 7", "it was killed")
    for total, left_out in (total_of(A_IS_DOWN), {"c"}), (total_of(A_IS_DOWN, passed()), set()):
        assert set(status_file_document(PLAN, total, 30.0, "process 8", "", earlier)["refused_groups"]) == left_out
    nothing = status_file_document(PLAN, total_of(A_IS_DOWN), 30.0, "process 8", "")
    assert nothing["refused_groups"] is None
    shown = dict(status_facts(nothing, 1_700_000_042_000, 1_700_000_030_000))
    assert "is not known" in shown["Pass"] and "Unsafe" not in shown


def test_the_first_line_says_how_many_rows_wait_for_mm2_and_how_long_the_oldest_has():
    total = total_of(passed(waiting=Waiting(3, 90.0)))
    wait = "3 rows wait for MM2, the oldest for 90 s"
    assert text(follow_lines(PLAN, total, "x", 200, False)).splitlines()[0].endswith(f"; {wait}")
    assert wait in text(dry_run_lines(PLAN, "p", passed(waiting=Waiting(3, 90.0)), 200, False)).splitlines()[0]
    document = status_file_document(PLAN, total, 30.0, "process 7", "")
    assert wait in dict(status_facts(document, 1_700_000_012_000, 1_700_000_000_000))["Follow"]
    assert document["pass"]["waiting_for_mm2"] == {"rows": 3, "oldest_seconds": 90.0}


def test_a_group_that_is_followed_but_for_some_partitions_is_unsafe_and_the_reason_is_said():
    total = total_of(passed(uncovered={"k": "commits: none on t-1"}))
    assert pass_document(total.last)["unsafe_to_fail_over"] == ["k"]
    assert "k  commits: none on t-1: auto.offset.reset decides there" in text(
        follow_lines(PLAN, total, "x", 200, False)
    )
    assert status_file_document(PLAN, total, 30.0, "p", "")["uncovered_groups"] == {"k": "commits: none on t-1"}


def test_a_process_that_should_have_told_of_its_next_pass_is_overdue():
    document = status_file_document(PLAN, total_of(passed(seconds=20.0)), 30.0, "process 7", "")
    at_ms = 1_700_000_000_000

    def follow_after(seconds):
        return dict(status_facts(document, at_ms + 1000 * seconds, at_ms))["Follow"]

    assert "overdue" not in follow_after(50) and "overdue" in follow_after(51)
    assert "overdue" not in dict(status_facts({**document, "ended": "x"}, at_ms * 2, at_ms))["Follow"]


def test_a_blank_that_nobody_would_see_in_a_name_and_an_escape_are_shown():
    odd = (("orders", "orders ", False), ("a\x1b[2J", "b", False))
    shown = text(mandate_lines(mandated(FLOW, group_map=odd), "follow.plan", 200, False))
    assert 'orders -> "orders "' in shown and "\x1b" not in shown


def test_a_mandate_says_every_name_that_it_gives_as_far_as_there_is_room():
    some = tuple((f"g{n}", f"h{n}", False) for n in range(60))
    shown = " ".join(text(mandate_lines(mandated(FLOW, group_map=some), "follow.plan", 200, False)).split())
    assert (
        "g0 -> h0; g1 -> h1;" in shown
        and "g39 -> h39 and 20 more; `show --format json` has them all" in shown
        and "g40" not in shown
    )


def test_a_mandate_shows_all_that_it_allows_before_anybody_approves_it():
    shown = text(mandate_lines(PLAN, "follow.plan", 200, False))
    assert shown.startswith(mandate_verdict(PLAN)) and PLAN.fingerprint in shown
    for said in ("bill.*", "exact, bounded", "1,000,000 records", "500 bytes", "flink", "group-sync:g", "id-a", "id-b"):
        assert said in shown
    assert "May skip" not in shown and "a group is set whole or not at all" in shown
    plain = text(mandate_lines(mandated(FLOW, named_groups=("a", "b"), exclude_group=("x",)), "p", 200, False))
    assert "all, of the 2 names of a groups file: a, b, not x" in plain and "Moving" not in plain


@pytest.mark.parametrize(("untranslatable", "told"), [
    (("block", "source-topic-missing=skip"), "source-topic-missing: such partitions are left out"),
    (("skip",), "every reason: such partitions are left out"),
    (("skip", "source-topic-missing=block"), "every reason but source-topic-missing: such partitions are left out"),
])  # fmt: skip
def test_whoever_approves_a_mandate_reads_what_it_may_skip(untranslatable, told):
    shown = text(mandate_lines(mandated(FLOW, untranslatable=untranslatable), "follow.plan", 200, False))
    assert "May skip " in shown and told in shown and "set whole in the partitions that are not skipped" in shown
