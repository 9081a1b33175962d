"""The JVM of Kafka's Java client: a start that failed is not held against it for ever."""

from contextlib import closing

import pytest

from migrate.errors import EnvironmentLacks
from migrate.spark import java_admin
from migrate.spark.java_admin import JavaMachine
from tests.fakes import NoProgress


def test_a_start_that_failed_is_told_at_once_and_tried_again_after_a_while(monkeypatch):
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
        for _ in range(3):
            with pytest.raises(EnvironmentLacks, match="No space"):
                machine.jvm()
        assert len(starts) == 1
        monkeypatch.setattr(java_admin, "RETRY_SECONDS", 0.0)
        assert machine.jvm() == machine.jvm() == "a machine" and len(starts) == 2
