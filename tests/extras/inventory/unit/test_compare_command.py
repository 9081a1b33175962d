"""What `groups compare` prints and exits with, over two clusters in memory."""

import csv
import json
from contextlib import contextmanager
from io import StringIO

import pytest

from migrate.extras.inventory import compare_command as compare
from migrate.extras.inventory.compare_command import CompareSession
from migrate.match.protocol import Matched, Why
from migrate.survey.survey import Clusters
from tests.extras.inventory.unit.comparedscene import ThirdsLog
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
