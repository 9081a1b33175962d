"""The values between the clusters and the plan: questions that can be asked at all, and what the timer sums up."""

import pytest

from migrate.model import Commit, Failure, GroupPartition, LogRange, TopicPartition
from migrate.survey.survey import Logs, Watermarks, window_questions
from tests.unit.surveyscene import FLOW

SOURCE, TARGET = TopicPartition("t", 0), TopicPartition("A.t", 0)
KEY = GroupPartition("g", "t", 0)
REFUSED = Failure("TOPIC_AUTHORIZATION_FAILED", "not allowed")


@pytest.mark.parametrize(("source", "source_end"), [({SOURCE: LogRange(0, 90)}, 90), ({}, None)], ids=["up", "down"])
def test_a_window_is_asked_for_up_to_the_pinned_ends_as_far_as_the_clusters_are_up(source, source_end):
    question = window_questions(FLOW, Logs(source, {TARGET: LogRange(0, 80)}))(KEY, Commit(40))
    assert question is not None
    assert (question.source_committed, question.source_end, question.target_end) == (40, source_end, 80)


@pytest.mark.parametrize(
    ("commit", "source", "target"),
    [
        (None, LogRange(0, 90), LogRange(0, 80)),
        (Commit(40), REFUSED, LogRange(0, 80)),
        (Commit(40), LogRange(0, 90), REFUSED),
    ],
)
def test_no_window_places_what_is_not_committed_or_lies_on_a_log_that_was_not_reported(commit, source, target):
    assert window_questions(FLOW, Logs({SOURCE: source}, {TARGET: target}))(KEY, commit) is None


@pytest.mark.parametrize(("watermark", "is_open"), [(90, False), (91, True), (REFUSED, True), (None, True)])
def test_a_transaction_counts_as_open_unless_the_high_watermark_refutes_it(watermark, is_open):
    watermarks = Watermarks({} if watermark is None else {SOURCE: watermark}, {})
    assert watermarks.is_open(SOURCE, LogRange(0, 90)) is is_open
