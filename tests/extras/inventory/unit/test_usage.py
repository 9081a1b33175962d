"""The `groups` commands as they are typed: what does not fit together, and clusters that do not answer."""

import shlex
import subprocess
import sys

import pytest

from tests.unit.commands import clusters, run, run_in_flow


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
