"""A plan as a value: what its fingerprint covers, what blocks it, what it adds up to, and what of it needs a person."""

from dataclasses import fields, replace

import pytest

from migrate.errors import UsageError
from migrate.model import Decision, Grade, Level, Method, Row, Scope
from migrate.plan.attention import AttentionKind, findings, findings_of, listed, not_ruled_out, passed, shared
from migrate.plan.plan import UNDO, Header, Plan, refuse_rules
from migrate.plan.totals import compare_with_mm2, forecast, group_totals, totals
from migrate.row_table import GroupRows, PlanRows
from migrate.text import duration_text
from tests.builders import make_check, make_header, make_plan, make_row, make_untranslated


def another(value):
    if isinstance(value, dict):
        return {"x": 1}
    return value + 1 if isinstance(value, int) else "other" if isinstance(value, str) else () if value else 1


def test_every_field_of_a_row_and_of_the_header_is_in_the_fingerprint():
    row, header = make_row(), make_header(checks=(make_check(),))
    rows = [(name, header, row._replace(**{name: another(getattr(row, name))})) for name in Row._fields]
    names = [f.name for f in fields(Header)]
    headers = [(name, replace(header, **{name: another(getattr(header, name))}), row) for name in names]
    made = Plan(header, PlanRows.of([row])).fingerprint
    assert [name for name, head, one in rows + headers if Plan(head, PlanRows.of([one])).fingerprint == made] == []


def test_only_what_was_in_trouble_when_the_plan_was_made_is_accepted():
    waived = make_check(subject="live", level=Level.WARN, counts_as=Level.WARN, accepted=True)
    plan = make_plan([make_row("live"), make_row("idle")], checks=(waived,))
    assert plan.accepted(waived.check, "live") and not plan.accepted(waived.check, "idle")
    assert not plan.accepted("another-check", "live") and plan.is_clean()


def test_a_plan_with_a_blocked_row_and_one_of_nothing_are_not_clean_but_an_undo_of_nothing_is():
    plan = make_plan([make_row("b"), make_row("b", partition=1, decision=Decision.BLOCK), make_row("g")])
    assert plan.blocked_groups() == {"b"} and not plan.is_clean()
    assert {group: len(rows) for group, rows in plan.groups().items()} == {"b": 2, "g": 1}
    assert make_plan([]).is_empty and not make_plan([]).is_clean()
    assert make_plan([], kind=UNDO).is_clean() and make_plan([], kind="rules").is_clean()
    with pytest.raises(UsageError, match="holds rules for `rules`, and apply is for rows"):
        refuse_rules(make_plan([], kind="rules"), "apply")


def test_a_block_of_a_cluster_is_of_the_cluster_alone():
    whole = make_check("clusters-differ", "B", scope=Scope.CLUSTER)
    group = make_check("share-group", "shared", scope=Scope.GROUP)
    waived = replace(whole, level=Level.WARN, counts_as=Level.WARN, accepted=True)
    plan = make_plan([make_row()], checks=(group, whole))
    assert plan.cluster_blocks() == (whole,) and plan.blocks_without_rows() == (group,)
    assert make_plan([make_row()], checks=(group, waived)).cluster_blocks() == ()


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


EXACT = {"grade": Grade.EXACT}


def compared(*rows):
    return compare_with_mm2(GroupRows.of_rows(rows))


def test_a_checkpoint_is_behind_beyond_or_equal_and_skips_only_where_the_row_is_proven_the_best():
    mm2 = compared(
        make_row(partition=0, target_offset=650, checkpoint_target_offset=560),
        make_row(partition=1, target_offset=650, checkpoint_target_offset=655),
        make_row(partition=2, target_offset=650, checkpoint_target_offset=657, **EXACT),
        make_row(partition=3, target_offset=960, checkpoint_target_offset=961, **EXACT),
        make_row(partition=4, target_offset=650, checkpoint_target_offset=650),
        make_row(partition=5, checkpoint_target_offset=None),
        # What was chosen, or is not there, is not compared.
        make_row(partition=6, method=Method.EXPLICIT, grade=None),
        make_untranslated(Decision.BLOCK, "no-checkpoint", partition=7),
    )
    assert (mm2.behind_rows, mm2.behind_records) == (1, 90)
    assert (mm2.beyond_rows, mm2.beyond_records) == (2, 6), "at the log's end there is none to skip"
    assert (mm2.skipping_rows, mm2.skipping_records) == (1, 7)
    assert (mm2.equal_rows, mm2.absent_rows, mm2.compared_rows) == (1, 1, 5)


@pytest.mark.parametrize(("offset", "checkpointed"), [(640, 121), (650, 121), (657, 121), (657, 120), (657, 119)])
def test_a_checkpoint_of_a_later_commit_than_the_plan_translates_is_not_compared(offset, checkpointed):
    """The group went on after its commit was read, or the commit was set back since the checkpoint."""
    commits = {"source_committed": 120, "checkpoint_source_offset": checkpointed}
    mm2 = compared(make_row(**commits, checkpoint_target_offset=offset, target_offset=650, **EXACT))
    later = int(checkpointed > 120)
    assert (mm2.other_commit_rows, mm2.compared_rows, mm2.skipping_rows) == (later, 1 - later, 1 - later)


def test_no_commit_is_silently_absent():
    counts = {"commits_read": 5, "rows": 2, "uncommitted_added": 1, "filtered:group": 4}
    plan = make_plan([make_row(partition=0), make_row(partition=1)], counts=counts)
    assert totals(plan).add_up and totals(plan).filtered == {"group": 4}
    assert not totals(make_plan(plan.rows, counts=counts | {"commits_read": 6})).add_up


def test_a_group_with_a_blocked_row_is_not_one_to_write_and_an_undo_rewinds_by_its_nature():
    rows = [make_row("a", target_prior=700), make_row("b"), make_row("b", partition=1, decision=Decision.BLOCK)]
    counted = totals(make_plan(rows))
    assert (counted.groups, counted.groups_to_write, counted.groups_blocked) == (2, 1, 1)
    assert counted.rewinding_rows == 1 and totals(make_plan(rows, kind="undo")).rewinding_rows == 0


ROW, OTHER = make_row(), make_row(partition=1)
BEYOND = make_row(source_committed=1200, rereads_at_most=3, rereads_estimate=None, grade=Grade.BOUNDED)
LEFT = make_untranslated(Decision.SKIP, "no-checkpoint", partition=1, source_committed=None)
UNKNOWN = make_row(partition=1, source_log_end=None, rereads_at_most=None, rereads_estimate=None)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([ROW], (300, 12, "~")),
        ([LEFT], (None, None, "")),
        ([ROW, LEFT], (300, 12, "~")),
        # What one row does not know is not known of the group.
        ([ROW, UNKNOWN], (None, None, "~")),
        # A commit beyond the end is no negative lag.
        ([BEYOND], (0, 3, "<=")),
        ([BEYOND, OTHER], (300, 15, "~")),
    ],
)
def test_a_groups_lag_and_re_reads_are_sums_of_all_that_counts_or_not_known_and_a_guess_is_marked(rows, expected):
    counted = group_totals(GroupRows.of_rows(rows))
    assert (counted.lag, counted.rereads, counted.sign) == expected


TIMINGS = {"reach": 1.0, "commits": 2.0, "states": 2.0, "pin": 1.0, "compare": 60.0, "settle": 15.0}


def test_plan_takes_what_it_took_and_the_others_what_they_read_again_and_write_which_a_small_plan_does_not_tell():
    told = forecast(make_plan([make_row()], timings=TIMINGS))
    assert told is not None
    assert (told.plan_seconds, told.apply_seconds, told.verify_seconds) == (82.0, 14.0, 4.0)
    assert told.text == "plan about 82 s"
    assert replace(told, offsets=1000).text == "plan about 82 s, apply about 14 s, verify about 4 s"
    assert forecast(make_plan([make_row()], timings={})) is None, "an undo has none"
    # What is blocked in a rehearsal is written on the night.
    rows = [
        make_row("a"), make_row("b", decision=Decision.BLOCK, reason="source-group-stopped"),
        make_row("c", decision=Decision.KEEP, reason="already-there"),
        make_untranslated(Decision.BLOCK, "target-topic-missing", "d"),
    ]  # fmt: skip
    told = forecast(make_plan(rows, timings=TIMINGS))
    assert told is not None and (told.offsets, told.groups) == (2, 2)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-3, "0 s"), (99.4, "99 s"), (100, "1 min 40 s"), (605, "10 min"), (3599, "59 min"), (6000, "1 h 40 min"),
     (7200, "2 h"), (172800, "2 d"), (190000, "2 d 4 h")],
)  # fmt: skip
def test_spans_of_time_are_told_in_two_units_at_most(seconds, text):
    assert duration_text(seconds) == text
