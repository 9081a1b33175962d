"""Spark's start beside the first questions: what is known in time decides how, and nobody waits for the rest."""

import time
from threading import Event

import pytest

from migrate.spark import background
from migrate.spark.background import Wishes, background_spark


@pytest.fixture
def started(monkeypatch):
    """Sessions that would have been started: how small, and whether they record."""
    sessions = []
    monkeypatch.setattr(background, "spark_session", lambda *words, recording: sessions.append((words[2], recording)))
    for name in ("start_workers", "stop_session", "keep_classes"):
        monkeypatch.setattr(background, name, lambda *words: None)
    return sessions


def wishes(small):
    return Wishes(small, lambda: None, {"hush"}, lambda: None)


def test_a_start_without_wishes_is_quick_and_keeps_nothing(started):
    with background_spark(None, {}) as session:
        session()
    assert started == [(True, False)]


@pytest.mark.parametrize("small", [True, False])
def test_a_start_knows_how_much_there_is_to_read(started, small):
    with background_spark(None, {}, wishes(lambda: small)) as session:
        session()
    assert started == [(small, True)]


def test_a_cluster_that_is_slow_to_say_does_not_hold_up_the_start(started, monkeypatch):
    monkeypatch.setattr(background, "SIZE_SECONDS", 0.1)
    with background_spark(None, {}, wishes(Event().wait)) as session:
        session()
    assert started == [(False, True)]


def test_who_leaves_does_not_wait_for_a_cluster_to_say(started, monkeypatch):
    monkeypatch.setattr(background, "SIZE_SECONDS", 3600.0)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt), background_spark(None, {}, wishes(Event().wait)):
        raise KeyboardInterrupt
    assert time.monotonic() - began < 600


def test_a_question_that_fails_is_not_the_starts_business(started):
    def fails() -> bool:
        raise ZeroDivisionError

    with background_spark(None, {}, wishes(fails)) as session:
        session()
    assert started == [(False, True)]


def test_classes_are_kept_after_what_went_well_only(started, monkeypatch):
    kept = []
    monkeypatch.setattr(background, "keep_classes", lambda secrets, announce: kept.append(set(secrets)))
    with pytest.raises(ZeroDivisionError), background_spark(None, {}, wishes(lambda: True)) as session:
        session()
        raise ZeroDivisionError
    assert kept == []
    with background_spark(None, {}, wishes(lambda: True)) as session:
        session()
    assert kept == [{"hush"}] and started[-1] == (True, True) and "hush" not in repr(wishes(bool))
