"""`groups export` and `groups history` as typed: what does not fit together, what is refused unasked, closing lines."""

import json
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest

from migrate.cli.options import LEAST_MS, MOST_MS, time_of
from migrate.errors import UsageError
from migrate.extras.offsets_topic.export import waited_for
from migrate.extras.offsets_topic.export_columns import names
from migrate.extras.offsets_topic.history import pinned_now
from migrate.extras.offsets_topic.history_values import HistoryRequest
from migrate.extras.offsets_topic.request import Exported, ExportKinds
from migrate.extras.offsets_topic.text import announcement, missing_lines, short_topic_lines, summary_lines, topic_lines
from migrate.model import Failure, LogRange, TopicPartition
from migrate.survey.offsets_pin import OffsetsPin
from migrate.survey.offsets_topic import OFFSETS_TOPIC
from tests.fakes import FakeClock, FakeCluster
from tests.unit.commands import clusters, run, run_in_flow

CSV = ("--format", "csv", "--out", "x.csv")
JSONL = "--format jsonl --out x.jsonl"
PLACES = [
    ("--format csv --out s3a://bucket/x.csv", "is a URL"),
    ("--format csv --out s3a://key:hidden@bucket/x.csv", "--out: a URL holds a password"),
    ("--format parquet --out s3a://key:hid/hidden@bucket/x", "--out: a URL holds a password"),
    ("--format csv --out /nowhere/at/all.csv", "there is no folder /nowhere/at"),
]
WRONG = {
    "export": [
        *PLACES,
        ("--out x", "Missing option '--format'"),
        ("--format csv", "Where to?"),
        (f"{JSONL} --to-topic json --to-config c", "not both"),
        ("--format jsonl --to-topic json", "--to-topic and --to-config go together"),
        (f"{JSONL} --to-config c", "--to-topic and --to-config go together"),
        ("--format csv --to-topic json --to-config a.properties", "--format csv cannot be written to a topic"),
        ("--format jsonl --to-topic '' --to-config a.properties", "names no topic"),
        ("--format jsonl --to-topic json --to-config nowhere", "nowhere"),
        (f"{JSONL} --since 2000000000000 --until 1000000000000", "--since is not before --until"),
        (f"{JSONL} --until 2026-11-23T22:00:00", "is not a time"),
        (f"{JSONL} --group (", "not a regular expression"),
        (f"{JSONL} --max-fetch much", "invalid size"),
    ],
    "history": [
        *PLACES,
        ("--format parquet", "--format parquet needs a place"),
        ("--out x", "--format table is for the screen"),
        ("--bucket 0m", "--bucket 0 has no length"),
        ("--bucket short", "invalid duration"),
        ("--since yesterday", "--since 'yesterday' is not a time"),
        ("--since 2000000000000 --until 1000000000000", "--since is not before --until"),
        ("--group (", "not a regular expression"),
        ("--rows 0", "x>=1"),
    ],
}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("command", "words", "problem"), [(c, *row) for c, rows in WRONG.items() for row in rows])
def test_what_does_not_fit_together_is_wrong_usage(tmp_path, command, words, problem):
    ran = run("groups", command, *shlex.split(words), *clusters(tmp_path))
    assert ran.exit_code == 2 and problem in ran.output and "Traceback" not in ran.output
    assert "hidden" not in ran.output


@pytest.mark.parametrize("command", WRONG)
def test_a_file_that_is_there_is_refused_before_anybody_is_asked(tmp_path, command):
    (tmp_path / "x.csv").write_text("somebody's\n")
    ran = run("groups", command, *CSV, *clusters(tmp_path))
    assert ran.exit_code == 3 and "not overwritten" in ran.output and "cannot be reached" not in ran.output


@pytest.mark.parametrize("words", [("export", *CSV), ("history", *CSV), ("history",)], ids=" ".join)
def test_a_cluster_that_does_not_answer_is_one_paragraph_and_leaves_no_file(tmp_path, words):
    ran = run("groups", *words, *clusters(tmp_path), "--side", "target", "--request-timeout", "0.5")
    assert ran.exit_code == 1 and "target B (127.0.0.1:1) cannot be reached" in ran.output
    assert not list(tmp_path.glob("*.csv*"))


def test_an_internal_topic_is_refused_before_anybody_is_asked_and_none_is_taken_from_the_environment(tmp_path):
    words = ("--format", "jsonl", "--to-topic", "__consumer_offsets", "--to-config", "a.properties")
    ran = run("groups", "export", *words, *clusters(tmp_path))
    assert ran.exit_code == 3 and "is a name of internal topics" in ran.output and "reached" not in ran.output
    ran = run("groups", "export", "--format", "jsonl", *clusters(tmp_path), MM2_MIGRATE_TO_TOPIC="json")
    assert ran.exit_code == 2 and "Where to?" in ran.output


DATA = [("history", "--format", "csv"), ("export", "--format", "jsonl", "--out", "x")]


@pytest.mark.parametrize("words", [("history",), *DATA], ids=" ".join)
def test_which_flow_of_a_flows_file_it_is_comes_first_and_never_into_data(tmp_path, monkeypatch, words):
    ran, asked = run_in_flow(tmp_path, monkeypatch, "groups", *words)
    assert ran.exit_code == 1 and [(o.source, o.target) for o in asked] == [("A", "B")]
    shown, silent = (ran.stderr, ran.stdout) if words in DATA else (ran.stdout, "")
    assert shown.startswith("Flow eu of flows.yaml: A -> B.") and not silent


def test_a_moment_has_a_zone_or_is_a_number_of_ms_and_never_of_seconds_or_a_compact_date():
    for text, ms in (
        (None, None), ("1700000000000", 1_700_000_000_000), ("2023-11-14T23:13:20+01:00", 1_700_000_000_000),
        ("2023-11-14T22:13:20.123Z", 1_700_000_000_123), ("1970-01-01T00:00:00.007Z", 7), (str(LEAST_MS), LEAST_MS),
        (f"{'0' * 5000}{MOST_MS - 1}", MOST_MS - 1),
    ):  # fmt: skip
        assert time_of("--until", text) == ms
    compact = ("2026", "20261123", "202611232200", "20261123220000")
    for text in (*compact, "2023-11-14", "0", "1700000000", str(LEAST_MS - 1), str(MOST_MS), "9" * 5000):
        with pytest.raises(UsageError, match="is not a time.*with its zone") as refused:
            time_of("--until", text)
        assert len(str(refused.value)) < 300


def test_a_transaction_that_is_open_is_waited_for_and_that_is_said():
    said, clock = [], FakeClock()
    progress = SimpleNamespace(step=said.append)
    held = FakeCluster(ranges={TopicPartition(OFFSETS_TOPIC, 0): LogRange(0, 9)})
    done = OffsetsPin("A", 1, {0: LogRange(0, 9)}, {})
    assert waited_for(held, OffsetsPin("A", 1, {0: LogRange(0, 5)}, {0: 9}), progress, clock) == done
    assert said == ["waiting for transactions that are open in 1 partition"]
    assert waited_for(held, done, progress, clock) == done and len(said) == 1


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


PIN = OffsetsPin("A", 50, {3: LogRange(5, 25), 7: LogRange(4, 4)}, {3: 28})
UNSEEN = Failure("NOT_VISIBLE", "no")


def test_what_will_be_read_is_said_in_bytes_before():
    assert announcement(PIN, PIN.fetched_bytes, " in two passes") == (
        "reading __consumer_offsets of A: 2 of 50 partitions, 20 offsets, about 4.4 kB in two passes"
    )


def test_every_record_is_accounted_for_by_name_and_what_is_not_known_is_said():
    labels = {"commit": 9, "commit-with-unknown-tags": 1, "commit-tombstone": 1, "type-5": 2, "type-99": 1}
    broken = {"undecodable-value:unknown-version": 1}
    left_out = {
        "superseded": 6, "tombstone": 1, "type-5": 2, "type-99": 1, "filter:exclude-group": 3, "outside-time": 1,
        "not-its-partition": 4, "commit-without-offset": 5,
    }  # fmt: skip
    exported = Exported(labels | broken, {"commit": 1}, left_out | broken)
    assert list(summary_lines(exported, PIN, "x.jsonl", Failure("CLUSTER_AUTHORIZATION_FAILED", "no"))) == [
        "1 record written to x.jsonl: 1 commit",
        "15 records read: 9 commit, 1 commit-tombstone, 1 commit-with-unknown-tags, 2 type-5 "
        "(ConsumerGroupMemberMetadata), 1 type-99 (unknown), 1 undecodable-value:unknown-version",
        "24 records left out:",
        "  6 superseded by a later record of the same key",
        "  5 with an offset of -1, which is read as nothing committed",
        "  4 in a partition that is not their group's own, left from when the topic had fewer",
        "  3 by the filter exclude-group",
        "  2 of a type that is not exported, type-5 (ConsumerGroupMemberMetadata)",
        "  1 outside --since and --until",
        "  1 tombstones: offsets that were deleted or have expired",
        "  1 of a type that is not exported, type-99 (unknown)",
        "  1 that cannot be decoded, undecodable-value:unknown-version",
        "Commits with unknown tags are of a newer Kafka: what is known of them was written, the rest left out.",
        "Pinned: 3: 5-25",
        "offsets.retention.minutes is not visible (CLUSTER_AUTHORIZATION_FAILED): when most commits expire is unknown",
    ]


def test_each_thing_that_was_asked_for_and_not_given_has_a_line_and_what_is_left_out_by_contract_has_none():
    lost = {"undecodable-value:unknown-version": 2, "undecodable-key:bad-length": 1}
    assert list(missing_lines(Exported({}, {}, {}, ("simpel",), lost), PIN)) == [
        "Not visible: 3 offsets of partition 3 from 25 on: a transaction is open there, which hides what any group has "
        "committed after it began",
        "Not decodable: 1 record that would have been written (undecodable-key:bad-length)",
        "Not decodable: 2 records that would have been written (undecodable-value:unknown-version)",
        "Nothing is there of simpel",
    ]
    left_out = {"type-99": 3, "undecodable-value:bad-length": 1, "commit-without-offset": 1}
    assert not list(missing_lines(Exported(left_out, {}, left_out), OffsetsPin("A", 50, {3: LogRange(5, 25)}, {})))


def test_of_a_topic_it_is_said_how_far_its_log_ends_moved_and_only_what_that_proves():
    assert list(topic_lines(5, 5, 5)) == ["The topic's log ends moved by 5: by what was written, nothing twice"]
    (more,) = topic_lines(5, 5, 7)
    assert "moved by 7, 2 more than was written" in more and "tasks that Spark ran again" in more
    assert list(topic_lines(5, 8, 8))[0] == "3 lines of an attempt that compaction broke off are in the topic too"
    assert "not visible (NOT_VISIBLE)" in next(topic_lines(5, 5, UNSEEN))
    for grown in (UNSEEN, 5, 7):
        assert not list(short_topic_lines(5, grown))
    short = "Not there: 5 records were acknowledged, and the topic's log ends moved by 4 only"
    assert list(topic_lines(5, 5, 4)) == [] and list(short_topic_lines(5, 4)) == [short]


DOCS = Path(__file__).parents[4] / "docs"


def test_it_reads_commits_as_an_export_writes_them_adds_up_no_offsets_and_is_led_to():
    spec = json.loads((DOCS / "druid-offsets.json").read_text())["spec"]
    schema = spec["dataSchema"]
    dimensions = {each if isinstance(each, str) else each["name"] for each in schema["dimensionsSpec"]["dimensions"]}
    metrics = [each for each in schema["metricsSpec"] if each["type"] != "count"]
    assert {"group", "topic", "partition"} <= dimensions
    assert dimensions | {each["fieldName"] for each in metrics} <= set(names(ExportKinds.COMMITS))
    assert schema["timestampSpec"] == {
        "column": "commitTimestamp", "format": "millis", "missingValue": "1970-01-01T00:00:00Z",
    }  # fmt: skip
    assert spec["ioConfig"]["inputFormat"] == {"type": "json"}
    offsets = [each for each in metrics if each["fieldName"] == "offset"]
    assert offsets == [{"type": "longMax", "name": "offset", "fieldName": "offset"}]
    # Tombstones stay out.
    assert schema["transformSpec"]["filter"] == {"type": "selector", "dimension": "tombstone", "value": "false"}
    page = (DOCS / "consumer-offsets.md").read_text()
    assert "(druid-offsets.json)" in page and spec["ioConfig"]["topic"] in page
