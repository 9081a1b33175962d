"""Spark's start beside the first questions: how it starts is said once, and nobody starts what nobody wants."""

from threading import Event
from types import SimpleNamespace

import pytest

from migrate.errors import EnvironmentLacks
from migrate.spark import background
from migrate.spark.background import SparkPurpose, Wishes, background_spark


@pytest.fixture
def started(monkeypatch):
    """Sessions that would have been started: how small, whether they record, and what their workers come from."""
    sessions = []

    def start(master, conf, how):
        sessions.append((how.small, how.records, how.daemon))
        how.machine_up("the JVM")
        return SimpleNamespace(_jvm="the JVM")

    monkeypatch.setattr(background, "spark_session", start)
    for name in ("start_workers", "stop_session", "stop_spark", "keep_classes", "refuse_lacking"):
        monkeypatch.setattr(background, name, lambda *words: None)
    return sessions


def wishes():
    return Wishes("a.daemon", lambda: None, {"hush"}, lambda: None)


def test_a_start_without_wishes_is_quick_and_keeps_nothing(started):
    with background_spark(None, {}) as session:
        session()
    assert started == [(True, False, "")]


@pytest.mark.parametrize("small", [True, False])
def test_a_start_waits_until_it_is_said_how(started, small):
    asked = wishes()
    with background_spark(None, {}, asked) as session:
        assert started == []
        asked.settle(SparkPurpose(small, compares=True))
        session()
    assert started == [(small, True, "a.daemon")]


def test_who_needs_the_session_before_gets_one_for_much_that_keeps_nothing(started):
    asked = wishes()
    with background_spark(None, {}, asked) as session:
        session()
        asked.settle(SparkPurpose(is_small=True, compares=True))
    assert started == [(False, False, "a.daemon")]


def test_who_leaves_before_it_is_said_starts_nothing(started):
    with pytest.raises(KeyboardInterrupt), background_spark(None, {}, wishes()):
        raise KeyboardInterrupt
    assert started == []


def test_workers_that_do_not_come_up_hold_up_nobody(started, monkeypatch):
    called, never = Event(), Event()
    monkeypatch.setattr(background, "start_workers", lambda *words: called.set() or never.wait())
    asked = wishes()
    with background_spark(None, {}, asked) as session:
        asked.settle(SparkPurpose(is_small=True, compares=True))
        session()
        assert called.wait(60)
    never.set()


def test_a_plan_that_compares_nothing_starts_no_workers(started, monkeypatch):
    called = []
    monkeypatch.setattr(background, "start_workers", lambda *words: called.append(words))
    asked = wishes()
    with background_spark(None, {}, asked) as session:
        asked.settle(SparkPurpose(is_small=True))
        session()
    assert called == []


def test_a_spark_whose_executors_lack_something_is_stopped_and_says_so_to_whoever_needs_it(started, monkeypatch):
    def refuse(session):
        raise EnvironmentLacks("no confluent-kafka on h1", "install it")

    stopped = []
    monkeypatch.setattr(background, "refuse_lacking", refuse)
    monkeypatch.setattr(background, "stop_session", stopped.append)
    asked = wishes()
    with pytest.raises(EnvironmentLacks, match="on h1"), background_spark(None, {}, asked) as session:
        asked.settle(SparkPurpose(is_small=True, compares=True))
        session()
    assert len(started) == len(stopped) == 1


def test_the_jvm_can_be_used_while_its_session_is_still_starting(monkeypatch, started):
    go_on = Event()

    def start(master, conf, how):
        how.machine_up("the JVM")
        assert go_on.wait(60)
        return SimpleNamespace(_jvm="the same JVM, later")

    monkeypatch.setattr(background, "spark_session", start)
    with background_spark(None, {}) as spark:
        assert spark.machine() == "the JVM"
        go_on.set()
        spark()
        assert spark.machine() == "the JVM"


def test_a_spark_elsewhere_has_its_jvm_with_its_session(monkeypatch, started):
    monkeypatch.setattr(background, "spark_session", lambda *words: SimpleNamespace(_jvm="the session's"))
    with background_spark(None, {}) as spark:
        assert spark.machine() == "the session's"


def test_who_waits_for_a_jvm_is_told_why_spark_does_not_start(monkeypatch, started):
    def start(*words):
        raise EnvironmentLacks("no Java", "install it")

    monkeypatch.setattr(background, "spark_session", start)
    with pytest.raises(EnvironmentLacks, match="no Java"), background_spark(None, {}) as spark:
        spark.machine()


@pytest.mark.parametrize("records", [False, True])
def test_spark_ends_as_soon_as_nobody_needs_it_unless_its_classes_are_to_be_kept(monkeypatch, started, records):
    ended = []
    monkeypatch.setattr(background, "records_classes", lambda: records)
    for name in ("stop_spark", "stop_session", "keep_classes"):
        monkeypatch.setattr(background, name, lambda *words, name=name: ended.append(name))
    with background_spark(None, {}, wishes()) as spark:
        spark()
        spark.end_session()
        spark.end()
    in_time = [] if records else ["stop_spark", "stop_session"]
    assert sorted(ended) == sorted([*in_time, "keep_classes", "stop_session"]) and ended[-1] == "stop_session"


def test_classes_are_kept_after_what_went_well_only(started, monkeypatch):
    kept = []
    monkeypatch.setattr(background, "keep_classes", lambda secrets, announce: kept.append(set(secrets)))
    with pytest.raises(ZeroDivisionError), background_spark(None, {}, wishes()) as session:
        session()
        raise ZeroDivisionError
    assert kept == []
    with background_spark(None, {}, wishes()) as session:
        session()
    assert kept == [{"hush"}] and "hush" not in repr(wishes())
