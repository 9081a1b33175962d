"""What of a plan needs a person: worst first, alike things once, and nothing only in the long list."""

from migrate.model import Decision, Level
from migrate.plan.attention import AttentionKind, findings, findings_of, listed, not_ruled_out, passed, shared
from tests.builders import make_check, make_plan, make_row, make_untranslated

BLOCK, WARN, PASS = ({"level": level, "counts_as": level} for level in (Level.BLOCK, Level.WARN, Level.PASS))


def test_the_worst_comes_first():
    rows = [
        make_untranslated(Decision.SKIP, "topic-missing", partition=0),
        make_row(partition=1, target_prior=700, target_offset=650),
    ]
    checks = (make_check("a", **WARN), make_check("b", **WARN, accepted=True), make_check("c", **BLOCK))
    found = findings(make_plan(rows, checks=checks))
    assert [finding.kind for finding in found] == list(AttentionKind)
    assert [finding.kind.is_grave for finding in found] == [True, True, True, False, False]


def test_a_pass_needs_nobody_nor_a_check_that_only_refutes_and_what_passes_for_some_alone_has_not_passed():
    silent = make_check("silent", level=Level.NOT_VISIBLE, counts_as=Level.PASS, seen="no proof", todo="Look.")
    fine = make_check("fine", "g", **PASS)
    assert findings_of([silent, fine]) == ()
    assert not_ruled_out([silent, fine]) == ("silent: no proof. Look.",) and passed([silent, fine]) == ("fine",)
    assert passed([fine, make_check("fine", "h", **WARN)]) == ()


def test_many_groups_with_one_trouble_are_one_finding_beside_those_of_which_it_could_not_be_seen():
    live = [make_check(subject=subject, seen="Stable", **BLOCK) for subject in "ab"]
    unseen = make_check(subject="c", level=Level.NOT_VISIBLE, counts_as=Level.BLOCK)
    finding, not_visible = findings_of([*live, unseen])
    assert (finding.what, finding.name, not_visible.name) == (
        "2 groups", "source-group-stopped", "source-group-stopped (not visible)",
    )  # fmt: skip
    assert [(e.seen, e.subjects) for e in finding.evidence] == [("Stable", ("a", "b"))]


def test_where_each_subject_has_an_expectation_of_its_own_it_is_told_with_what_was_seen():
    one, other = (make_check(subject=s, expected=f"{s} there", seen="nothing", **BLOCK) for s in ("a", "b"))
    (finding,) = findings_of([one, other])
    assert finding.expected == "" and finding.seen[0] == ("a", "nothing; expected a there")
    (alone,) = findings_of([one])
    assert alone.expected == "a there" and alone.seen == (("a", "nothing"),)


def test_a_blocked_row_that_no_check_explains_is_named_and_its_group_once():
    own = make_row(partition=0, decision=Decision.BLOCK, reason="rewind")
    dragged = make_row(partition=1, decision=Decision.BLOCK, reason="group-blocked")
    told = [(f.name, f.what) for f in findings(make_plan([own, dragged]))]
    assert told == [("rewind", "1 row"), ("group-blocked", "1 row")]
    (finding,) = findings(make_plan([own, dragged], checks=(make_check("rewind", own.subject, **BLOCK),)))
    assert finding.name == "rewind" and finding.seen[0][0] == own.subject


def test_an_undo_names_what_it_gives_up_and_which_offsets_it_removes_and_nothing_that_it_does_by_its_nature():
    rewound = make_row("a", target_prior=60, target_offset=10)
    rows = [rewound, make_row("b", decision=Decision.REMOVE, target_offset=None)]
    given_up, removed = findings(make_plan(rows, kind="undo", settings={"moved": "restore"}))
    assert given_up.kind is AttentionKind.REWIND and "--moved restore" in given_up.todo
    assert [subject for subject, _ in given_up.seen] == ["a", "b"]
    assert removed.kind is AttentionKind.WARN and len(removed.seen) == 1
    assert findings(make_plan([rewound], kind="undo")) == ()


def test_records_of_mm2s_topics_that_nobody_can_read_are_counted():
    counts = {"checkpoints topic: undecodable:short": 2, "offset-syncs topic: undecodable:x": 0, "a: checkpoint": 9}
    (finding,) = findings(make_plan(mm2_counts=counts))
    assert finding.what == "2 records" and finding.seen == (("checkpoints topic: undecodable:short", "2 records"),)


def test_a_name_with_a_comma_or_a_blank_is_quoted_in_a_list_or_it_would_pass_for_two():
    assert listed(["a", "b, c", "d e"]) == 'a, "b, c", "d e"'
    (evidence,) = shared([("a", "x"), ("b", "x"), ("c", "x")])
    assert evidence.listed(2) == "a, b"
