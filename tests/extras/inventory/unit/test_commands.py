"""What the `groups` commands print and exit with, over a cluster in memory, and as they are typed."""

import csv
import json
import os
import shlex
import signal
import subprocess
import sys
from dataclasses import replace
from io import StringIO
from types import SimpleNamespace

import pytest

from migrate.cli.console import Ended, Terminal
from migrate.cli.options import OnOneCluster, ReachedClusters
from migrate.extras.inventory import commands as inventory
from migrate.watch import Freshness, Glance, Waiting
from tests.extras.inventory.unit.inventoryscene import DENIED, FakeGroups, commits
from tests.fakes import NoProgress
from tests.unit.commands import clusters, run, run_in_flow
from tests.unit.describedgroups import group, member

LOOK, SCREEN, NOWHERE = inventory.LookOptions(), Terminal(columns=lambda: 80), ReachedClusters()


@pytest.fixture
def cluster(monkeypatch):
    made = FakeGroups(
        {"billing": group(), "crm": group()},
        committed={"billing": commits(pay_0=90), "crm": commits(pay_0=1)},
        partitions={"pay": 1},
    )
    monkeypatch.setattr(OnOneCluster, "endpoint", lambda self, flow: SimpleNamespace(admin=lambda: made))
    return made


def printed(run, options, progress=None) -> tuple[str, int]:
    lines: list[str] = []
    code = run(options, None, progress or NoProgress(), replace(SCREEN, show=lines.extend))
    return "\n".join(lines), code


def listed(exclude=(), records=False, idle=None, stalled=None, **look) -> tuple[str, int]:
    options = inventory.ListOptions(
        clusters=NOWHERE, filters=inventory.FilterOptions(exclude_groups=exclude), records=records, idle=idle,
        stalled=stalled, look=replace(LOOK, **look),
    )  # fmt: skip
    return printed(inventory.run_list, options)


def described(*names, all_groups=False, progress=None, **look) -> tuple[str, int]:
    options = inventory.DescribeOptions(
        names=names, all_groups=all_groups, clusters=NOWHERE, look=replace(LOOK, **look)
    )
    return printed(inventory.run_describe, options, progress)


def test_list_exits_0_where_all_was_read_and_1_where_not(cluster):
    assert listed()[1] == 0
    cluster.committed["crm"] = DENIED
    text, code = listed()
    assert code == 1 and "crm: GROUP_AUTHORIZATION_FAILED" in text
    assert listed(exclude=("crm",))[1] == 0
    cluster.may_describe = False
    assert listed(exclude=("crm",))[1] == 1


def test_list_reads_the_groups_own_records_only_if_it_is_asked_for_them(cluster):
    listed()
    assert "group_records" not in cluster.calls
    for asks in ({"records": True}, {"idle": 1}):
        cluster.calls.clear()
        listed(**asks)
        assert "group_records" in cluster.calls
    cluster.records = DENIED
    text, code = listed(records=True)
    assert code == 1 and "billing, crm: GROUP_AUTHORIZATION_FAILED" in text


def test_list_looks_twice_for_groups_that_have_stalled(cluster):
    cluster.consumers["billing"] = group(member(pay=(0,)))
    text, code = listed(stalled=1, form="csv")
    rows = {row["group"]: row for row in csv.DictReader(StringIO(text))}
    assert code == 0 and cluster.calls.count("commits") == 2
    assert {name: row["stalled_partitions"] for name, row in rows.items()} == {"billing": "1", "crm": "0"}


def test_describe_exits_1_for_a_group_that_is_not_there(cluster):
    text, code = described("billing")
    assert code == 0 and "billing" in text and "crm" not in text and "filter" not in text
    text, code = described("billing", "nobody")
    assert code == 1 and "nobody: no group on A has this name" in text


@pytest.mark.parametrize("form", ["csv", "json"])
def test_describe_says_beside_csv_which_groups_are_there_without_a_line_and_what_was_not_read(cluster, form):
    cluster.consumers |= {"idle": group(), "console-consumer-7": group()}
    cluster.committed["crm"] = DENIED
    said = []
    progress = SimpleNamespace(say=said.append, step=lambda text: None, advance=lambda done, total: None)
    text, code = described(all_groups=True, form=form, progress=progress)
    assert code == 1 and "billing" in text
    if form == "csv":
        assert "2 groups have no line: nothing committed or assigned. console-consumer-7, idle" in said
        assert "crm: GROUP_AUTHORIZATION_FAILED: not authorized" in " ".join(said)
    else:  # all groups are those too that plans leave out
        document = json.loads(text)
        assert [found["group"] for found in document["groups"]] == ["billing", "console-consumer-7", "crm", "idle"]
        assert document["filtered"] == {} and not said


def test_waves_are_written_and_exit_1_where_a_group_could_not_be_read_or_named(cluster, tmp_path):
    def waves(folder):
        (tmp_path / folder).mkdir()
        options = inventory.WavesOptions(clusters=NOWHERE, max_groups=1, by="prefix [a-z]", out_dir=tmp_path / folder)
        return inventory.run_waves(options, None, NoProgress(), SCREEN)

    lines, code = waves("one")
    assert code == 0 and sorted(path.name for path in (tmp_path / "one").iterdir()) == ["wave1.txt", "wave2.txt"]
    assert "high_watermarks" not in cluster.calls and any("wave2.txt" in line for line in lines)
    cluster.committed["crm"] = DENIED
    assert waves("two")[1] == 1
    cluster.consumers[" odd"] = group()
    cluster.committed |= {"crm": {}, " odd": commits(pay_0=1)}
    assert waves("three")[1] == 1


def test_a_watch_without_a_terminal_prints_every_look_and_none_twice(cluster):
    assert listed(watch=True, timeout=0.0)[0].count("Groups on A") == 1
    text, code = listed(watch=True, timeout=0.0, form="json")
    assert code == 0 and len(json.loads(text)["groups"]) == 2


LATE = Freshness(9.0, Waiting("listing groups on A", 7.0))
GONE = Freshness(2.0, None, "A cannot be reached.")
SEEN = ["a look"]


@pytest.mark.parametrize(("glances", "shown", "said"), [
    ([Glance(SEEN, is_tick=False), Glance(SEEN, GONE, f"{GONE.problem} Trying again.", is_tick=False),
      Glance(SEEN, GONE, is_tick=True)], 1, ["A cannot be reached. Trying again.; the last look is 2 s old"]),
    ([Glance(SEEN, LATE, is_tick=False), Glance(SEEN, LATE, is_tick=True)], 0,
     ["NO ANSWER for 7 s: listing groups on A; the last look is 9 s old"]),
    ([Glance(None, LATE, is_tick=False)], 0, ["NO ANSWER for 7 s: listing groups on A"]),
], ids=["failed", "late", "late and nothing seen"])  # fmt: skip
def test_a_watcher_shows_each_look_once_and_says_once_why_no_newer_one_comes(glances, shown, said):
    told, looks = [], []
    teller = inventory.Teller(iter, LOOK, SimpleNamespace(say=told.append), replace(SCREEN, show=looks.append))
    for glance in glances:
        teller(glance)
    assert (looks, told) == ([["a look", ""]] * shown, said)


@pytest.mark.parametrize(("glance", "end", "left"), [
    (Glance(SEEN, Freshness(), is_tick=True), KeyboardInterrupt(), SEEN),
    (Glance(SEEN, GONE, is_tick=False), KeyboardInterrupt(), None),
    (Glance(SEEN, LATE, is_tick=True), KeyboardInterrupt(), None),
    (Glance(None, Freshness(), is_tick=True), KeyboardInterrupt(), None),
    # The exit code says that it was killed, whatever the last look has shown.
    (Glance(SEEN, Freshness(), is_tick=True), Ended(signal.SIGTERM), None),
], ids=["newest", "one that failed", "one that is late", "none", "killed"])  # fmt: skip
def test_ctrl_c_ends_a_watch_with_its_last_look_if_that_is_the_newest_and_a_kill_does_not(glance, end, left):
    progress, screen = SimpleNamespace(say=lambda text: None), replace(SCREEN, show=lambda lines: None)
    teller = inventory.Teller(iter, LOOK, progress, screen)

    def watch():
        teller(glance)
        raise end

    if left is None:
        with pytest.raises(type(end)):
            teller.unless_left(watch)
    else:
        assert teller.unless_left(watch) == left


def test_a_watch_ends_with_the_look_that_nobody_read(cluster, monkeypatch):
    look = replace(LOOK, watch=True, timeout=30.0, form="json")
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes, "w") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        assert inventory.run_list(inventory.ListOptions(clusters=NOWHERE, look=look), None, NoProgress(), SCREEN) == 0
        monkeypatch.undo()
    assert cluster.calls.count("high_watermarks") == 1


@pytest.mark.parametrize(("words", "problem"), [
    ("describe", "Which groups?"),
    ("describe x --all-groups", "Which groups?"),
    ("list --timeout 3", "--timeout says how long to watch"),
    ("list --watch --format csv", "exclude each other"),
    ("list --watch --stalled 1s", "--watch and --stalled exclude each other"),
    ("list --watch --records", "--watch does not go with"),
    ("list --watch --idle 1d", "--watch does not go with"),
    ("list --group (", "not a regular expression"),
    ("waves --by names", "neither topics nor 'prefix REGEX'"),
    ("waves --by 'topics x'", "neither topics nor 'prefix REGEX'"),
    ("waves --by 'prefix ('", "no regular expression"),
    ("waves --out-dir /nowhere/at/all", "There is no folder"),
    ("waves --exclude-topic hub", "No such option"),
    ("compare --by timestamp --no-match", "--by timestamp and --no-match"),
    ("compare --within -1", "x>=0"),
])  # fmt: skip
def test_what_does_not_fit_together_is_wrong_usage(tmp_path, words, problem):
    ran = run("groups", *shlex.split(words), *clusters(tmp_path))
    assert ran.exit_code == 2 and problem in ran.output and "Traceback" not in ran.output


@pytest.mark.parametrize("words", [
    ("list",), ("describe", "--all-groups"), ("describe", "x"), ("waves",), ("compare", "--no-match"),
    ("list", "--side", "target"),
])  # fmt: skip
def test_a_cluster_that_does_not_answer_is_one_paragraph_and_exit_1(tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    ran = run("groups", *words, *clusters(tmp_path), "--request-timeout", "0.5")
    asked = "target B" if {"target", "compare"} & {*words} else "source A"
    assert ran.exit_code == 1 and f"{asked} (127.0.0.1:1) cannot be reached" in ran.output
    assert "Traceback" not in ran.output and not list(tmp_path.glob("wave*.txt"))


def test_waves_of_an_earlier_day_are_refused_before_anybody_is_asked(tmp_path):
    (tmp_path / "wave3.txt").write_text("billing\n")
    ran = run("groups", "waves", "--out-dir", str(tmp_path), *clusters(tmp_path))
    assert ran.exit_code == 3 and "not overwritten" in ran.output and "cannot be reached" not in ran.output


TEXT = [("list",), ("compare",), ("waves",)]
DATA = [("describe", "g", "--format", "json"), ("compare", "--format", "csv")]


@pytest.mark.parametrize("words", [*TEXT, *DATA], ids=" ".join)
def test_every_command_takes_its_clusters_from_a_flow_and_says_first_which_it_is(tmp_path, monkeypatch, words):
    ran, asked = run_in_flow(tmp_path, monkeypatch, "groups", *words)
    assert ran.exit_code == 1
    assert [(str(o.mm2_config), o.source, o.target) for o in asked] == [("mm2.properties", "A", "B")]
    shown, silent = (ran.stderr, ran.stdout) if words in DATA else (ran.stdout, "")
    assert shown.startswith("Flow eu of flows.yaml: A -> B.") and not silent


def test_no_command_loads_spark_before_it_needs_it():
    named = "migrate.extras.inventory.commands, migrate.extras.inventory.compare_command"
    code = f"import sys, {named}; sys.exit(bool(sys.modules.keys() & {{'pyspark', 'py4j'}}))"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
