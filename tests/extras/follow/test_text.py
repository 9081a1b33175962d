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
AT_MS = 1_700_000_000_000
AT = "2023-11-14T22:13:20.000Z"


def passed(**values) -> PassResult:
    usual = {"groups": 3, "rows": 7, "rows_changed": 2, "rows_set": 2, "seconds": 1.5, "delays": (Delay(2.0, False),)}
    return PassResult(4, AT_MS, **(usual | values))


A_IS_DOWN = PassResult(5, AT_MS + 30_000, trouble="A is down.")
LEFT_OUT = passed(refused={"a": ALIVE, "c": UNSAFE}, target_names={"c": "c-eu"})


def total_of(*results: PassResult) -> PassSum:
    total = PassSum()
    for result in results:
        total.add(result)
    return total


def text(lines) -> str:
    return "\n".join(lines)


def ended(*results: PassResult) -> str:
    return text(follow_lines(PLAN, total_of(*results), "it was asked to stop", 200, False))


def status_file(*results: PassResult, **earlier):
    return status_file_document(PLAN, total_of(*results), 30.0, "process 7 on night", "", **earlier)


def status(document, seconds_later=0):
    return dict(status_facts(document, AT_MS + 1000 * seconds_later, AT_MS))


def test_a_pass_is_one_json_line_with_what_it_did_and_the_reasons_counted():
    document = pass_document(passed(refused={"a": ALIVE, "b": ALIVE, "c": UNSAFE}, trouble="B is down."))
    assert json.loads(json.dumps(document)) == {
        "pass": 4, "at": AT, "seconds": 1.5, "groups": 3, "rows": 7, "rows_changed": 2,
        "rows_set": 2, "rows_already_there": 0, "refused": {"alive-on-target": 2, "would-move-back": 1},
        "unsafe_to_fail_over": ["c"],
        "delay_seconds": {"p50": 2.0, "p99": 2.0, "max": 2.0, "rows": 1, "from_first_seen": 0},
        "waiting_for_mm2": {"rows": 0, "oldest_seconds": 0.0}, "source_bytes": 0, "target_bytes": 0,
        "offsets_topic_records": 0, "trouble": "B is down.",
    }  # fmt: skip
    unjudged = pass_document(A_IS_DOWN)
    assert (unjudged["refused"], unjudged["unsafe_to_fail_over"]) == (None, None), "it judged no group"


def test_the_status_file_names_each_group_that_is_left_out_as_the_newest_whole_pass_saw_it_also_when_one_is_down():
    document = status_file(LEFT_OUT, A_IS_DOWN)
    shown = status(document)
    assert shown["Pass"].startswith(f"ended before any group was judged; at {AT}, left out: 1 alive-on-target, 1 would")
    assert shown["Unsafe"] == "unsafe-to-fail-over: c" and shown["Trouble"] == "A is down."
    assert document["pass"]["trouble"] == "A is down." and document["fingerprint"] == PLAN.fingerprint
    assert document["refused_at"] == AT and document["refused_groups"]["a"]["target_group"] == ""
    assert document["refused_groups"]["c"] == {
        "target_group": "c-eu", "reason": "would-move-back", "sentence": UNSAFE.sentence, "unsafe_to_fail_over": True,
    }  # fmt: skip
    assert document["run"] == {
        "passes": 2, "failed": 1, "rows_set": 2, "longest_pass_seconds": 1.5,
        "delay_seconds": pass_document(passed())["delay_seconds"],
    }  # fmt: skip


def test_how_it_ended_says_the_unsafe_groups_first_by_both_names_and_that_the_rest_was_followed():
    shown = ended(LEFT_OUT)
    assert shown.startswith("FOLLOWED IN PART: 1 pass, 2 rows set; 2 groups left out")
    assert shown.index("c -> c-eu  would-move-back: unsafe-to-fail-over") < shown.index("a  alive-on-target")
    assert "p50 2 s, p99 2 s, at most 2 s (1 row)" in shown
    assert ended(passed(), passed()).startswith("FOLLOWED: 2 passes")
    failed = ended(A_IS_DOWN)
    assert failed.startswith("FAILED: 1 pass") and "1 pass failed; A is down." in failed


def test_what_a_status_file_says_is_told_with_its_age_and_without_one_that_there_is_none():
    document = status_file(LEFT_OUT)
    shown = status(document, 12)
    assert shown["Follow"] == "pass 4, 12 s ago; running by its own account (process 7 on night)"
    assert shown["Writes"].startswith("process 7 on night may move commits of groups without members on the target")
    assert shown["Pass"] == "3 groups, 7 rows, 2 set; left out: 1 alive-on-target, 1 would-move-back"
    assert shown["Unsafe"] == "unsafe-to-fail-over: c"
    told = status({**document, "ended": "it was asked to stop"}, 10**6)
    assert "ended: it was asked to stop" in told["Follow"] and "Writes" not in told
    assert "no status file" in dict(status_facts(None, 0, None))["Follow"]
    overdue = ["overdue" in status(status_file(passed(seconds=20.0)), seconds)["Follow"] for seconds in (50, 51)]
    assert overdue == [False, True]


def test_a_new_run_keeps_what_the_one_before_knew_until_a_pass_of_its_own_is_well():
    earlier = status_file(LEFT_OUT)
    assert set(status_file(A_IS_DOWN, earlier=earlier)["refused_groups"]) == {"a", "c"}
    assert status_file(A_IS_DOWN, passed(), earlier=earlier)["refused_groups"] == {}
    shown = status(status_file(A_IS_DOWN))
    assert "is not known" in shown["Pass"] and "Unsafe" not in shown


def test_the_first_line_says_how_many_rows_wait_for_mm2_and_how_long_the_oldest_has():
    waiting, wait = passed(waiting=Waiting(3, 90.0)), "3 rows wait for MM2, the oldest for 90 s"
    assert ended(waiting).splitlines()[0].endswith(f"; {wait}")
    assert wait in text(dry_run_lines(PLAN, "p", waiting, 200, False)).splitlines()[0]
    document = status_file(waiting)
    assert wait in status(document)["Follow"]
    assert document["pass"]["waiting_for_mm2"] == {"rows": 3, "oldest_seconds": 90.0}


def test_a_group_that_is_followed_but_for_some_partitions_is_unsafe_and_the_reason_is_said():
    lacking = passed(uncovered={"k": "commits: none on t-1"})
    assert pass_document(lacking)["unsafe_to_fail_over"] == ["k"]
    assert "k  commits: none on t-1: auto.offset.reset decides there" in ended(lacking)
    assert status_file(lacking)["uncovered_groups"] == {"k": "commits: none on t-1"}


def shown_mandate(**changes) -> str:
    return " ".join(text(mandate_lines(mandated(FLOW, **changes), "follow.plan", 200, False)).split())


def test_a_mandate_says_every_name_that_it_gives_as_far_as_there_is_room_and_what_nobody_would_see_in_it():
    shown = shown_mandate(group_map=tuple((f"g{n}", f"h{n}", False) for n in range(60)))
    assert "g0 -> h0; g1 -> h1;" in shown and "g40" not in shown
    assert "g39 -> h39 and 20 more; `show --format json` has them all" in shown
    odd = shown_mandate(group_map=(("orders", "orders ", False), ("a\x1b[2J", "b", False)))
    assert 'orders -> "orders "' in odd and "\x1b" not in odd


def test_a_mandate_shows_all_that_it_allows_before_anybody_approves_it():
    shown = text(mandate_lines(PLAN, "follow.plan", 200, False))
    assert shown.startswith(mandate_verdict(PLAN)) and PLAN.fingerprint in shown
    for said in ("bill.*", "exact, bounded", "1,000,000 records", "500 bytes", "flink", "group-sync:g", "id-a", "id-b"):
        assert said in shown
    assert "May skip" not in shown and "a group is set whole or not at all" in shown
    plain = shown_mandate(named_groups=("a", "b"), exclude_group=("x",))
    assert "all, of the 2 names of a groups file: a, b, not x" in plain and "Moving" not in plain


@pytest.mark.parametrize(("untranslatable", "told"), [
    (("block", "source-topic-missing=skip"), "source-topic-missing: such partitions are left out"),
    (("skip",), "every reason: such partitions are left out"),
    (("skip", "source-topic-missing=block"), "every reason but source-topic-missing: such partitions are left out"),
])  # fmt: skip
def test_whoever_approves_a_mandate_reads_what_it_may_skip(untranslatable, told):
    shown = shown_mandate(untranslatable=untranslatable)
    assert "May skip " in shown and told in shown and "set whole in the partitions that are not skipped" in shown
