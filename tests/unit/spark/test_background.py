"""Spark's start beside the first questions: how it starts is said once, and nobody starts what nobody wants."""

from threading import Event
from types import SimpleNamespace

import pytest

from migrate.errors import EnvironmentLacks
from migrate.spark import background
from migrate.spark.background import background_spark


@pytest.fixture
def started(monkeypatch):
    """Sessions that would have been started: how small, and whether they record."""
    sessions = []

    def start(master, conf, small, records, machine_up):
        sessions.append((small, records))
        machine_up("the JVM")
        return SimpleNamespace(_jvm="the JVM")

    monkeypatch.setattr(background, "spark_session", start)
    for name in ("stop_session", "stop_spark", "refuse_lacking"):
        monkeypatch.setattr(background, name, lambda *words, **named: None)
    return sessions


def test_a_start_is_quick_unless_it_is_said_otherwise_and_may_keep_its_classes(started):
    with background_spark(None, {}) as session:
        session()
    with background_spark(None, {}, small=False) as session:
        session()
    assert started == [(True, True), (False, True)]


def test_a_spark_whose_executors_lack_something_is_stopped_and_says_so_to_whoever_needs_it(started, monkeypatch):
    def refuse(session):
        raise EnvironmentLacks("no confluent-kafka on h1", "install it")

    stopped = []
    monkeypatch.setattr(background, "refuse_lacking", refuse)
    monkeypatch.setattr(background, "stop_session", stopped.append)
    with pytest.raises(EnvironmentLacks, match="on h1"), background_spark(None, {}, compares=True) as session:
        session()
    assert len(started) == len(stopped) == 1


def test_the_jvm_can_be_used_while_its_session_is_still_starting(monkeypatch, started):
    go_on = Event()

    def start(master, conf, small, records, machine_up):
        machine_up("the JVM")
        assert go_on.wait(60)
        return SimpleNamespace(_jvm="the same JVM, later")

    monkeypatch.setattr(background, "spark_session", start)
    with background_spark(None, {}) as spark:
        assert spark.machine() == "the JVM"
        go_on.set()
        spark()
        assert spark.machine() == "the JVM"

    def lacks(*words, **named):
        raise EnvironmentLacks("no Java", "install it")

    monkeypatch.setattr(background, "spark_session", lacks)
    with pytest.raises(EnvironmentLacks, match="no Java"), background_spark(None, {}) as spark:
        spark.machine()


def test_spark_ends_as_soon_as_nobody_needs_it_and_keeps_classes_where_all_went_well(started, monkeypatch):
    ended = []
    monkeypatch.setattr(background, "stop_spark", lambda session: ended.append("Spark"))
    monkeypatch.setattr(background, "stop_session", lambda session, keep_classes=False: ended.append(keep_classes))
    with background_spark(None, {}, compares=True) as spark:
        spark()
        spark.end_session()
        spark.end()
    assert ended[:2] == ["Spark", True]
    ended.clear()
    with pytest.raises(ZeroDivisionError), background_spark(None, {}, compares=True) as session:
        session()
        raise ZeroDivisionError
    assert ended == [False]
    ended.clear()
    with background_spark(None, {}, compares=True) as session:
        session()
    assert ended[0] is True
