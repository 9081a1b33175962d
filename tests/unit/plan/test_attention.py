"""What of a plan needs a person: worst first, alike things once, and nothing only in the long list."""

from migrate.model import Decision, Level
from migrate.plan.attention import AttentionKind, findings, findings_of, listed, not_ruled_out, passed, shared
from migrate.plan.plan import Plan
from tests.builders import make_check, make_plan, make_row, make_untranslated


def kinds(plan: Plan) -> list[AttentionKind]:
    return [finding.kind for finding in findings(plan)]


def test_the_worst_comes_first():
    rows = [
        make_untranslated(Decision.SKIP, "topic-missing", partition=0),
        make_row(partition=1, target_prior=700, target_offset=650),
    ]
    checks = (
        make_check("a", level=Level.WARN, counts_as=Level.WARN),
        make_check("b", level=Level.WARN, counts_as=Level.WARN, accepted=True),
        make_check("c", level=Level.BLOCK, counts_as=Level.BLOCK),
    )
    plan = make_plan(rows, checks=checks)
    assert kinds(plan) == list(AttentionKind)
    assert [finding.kind.is_grave for finding in findings(plan)] == [True, True, True, False, False]


def test_a_pass_and_a_check_that_can_only_refute_and_found_nothing_need_nobody():
    silent = make_check("silent", level=Level.NOT_VISIBLE, counts_as=Level.PASS, seen="no proof", todo="Look.")
    fine = make_check("fine", level=Level.PASS, counts_as=Level.PASS)
    assert findings_of([silent, fine]) == ()
    assert not_ruled_out([silent, fine]) == ("silent: no proof. Look.",) and passed([silent, fine]) == ("fine",)


def test_a_check_that_passes_for_some_and_not_for_others_has_not_passed():
    fine = make_check("a", "g", level=Level.PASS, counts_as=Level.PASS)
    assert passed([fine, make_check("a", "h", level=Level.WARN, counts_as=Level.WARN)]) == ()


def test_many_groups_with_one_trouble_are_one_finding_and_what_was_seen_alike_is_said_once():
    live = {"level": Level.BLOCK, "counts_as": Level.BLOCK, "seen": "Stable"}
    (finding,) = findings_of([make_check(subject="a", **live), make_check(subject="b", **live)])
    assert finding.what == "2 groups"
    assert [(e.seen, e.subjects) for e in finding.evidence] == [("Stable", ("a", "b"))]


def test_what_could_not_be_seen_is_a_finding_of_its_own_beside_what_was():
    seen = make_check(subject="a", level=Level.BLOCK, counts_as=Level.BLOCK)
    unseen = make_check(subject="b", level=Level.NOT_VISIBLE, counts_as=Level.BLOCK)
    assert [finding.name for finding in findings_of([seen, unseen])] == [seen.check, f"{seen.check} (not visible)"]


def test_where_each_subject_has_an_expectation_of_its_own_it_is_told_with_what_was_seen():
    block = {"level": Level.BLOCK, "counts_as": Level.BLOCK}
    one, other = (make_check(subject=s, expected=f"{s} there", seen="nothing", **block) for s in ("a", "b"))
    (finding,) = findings_of([one, other])
    assert finding.expected == "" and finding.seen[0] == ("a", "nothing; expected a there")
    (alone,) = findings_of([one])
    assert alone.expected == "a there" and alone.seen == (("a", "nothing"),)


def test_a_blocked_row_that_no_check_explains_is_named_and_its_group_once():
    own = make_row(partition=0, decision=Decision.BLOCK, reason="rewind")
    dragged = make_row(partition=1, decision=Decision.BLOCK, reason="group-blocked")
    assert [(f.name, f.what) for f in findings(make_plan([own, dragged]))] == [
        ("rewind", "1 row"),
        ("group-blocked", "1 row"),
    ]
    check = make_check("rewind", own.subject, level=Level.BLOCK, counts_as=Level.BLOCK)
    (finding,) = findings(make_plan([own, dragged], checks=(check,)))
    assert finding.name == "rewind" and finding.seen[0][0] == own.subject


def test_an_undo_names_what_it_gives_up_and_which_offsets_it_removes():
    rows = [
        make_row("a", target_prior=60, target_offset=10),
        make_row("b", decision=Decision.REMOVE, target_offset=None),
    ]
    undo = make_plan(rows, kind="undo", settings={"moved": "restore"})
    given_up, removed = findings(undo)
    assert given_up.kind is AttentionKind.REWIND and "--moved restore" in given_up.todo
    assert [subject for subject, _ in given_up.seen] == ["a", "b"]
    assert removed.kind is AttentionKind.WARN and len(removed.seen) == 1


def test_an_undo_sets_groups_back_by_its_nature_and_nobody_needs_to_look_at_that():
    rewound = make_row(target_prior=700, target_offset=650)
    assert kinds(make_plan([rewound])) == [AttentionKind.REWIND]
    assert kinds(make_plan([rewound], kind="undo")) == []


def test_records_of_mm2s_topics_that_nobody_can_read_are_counted():
    counts = {"checkpoints topic: undecodable:short": 2, "offset-syncs topic: undecodable:x": 0, "a: checkpoint": 9}
    (finding,) = findings(make_plan(mm2_counts=counts))
    assert finding.what == "2 records" and finding.seen == (("checkpoints topic: undecodable:short", "2 records"),)


def test_a_name_with_a_comma_or_a_blank_is_quoted_in_a_list_or_it_would_pass_for_two():
    assert listed(["a", "b, c", "d e"]) == 'a, "b, c", "d e"'
    (evidence,) = shared([("a", "x"), ("b", "x"), ("c", "x")])
    assert evidence.listed(2) == "a, b"
