"""What is raised while a JVM is asked: one error of ours, which says how the JVM ended if it did."""

import subprocess
import sys
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkContext

from migrate.spark.dead_jvm import LostMachine, asking_machine, needing_machine


@pytest.fixture
def killed_jvm(monkeypatch):
    """A process in the place of the JVM that we launched, killed."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    process.kill()
    process.wait()
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=process))


@pytest.mark.parametrize("error", [ConnectionResetError("reset"), Py4JNetworkError("gone"), Py4JError("gone")])
def test_a_jvm_that_was_killed_is_said_to_be_so_whether_it_was_asked_or_needed(killed_jvm, error):
    for asked in (asking_machine, needing_machine):
        with pytest.raises(LostMachine, match="ended by SIGKILL, before it had answered") as raised, asked():
            raise error
        assert raised.value.__cause__ is error


def test_a_broken_connection_behind_another_error_counts_too(killed_jvm):
    with pytest.raises(LostMachine, match="SIGKILL"), needing_machine():
        raise ValueError("what came of it") from ConnectionRefusedError()


def test_an_error_that_has_nothing_to_do_with_the_jvm_stays_what_it_is(killed_jvm):
    for asked in (asking_machine, needing_machine):
        with pytest.raises(ValueError, match="ours"), asked():
            raise ValueError("ours")


def test_while_the_jvm_runs_what_py4j_raises_is_a_failure_of_the_client_it_was_asked_through():
    with pytest.raises(LostMachine, match=r"Kafka's Java client failed: reset\."), asking_machine():
        raise ConnectionResetError("reset")
    with pytest.raises(ConnectionResetError), needing_machine():
        raise ConnectionResetError("reset")
