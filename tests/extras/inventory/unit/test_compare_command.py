"""What `groups compare` prints and exits with: the loss comes first, no name is obeyed, nothing unseen looks fine."""

import csv
import json
from contextlib import contextmanager
from io import StringIO

import pytest

from migrate.extras.inventory import compare_command as compare
from migrate.extras.inventory.compare import CompareVerdict, GroupComparison, Loss
from migrate.extras.inventory.compare_command import CompareSession
from migrate.extras.inventory.compare_text import (
    CompareView,
    comparison_csv,
    comparison_document,
    comparison_lines,
    verdict_text,
)
from migrate.match.protocol import Matched, Why
from migrate.model import CheckResult, Grade, Level, Scope
from migrate.survey.survey import Clusters
from migrate.text import Colour
from tests.extras.inventory.unit.comparedscene import ThirdsLog, row
from tests.extras.inventory.unit.inventoryscene import compare_form
from tests.fakes import FakeComparer
from tests.unit.commands import clusters as cluster_words
from tests.unit.commands import run
from tests.unit.planscene import world


@pytest.fixture
def target(monkeypatch):
    """The target of a world in which every group is where it belongs; its log has a record at every third offset."""
    source, target, mirror = world()
    for group, topic, partition, offset in (("g", "A.t", 0, 55), ("g", "A.t", 1, 60), ("h", "A.u", 0, 100)):
        target.commit(group, topic, partition, offset)

    @contextmanager
    def edges(flow, clock, options):
        comparer = None if options.no_match else FakeComparer({("u", 0, 100): Matched(100, Why.PROVEN, 0)})
        clusters = Clusters(source, target, mirror, comparer)
        yield CompareSession(clusters, None if options.no_match else ThirdsLog(), lambda: 7 if options.no_match else 0)

    monkeypatch.setattr(compare, "compare_session", edges)
    return target


@pytest.fixture
def typed(target, tmp_path):
    """Type `groups compare`; return what it prints (a document, rows of CSV or the table), its exit code and stderr."""

    def type_(*options, form="json"):
        ran = run("groups", "compare", *cluster_words(tmp_path), "--format", form, *options, COLUMNS="200")
        read = {"json": json.loads, "csv": lambda text: list(csv.DictReader(StringIO(text))), "table": str}[form]
        return read(ran.stdout), ran.exit_code, ran.stderr

    return type_


def test_all_equal_exits_0_and_a_group_ahead_1_and_the_forms_say_the_same(target, typed):
    document, code, _ = typed()
    assert code == 0 and document["counts"] == {"equal": 3} and document["beyond"] == 0
    target.commit("g", "A.t", 0, 90)
    document, code, _ = typed("--within", "1000")
    assert code == 1 and document["counts"] == {"ahead": 1, "equal": 2} and document["beyond"] == 1
    table, code, _ = typed(form="table")
    assert code == 1 and "NOT EQUAL: 1 of 3 commits of 2 groups; 1 LOSE RECORDS" in table
    rows, code, _ = typed(form="csv")
    assert code == 1 and [(row["group"], row["verdict"]) for row in rows] == [
        ("g", "ahead"), ("g", "equal"), ("h", "equal"),
    ]  # fmt: skip
    beside = typed("--no-match", form="csv")[2]
    assert "Records were not compared" in beside and "7 records" in beside


def test_behind_is_counted_in_records_and_let_pass_by_within(target, typed):
    target.commit("h", "A.u", 0, 91)
    document, code, _ = typed("--within", "3")
    (behind,) = [row for row in document["rows"] if row["verdict"] == "behind"]
    assert (behind["difference"], behind["difference_is_records"], behind["beyond"], code) == (-3, True, False, 0)
    assert typed("--within", "2")[1] == typed()[1] == 1


def test_a_renamed_group_is_compared_under_its_name_there_and_the_old_one_is_told(target, typed, tmp_path):
    target.offsets["g-eu"] = target.offsets.pop("g")
    target.states["g-eu"] = target.states.pop("g")
    (tmp_path / "names.csv").write_text("source_group,target_group\ng,g-eu\n")
    renamed = ("--group-map", str(tmp_path / "names.csv"))
    document, code, _ = typed()
    assert code == 1 and document["counts"] == {"equal": 1, "missing-on-target": 2, "only-on-target": 2}
    target.commit("g", "A.t", 0, 99)
    document, code, _ = typed(*renamed)
    assert code == 0 and document["counts"] == {"equal": 3}
    assert ("group-under-old-name", "g") in [(p["check"], p["subject"]) for p in document["premises"]]
    for rows in (document["rows"], typed(*renamed, form="csv")[0]):
        assert {(row["group"], row["target_group"]) for row in rows} == {("g", "g-eu"), ("h", "")}
    target.commit("g-eu", "A.t", 0, 90)
    assert "\ng -> g-eu  t " in typed(*renamed, form="table")[0]


def test_behind_another_replicator_records_alone_say_what_is_equal(target, typed):
    """MM2's offset syncs, which lie there too, are of another copy: without records each row is a guess."""
    others = ("--replicator", "any", "--replication-policy", "default")
    document, code, _ = typed(*others)
    assert code == 0 and document["counts"] == {"equal": 3}
    document, code, _ = typed("--no-match", *others)
    assert code == 1 and document["counts"] == {"undecided": 3}
    assert {(row["translated"], row["grade"]) for row in document["rows"]} == {(0, "estimated")}


EVIL = "evil\x1b[2J,=cmd"
TIME = 1_700_000_000_000
ROWS = (
    row(),
    row("billing", CompareVerdict.BEHIND, partition=1, target_committed=48, difference=-12, rereads_at_most=12,
        sentence="From the commit to the translated offset it is 12 records, to be read again; none is lost."),
    row(
        "crm", CompareVerdict.AHEAD, target_committed=65, difference=5, loss=Loss.LIKELY, rereads_at_most=None,
        sentence="The record at the translated offset is owed, and has no later copy: the commit is past it. A group "
        "that starts there loses it and what it is owed up to the commit.",
    ),
    row(
        EVIL, CompareVerdict.UNDECIDED, grade=Grade.BOUNDED, target_committed=63, difference=3,
        difference_is_records=False, loss=Loss.POSSIBLE, reason="above-lower-bound",
        sentence="60 is a lower bound (bounded): the group's place is there or above it.",
    ),
    row(
        "gone", CompareVerdict.MISSING, target_committed=None, difference=None, difference_is_records=False,
        loss=Loss.POSSIBLE, rereads_at_most=None, sentence="The target has no commit.",
    ),
    row(
        "stranger", CompareVerdict.ONLY_ON_TARGET, source_committed=None, translated=None, difference=None,
        difference_is_records=False, grade=None, loss=Loss.POSSIBLE, rereads_at_most=None,
        sentence="The source has no such commit.",
    ),
)  # fmt: skip
PREMISE = CheckResult(
    "listing-complete", Level.BLOCK, Scope.CLUSTER, "A", "the right DESCRIBE", "it is missing", "Grant it.", False,
    Level.BLOCK,
)  # fmt: skip


def comparison(*rows, premises=(), unstable=()):
    return GroupComparison(TIME, "A", "B", rows or ROWS, premises, frozenset(unstable))


def text(made, within=0, width=100, **view):
    return "\n".join(comparison_lines(made, CompareView(within, **{"no_match": False} | view), width, False))


FORMS = {
    "80.txt": lambda made: comparison_lines(made, CompareView(0, False), 80, False),
    "160.txt": lambda made: comparison_lines(made, CompareView(0, False), 160, False),
    "json": lambda made: comparison_document(made, CompareView(12, False)),
    "csv": comparison_csv,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_golden_one_and_no_name_in_it_is_obeyed(form):
    compare_form("compare", form, FORMS[form](comparison(*ROWS, premises=(PREMISE,), unstable=("crm",))))


ESTIMATED = row("crm", grade=Grade.ESTIMATED, rereads_at_most=None, loss=Loss.POSSIBLE, reason="not-proven")
BOUNDED = row("crm", grade=Grade.BOUNDED, rereads_at_most=9)
LACKING = row(loss=Loss.POSSIBLE, reason="missing-on-target", sentence="7 records lack.")


@pytest.mark.parametrize(("made", "view", "words"), [
    (comparison(row(), row("crm")), {}, ["EQUAL: 2 commits of 2 groups"]),
    (comparison(row(), ESTIMATED), {},
     ["NOT PROVEN: 1 of 2 commits of 2 groups equal, and may lose records all the same"]),
    (comparison(row(), BOUNDED), {}, ["EQUAL: 2 commits of 2 groups; 1 at a lower bound of their place"]),
    (comparison(LACKING), {}, ["1 whose records MM2 has not all brought over", "7 records lack."]),
    (comparison(row(), ROWS[1]), {"within": 12},
     ["WITHIN 12 records: 2 commits of 1 group, 1 of them behind, none ahead"]),
    (GroupComparison(TIME, "A", "B", (), (), frozenset()), {}, ["NOTHING TO COMPARE"]),
    (comparison(row(), premises=(PREMISE,)), {},
     ["NOT ALL WAS SEEN: EQUAL: 1 commit of 1 group", "listing-complete A: it is missing"]),
    (comparison(row()), {"no_match": True, "unread_syncs": 7},
     ["lower bounds", "7 records at its beginning were not read"]),
])  # fmt: skip
def test_the_verdict_says_no_more_than_was_seen(made, view, words):
    shown = text(made, width=160, **view)
    assert all(each in shown for each in words)


def test_only_equal_commits_that_lose_nothing_are_green_and_are_no_table():
    assert "GROUP" not in text(comparison(row(), row("crm")))
    assert verdict_text(comparison(row()), 0)[1] is Colour.GREEN
    assert verdict_text(comparison(row(), BOUNDED), 0)[1] is Colour.YELLOW


def test_many_rows_are_cut_off_with_their_number():
    many = [row(f"g{n}", CompareVerdict.BEHIND, difference=-1) for n in range(230)]
    assert "and 30 more; --format json and csv have every row" in text(comparison(*many))
