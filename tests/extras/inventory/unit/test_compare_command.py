"""What `groups compare` prints and exits with, over two clusters in memory."""

import csv
import json
from contextlib import contextmanager
from io import StringIO

import pytest

from migrate.cli.choices import MovedGroupOptions
from migrate.cli.console import Terminal
from migrate.cli.options import ReachedClusters
from migrate.extras.inventory import compare_command as compare
from migrate.extras.inventory.compare_command import CompareSession
from migrate.match.protocol import Matched, Why
from migrate.mm2.config_file import client_flow
from migrate.survey.survey import Clusters
from tests.extras.inventory.unit.comparedscene import ThirdsLog
from tests.fakes import FakeComparer, NoProgress
from tests.unit.commands import clusters as cluster_words
from tests.unit.commands import run
from tests.unit.planscene import world

PROPERTIES = {"bootstrap.servers": "x:1"}
FLOW = client_flow(PROPERTIES, PROPERTIES, "A", "B")


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


class Saying(NoProgress):
    """Keeps what is said beside the output."""

    def __init__(self):
        self.said = []

    def say(self, line):
        self.said.append(line)


def printed(progress=None, form="json", no_match=False, group_map=None, **options):
    lines: list[str] = []
    options = compare.CompareOptions(
        clusters=ReachedClusters(), groups=MovedGroupOptions(group_map=group_map),
        matching=compare.MatchingOptions(match_limit=1000, no_match=no_match), form=form, **options,
    )  # fmt: skip
    terminal = Terminal(columns=lambda: 100, show=lines.extend)
    code = compare.run_compare(options, FLOW, progress or Saying(), terminal)
    text = "\n".join(lines)
    return (json.loads(text) if form == "json" else text), code


def test_all_equal_exits_0_and_a_group_ahead_1(target):
    document, code = printed()
    assert code == 0 and document["counts"] == {"equal": 3} and document["beyond"] == 0
    target.commit("h", "A.u", 0, 95)
    assert printed()[1] == 1
    target.commit("g", "A.t", 0, 90)
    document, code = printed(within=1000)
    assert code == 1 and document["counts"] == {"ahead": 1, "behind": 1, "equal": 1} and document["beyond"] == 1


def test_behind_is_counted_in_records_and_let_pass_by_within(target):
    target.commit("h", "A.u", 0, 91)
    document, code = printed(within=3)
    (behind,) = [row for row in document["rows"] if row["verdict"] == "behind"]
    assert (behind["difference"], behind["difference_is_records"], behind["beyond"], code) == (-3, True, False, 0)
    assert printed(within=2)[1] == 1


@pytest.fixture
def renamed(target, tmp_path):
    """The same world, in which `g` is `g-eu` on the target and stands where it belongs; the options that say so."""
    target.offsets["g-eu"] = target.offsets.pop("g")
    target.states["g-eu"] = target.states.pop("g")
    (tmp_path / "names.csv").write_text("source_group,target_group\ng,g-eu\n")
    return {"group_map": tmp_path / "names.csv"}


def test_a_renamed_group_is_compared_under_its_name_there(target, renamed):
    document, code = printed(**renamed)
    assert code == 0 and document["counts"] == {"equal": 3}
    assert {(row["group"], row["target_group"]) for row in document["rows"]} == {("g", "g-eu"), ("h", "")}
    without, code = printed()
    assert code == 1 and without["counts"] == {"equal": 1, "missing-on-target": 2, "only-on-target": 2}


def test_an_old_name_that_the_target_has_as_well_is_told_and_changes_no_verdict(target, renamed):
    target.commit("g", "A.t", 0, 99)
    document, code = printed(**renamed)
    assert code == 0 and document["counts"] == {"equal": 3}
    assert ("group-under-old-name", "g") in [(p["check"], p["subject"]) for p in document["premises"]]
    target.commit("g-eu", "A.t", 0, 90)
    assert "\ng -> g-eu  t " in printed(form="table", **renamed)[0]
    rows = csv.DictReader(StringIO(printed(form="csv", **renamed)[0]))
    assert {(row["group"], row["target_group"]) for row in rows} == {("g", "g-eu"), ("h", "")}


def test_the_forms_say_the_same(target):
    target.commit("g", "A.t", 0, 90)
    (table, code_of_table), (in_csv, code_of_csv) = printed(form="table"), printed(form="csv")
    assert "NOT EQUAL: 1 of 3 commits of 2 groups; 1 LOSE RECORDS" in table and (code_of_table, code_of_csv) == (1, 1)
    rows = csv.DictReader(StringIO(in_csv))
    assert [(row["group"], row["verdict"]) for row in rows] == [("g", "ahead"), ("g", "equal"), ("h", "equal")]
    beside = Saying()
    printed(beside, form="csv", no_match=True)
    assert "Records were not compared" in " ".join(beside.said) and "7 records" in " ".join(beside.said)


def test_behind_another_replicator_records_alone_say_what_is_equal(target, tmp_path):
    """MM2's offset syncs, which lie there too, are of another copy: without records each row is a guess."""
    typed = [*cluster_words(tmp_path), "--replicator", "any", "--replication-policy", "default", "--format", "json"]
    by_records, without = run("groups", "compare", *typed), run("groups", "compare", "--no-match", *typed)
    assert by_records.exit_code == 0 and json.loads(by_records.stdout)["counts"] == {"equal": 3}
    document = json.loads(without.stdout)
    assert without.exit_code == 1 and document["counts"] == {"undecided": 3}
    assert {(row["translated"], row["grade"]) for row in document["rows"]} == {(0, "estimated")}
    target.commit("h", "A.u", 0, 101)
    assert run("groups", "compare", *typed).exit_code == 1
