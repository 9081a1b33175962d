"""The JVM of Kafka's Java client: a start that failed is not held against it for ever."""

from contextlib import closing

import pytest

from migrate.errors import EnvironmentLacks
from migrate.spark import java_admin
from migrate.spark.java_admin import JavaMachine
from tests.fakes import NoProgress


def test_a_start_that_failed_is_told_and_tried_again_when_it_is_asked_for_again(monkeypatch):
    """A disk that was full for a minute would keep `follow` from groups with metadata for as long as it runs."""
    starts = []

    def start():
        starts.append(True)
        if len(starts) == 1:
            raise EnvironmentLacks("No space is left.", "Make some.")
        return "a machine"

    monkeypatch.setattr(java_admin, "java_machine", start)
    monkeypatch.setattr(java_admin, "stop_java_machine", lambda: None)
    with closing(JavaMachine(NoProgress(), False)) as machine:
        with pytest.raises(EnvironmentLacks, match="No space"):
            machine.jvm()
        assert machine.jvm() == machine.jvm() == "a machine" and len(starts) == 2
