"""`groups history` as it is typed: what does not fit together, and what is refused before anybody is asked."""

import pytest

from migrate.extras.offsets_topic.history import pinned_now
from migrate.extras.offsets_topic.history_values import HistoryRequest
from migrate.model import LogRange, TopicPartition
from migrate.survey.offsets_topic import OFFSETS_TOPIC
from tests.fakes import FakeClock, FakeCluster
from tests.unit.commands import clusters, run


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--format", "parquet"), "--format parquet needs a place"),
        (("--out", "x"), "--format table is for the screen"),
        (("--format", "csv", "--out", "s3a://bucket/x.csv"), "is a URL"),
        (("--format", "csv", "--out", "hdfs:/data/x.csv"), "is a URL"),
        (("--format", "csv", "--out", "s3a://key:hidden@bucket/x.csv"), "--out: a URL holds a password"),
        (("--format", "parquet", "--out", "s3a://key:hid/hidden@bucket/x"), "--out: a URL holds a password"),
        (("--format", "csv", "--out", "/nowhere/at/all.csv"), "there is no folder /nowhere/at"),
        (("--format", "json"), "'json' is not one of"),
        (("--bucket", "0m"), "--bucket 0 has no length"),
        (("--bucket", "short"), "invalid duration"),
        (("--since", "yesterday"), "--since 'yesterday' is not a time"),
        (("--since", "2000000000000", "--until", "1000000000000"), "--since is not before --until"),
        (("--group", "("), "not a regular expression"),
        (("--rows", "0"), "x>=1"),
    ],
)
def test_what_does_not_fit_together_is_wrong_usage(tmp_path, monkeypatch, words, problem):
    monkeypatch.chdir(tmp_path)
    ran = run("groups", "history", *words, *clusters(tmp_path))
    assert ran.exit_code == 2 and problem in ran.output and "Traceback" not in ran.output
    assert "hidden" not in ran.output


def test_a_file_that_is_there_is_refused_before_anybody_is_asked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text("somebody's\n")
    ran = run("groups", "history", "--format", "csv", "--out", "x.csv", *clusters(tmp_path))
    assert ran.exit_code == 3 and "not overwritten" in ran.output and "cannot be reached" not in ran.output


def test_a_cluster_that_does_not_answer_is_one_paragraph(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = run("groups", "history", *clusters(tmp_path), "--side", "target", "--request-timeout", "0.5")
    assert ran.exit_code == 1 and "target B (127.0.0.1:1) cannot be reached" in ran.output


def test_the_newest_bucket_ends_when_the_topic_had_been_pinned_and_not_when_somebody_asked():
    clock, asked_in = FakeClock(), []
    place = TopicPartition(OFFSETS_TOPIC, 0)
    held = FakeCluster(ranges={place: LogRange(0, 9)})

    def a_commit_comes(call):
        clock.wait(2)
        if call == "log_ranges":
            held.ranges[place] = LogRange(0, 10)
        asked_in.append(call)

    held.on_call = a_commit_comes
    asked = HistoryRequest(60_000, clock.now_ms())
    pin, request = pinned_now(held, asked, clock)
    assert pin.logs == {0: LogRange(0, 10)} and asked_in[-1] == "log_ranges"
    assert request.cut_ms == clock.now_ms() > asked.cut_ms
