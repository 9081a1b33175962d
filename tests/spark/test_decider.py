"""Rows that Spark's tasks decide are those that this process does, also where workers and whole jobs die."""

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Event, Lock
from types import SimpleNamespace

import pytest

from migrate.plan.build import plan_of
from migrate.plan.decide import Undecided, decide, undecided
from migrate.row_table import PlanRows
from migrate.spark.decider import SparkDecider, decided_in_tasks, parts_of
from migrate.spark.session import spark_session
from tests.randomsurveys import KINDS, random_survey
from tests.spark.processes import stop_running_spark

NOW = 1_800_000_000_000
TRIES = 3


@pytest.fixture(scope="module")
def spark():
    # The one that other files share tries no task again.
    stop_running_spark()
    yield spark_session(f"local[2,{TRIES}]")
    stop_running_spark()


class InTasks:
    """Decides what is not usual in tasks, a few rows in each."""

    def __init__(self, spark):
        self.spark = spark

    def decide(self, asked):
        return decided_in_tasks(self.spark, asked, pytest.fail, rows_per_part=40)


@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_that_tasks_have_decided_is_the_same_to_the_byte(spark, kind):
    request, survey = random_survey(1, kind, groups=60)
    here, there = plan_of(request, survey, NOW), plan_of(request, survey, NOW, InTasks(spark))
    assert len(here.rows) == len(survey.keys) > 40 * 3, "several parts"
    assert here.rows == there.rows and here.fingerprint == there.fingerprint and here.header == there.header


class Deadly(dict):
    """Commits on the target that end the process that takes them over, so many times; each leaves a file."""

    def __init__(self, deaths: Path, times: int) -> None:
        self.deaths, self.times = deaths, times

    def __reduce__(self):
        return end_process, (str(self.deaths), self.times)


def end_process(folder: str, times: int) -> dict:
    for number in range(times):
        with suppress(FileExistsError):
            Path(folder, str(number)).touch(exist_ok=False)
            os._exit(1)
    return {}


@pytest.mark.parametrize("times", [1, TRIES])
def test_rows_are_the_same_where_a_worker_dies_and_where_all_that_try_do(spark, tmp_path, times):
    asked = undecided(*random_survey(2, "mixed", groups=60))
    cases = list(asked.groups)
    cases[3] = replace(cases[3], priors={})
    here = PlanRows(decide(replace(asked, groups=cases)))
    cases[3] = replace(cases[3], priors=Deadly(tmp_path, times))
    told: list[str] = []
    there = PlanRows(decided_in_tasks(spark, replace(asked, groups=cases), told.append, rows_per_part=40))
    assert here == there
    assert len(told) == (times == TRIES), told
    assert all("Python worker exited unexpectedly" in why for why in told)
    assert len(list(tmp_path.iterdir())) == times, "as often as a worker died"


class LostSpark:
    """A context whose jobs fail one after another; counts them."""

    def __init__(self) -> None:
        self.jobs, self.defaultParallelism, self.sparkContext, self.turn = 0, 1, self, Lock()

    def parallelize(self, parts, count):
        self.jobs += 1
        return self

    def map(self, function):
        return self

    def collect(self):
        with self.turn:
            Event().wait(0.05)
            raise ConnectionRefusedError("the JVM is gone")


def test_a_spark_that_is_lost_is_not_asked_for_wave_after_wave(monkeypatch):
    monkeypatch.setattr("migrate.spark.decider.ship_package", lambda session: None)
    asked, lost, told = undecided(*random_survey(6, "no-match", groups=200)), LostSpark(), []
    here = PlanRows(decide(undecided(*random_survey(6, "no-match", groups=200))))
    assert PlanRows(decided_in_tasks(lost, asked, told.append, rows_per_part=10)) == here
    assert lost.jobs <= 3 and 1 <= len(told) <= lost.jobs, "two waves are under way at most"
    assert set(told) == {"the JVM is gone"}


def test_parts_hold_every_group_once_and_in_order_and_do_not_grow_with_the_plan():
    asked = undecided(*random_survey(3, "usual", groups=100))
    cases = list(asked.groups)
    parts = list(parts_of(Undecided(asked.rules, asked.partitions, asked.checkpoints, cases), 50))
    assert [case for part in parts for case in part.groups] == cases
    most = max(len(case.commits) for case in cases)
    assert all(sum(len(case.commits) for case in part.groups) < 50 + most for part in parts)


@pytest.mark.parametrize(
    ("master", "rows", "takes"),
    [
        ("spark://there:7077", 10, True),
        ("spark://there:7077", 9, False),
        ("local[*]", 10, False),
        ("yarn", 1_000, True),
    ],
)
def test_many_rows_go_to_a_cluster_and_all_others_stay_here(master, rows, takes):
    ended = []
    session = SimpleNamespace(sparkContext=SimpleNamespace(master=master))
    decider = SparkDecider(lambda: session, lambda: ended.append(True), pytest.fail, least_rows=10)
    assert decider.takes(rows) == decider.is_awaited == takes
    if not takes:
        asked = undecided(*random_survey(4, "usual"))
        cases = list(asked.groups)
        asked = replace(asked, groups=cases)
        assert list(map(list, decider.decide(asked))) == list(map(list, decide(asked)))
        assert not ended, "who does not need it has not kept it either"


def test_the_session_lasts_until_the_last_row_and_ends_then(spark, monkeypatch):
    ended = []
    monkeypatch.setattr("migrate.spark.decider.is_local", lambda master: False)
    monkeypatch.setattr("migrate.spark.decider.ship_package", lambda session: None)
    decider = SparkDecider(lambda: spark, lambda: ended.append(True), pytest.fail, least_rows=1)
    request, survey = random_survey(5, "no-match", groups=30)
    assert decider.takes(len(survey.keys))
    rows = iter(decider.decide(undecided(request, survey)))
    first = next(rows)
    assert not ended
    assert PlanRows([first, *rows]) == PlanRows(decide(undecided(request, survey))) and ended == [True]
