"""`groups export` as it is typed: what does not fit together, and what is refused before anybody is asked."""

import pytest

from migrate.cli.options import LEAST_MS, MOST_MS, time_of
from migrate.errors import UsageError
from migrate.extras.offsets_topic.export import waited_for
from migrate.model import LogRange, TopicPartition
from migrate.survey.offsets_pin import OffsetsPin
from migrate.survey.offsets_topic import OFFSETS_TOPIC
from tests.fakes import FakeClock, FakeCluster, NoProgress
from tests.unit.commands import clusters, run

JSONL = ("--format", "jsonl", "--out", "x.jsonl")
TOPIC = ("--to-topic", "json", "--to-config", "a.properties")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--out", "x"), "Missing option '--format'"),
        (("--format", "csv"), "Where to?"),
        ((*JSONL, "--to-topic", "json", "--to-config", "c"), "not both"),
        (("--format", "jsonl", "--to-topic", "json"), "--to-topic and --to-config go together"),
        ((*JSONL, "--to-config", "c"), "--to-topic and --to-config go together"),
        (("--format", "csv", *TOPIC), "--format csv cannot be written to a topic"),
        (("--format", "parquet", *TOPIC), "--format parquet cannot be written to a topic"),
        (("--format", "jsonl", "--to-topic", "", "--to-config", "a.properties"), "names no topic"),
        (("--format", "jsonl", "--to-topic", "json", "--to-config", "nowhere"), "nowhere"),
        ((*JSONL, "--until", "9" * 30), "is not a time"),
        ((*JSONL, "--since", "yesterday"), "--since 'yesterday' is not a time"),
        ((*JSONL, "--until", "2026-11-23T22:00:00"), "is not a time"),
        ((*JSONL, "--since", "2000000000000", "--until", "1000000000000"), "--since is not before --until"),
        ((*JSONL, "--until", "9" * 5000), "is not a time"),
        ((*JSONL, "--until", "253402300800000"), "is not a time"),
        ((*JSONL, "--since", "1700000000"), "--since '1700000000' is not a time"),
        ((*JSONL, "--since", "20261123"), "--since '20261123' is not a time"),
        ((*JSONL, "--group", "("), "not a regular expression"),
        ((*JSONL, "--kinds", "offsets"), "'offsets' is not one of"),
        ((*JSONL, "--max-fetch", "much"), "invalid size"),
        (("--format", "csv", "--out", "s3a://bucket/x.csv"), "is a URL"),
        (("--format", "csv", "--out", "hdfs:/data/x.csv"), "is a URL"),
        (("--format", "csv", "--out", "s3a://key:hidden@bucket/x.csv"), "--out: a URL holds a password"),
        (("--format", "parquet", "--out", "s3a://key:hid/hidden@bucket/x"), "--out: a URL holds a password"),
        (("--format", "csv", "--out", "/nowhere/at/all.csv"), "there is no folder /nowhere/at"),
    ],
)
def test_what_does_not_fit_together_is_wrong_usage(tmp_path, monkeypatch, words, problem):
    monkeypatch.chdir(tmp_path)
    ran = run("groups", "export", *words, *clusters(tmp_path))
    assert ran.exit_code == 2 and problem in ran.output and "Traceback" not in ran.output
    assert "hidden" not in ran.output


def test_a_file_that_is_there_is_refused_before_anybody_is_asked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.jsonl").write_text("somebody's\n")
    ran = run("groups", "export", *JSONL, *clusters(tmp_path))
    assert ran.exit_code == 3 and "not overwritten" in ran.output and "cannot be reached" not in ran.output


def test_an_internal_topic_is_refused_before_anybody_is_asked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ("--format", "jsonl", "--to-topic", "__consumer_offsets", "--to-config", "a.properties")
    ran = run("groups", "export", *words, *clusters(tmp_path))
    assert ran.exit_code == 3 and "is a name of internal topics" in ran.output and "reached" not in ran.output


def test_a_topic_to_write_to_is_never_taken_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = run("groups", "export", "--format", "jsonl", *clusters(tmp_path), MM2_MIGRATE_TO_TOPIC="json")
    assert ran.exit_code == 2 and "Where to?" in ran.output


def test_a_cluster_that_does_not_answer_is_one_paragraph_and_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = run("groups", "export", *JSONL, *clusters(tmp_path), "--side", "target", "--request-timeout", "0.5")
    assert ran.exit_code == 1 and "target B (127.0.0.1:1) cannot be reached" in ran.output
    assert not list(tmp_path.glob("*.jsonl*"))


def test_a_moment_has_a_zone_or_is_a_number():
    assert time_of("--since", "1700000000000") == 1_700_000_000_000
    assert time_of("--since", "2023-11-14T23:13:20+01:00") == 1_700_000_000_000
    assert time_of("--since", "2023-11-14T22:13:20.123Z") == 1_700_000_000_123
    assert time_of("--since", None) is None
    with pytest.raises(UsageError, match="with its zone"):
        time_of("--since", "2023-11-14")


def test_a_number_is_ms_since_1970_where_it_can_be_meant_as_such_and_never_seconds_or_a_compact_date():
    assert time_of("--until", str(LEAST_MS)) == LEAST_MS
    assert time_of("--until", f"{'0' * 5000}{MOST_MS - 1}") == MOST_MS - 1
    texts = ("0", "2026", "20261123", "202611232200", "20261123220000", "1700000000", str(LEAST_MS - 1), str(MOST_MS))
    for text in (*texts, "9" * 5000):
        with pytest.raises(UsageError, match="is not a time") as refused:
            time_of("--until", text)
        assert len(str(refused.value)) < 300
    assert time_of("--since", "1970-01-01T00:00:00.007Z") == 7, "written as a date it is what it says"


def test_a_transaction_that_is_open_is_waited_for_and_that_is_said():
    said, clock = [], FakeClock()
    held = FakeCluster(ranges={TopicPartition(OFFSETS_TOPIC, 0): LogRange(0, 9)})
    pin = OffsetsPin("A", 1, {0: LogRange(0, 5)}, {0: 9})
    assert waited_for(held, pin, Said(said), clock) == OffsetsPin("A", 1, {0: LogRange(0, 9)}, {})
    assert said == ["waiting for transactions that are open in 1 partition"]
    done = OffsetsPin("A", 1, {0: LogRange(0, 9)}, {})
    assert waited_for(held, done, Said(said), clock) == done and len(said) == 1


class Said(NoProgress):
    def __init__(self, said):
        self.said = said

    def step(self, text):
        self.said.append(text)
