"""`groups history` on a real broker: what groups committed, second by second, and where the logs ended then."""

import csv
import time
from collections.abc import Iterator
from contextlib import ExitStack
from io import StringIO

import pytest
from confluent_kafka import Producer

from tests.extras.offsets_topic.integration.exportscene import HIDDEN, Scene, running, scene_of
from tests.integration.cli import Ran
from tests.integration.clusters import CALL_SECONDS, QUIET, commit, delete_before, delete_topic
from tests.integration.offsetsrecords import in_transaction
from tests.lab.waiting import wait_until
from tests.notebooks import Tables, outputs
from tests.notebooks import run as run_notebook

PAST, AHEAD = -600, 1800
MANY = 100


def history(scene: Scene, *options: str) -> Ran:
    return scene.command.run("groups", "history", *scene.command.clusters, *options)


def told(ran: Ran, *columns: str) -> set[tuple[str, ...]]:
    """What the rows say: the first commit on a young cluster may be sent twice, and be in two seconds."""
    return {tuple(row[column] for column in columns) for row in csv.DictReader(StringIO(ran.stdout))}


def produce(bootstrap: str, topic: str, partition: int, seconds: int, count: int) -> None:
    """Append records whose timestamps are so many seconds from now."""
    producer = Producer({"bootstrap.servers": bootstrap, **QUIET})
    when = round(time.time() + seconds) * 1000
    for number in range(count):
        producer.produce(topic, b"x", partition=partition, timestamp=when + number)
    assert producer.flush(CALL_SECONDS) == 0


def in_seconds_of_their_own(bootstrap: str, *offsets: int) -> None:
    for offset in offsets:
        commit(bootstrap, {"steady": {("t", 0): offset, ("t", 1): offset}})
        # From when it was answered: a first commit takes long, and would share its second with the next.
        done = time.time_ns() // 10**9
        wait_until(lambda done=done: time.time_ns() // 10**9 > done, 10, "the next second", poll_seconds=0.05)


OLDER = [pytest.param(version, marks=pytest.mark.long) for version in ("4.1.1", "3.9.2")]


@pytest.fixture(scope="module", params=["4.3.1", *OLDER])
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("history")
    with running(folder, {"t": 2, "cut": 1, "gone": 1}, request.param) as cluster:
        bootstrap = cluster.bootstrap
        produce(bootstrap, "t", 0, PAST, MANY)
        produce(bootstrap, "t", 0, AHEAD, 50)
        produce(bootstrap, "t", 1, PAST, MANY)
        produce(bootstrap, "cut", 0, AHEAD, 10)
        delete_before(bootstrap, "cut", 0, 5)
        commit(bootstrap, {"cutter": {("cut", 0): 7}, "goner": {("gone", 0): 0}})
        in_seconds_of_their_own(bootstrap, 10, 40, 20, 60)
        delete_topic(bootstrap, "gone")
        yield scene_of(cluster, folder)


def test_a_group_is_told_bucket_by_bucket_with_the_ends_of_its_logs_then(scene: Scene) -> None:
    ran = history(scene, "--group", "steady", "--bucket", "1s", "--format", "csv").expect(0)
    rows = list(csv.DictReader(StringIO(ran.stdout)))
    first, second = ([row for row in rows if row["partition"] == n] for n in "01")
    assert [int(row["offset"]) for row in first] == [10, 40, 20, 60] == [int(row["offset"]) for row in second]
    assert [row["commits"] for row in rows] == ["1"] * 8
    # Timestamps that lie ahead: at the time of the commits, only the others were there.
    assert {row["end_at_time"] for row in rows} == {str(MANY)}
    assert [int(row["lag"]) for row in first] == [90, 60, 80, 40]
    assert {row["lag_is_estimate"] for row in rows} == {"true"}
    rates = [row["records_per_s"] for row in first]
    assert rates[0] == "" == rates[2] and 0 < float(rates[1]) <= 30 and 0 < float(rates[3]) <= 40
    assert [row["time"] for row in first] == sorted({row["time"] for row in first})


@pytest.mark.long
def test_what_retention_has_taken_has_no_lag_and_is_no_failure(scene: Scene) -> None:
    ran = history(scene, "--group", "cutter", "--format", "csv").expect(0)
    assert told(ran, "offset", "end_at_time", "lag", "lag_is_estimate") == {("7", "", "", "")}
    assert "RECORDS_GONE" in ran.stderr and "not whole" not in ran.stderr


@pytest.mark.long
def test_a_topic_that_is_not_shown_is_not_visible_and_exits_1(scene: Scene) -> None:
    # In the second of the commit: seconds later the topic was deleted, and its offsets with it.
    ran = history(scene, "--group", "goner", "--bucket", "1s", "--format", "csv").expect(1)
    assert told(ran, "topic", "lag") == {("gone", "")} and "UNKNOWN_TOPIC_OR_PARTITION" in ran.stderr
    assert told(history(scene, "--group", "goner", "--no-lag", "--format", "csv").expect(0), "lag") == {("",)}


def test_too_many_questions_are_refused_and_leave_no_file(scene: Scene) -> None:
    ran = history(scene, "--bucket", "1s", "--max-lookups", "3", "--format", "csv", "--out", "x.csv").expect(3)
    assert "--max-lookups allows 3" in ran.complaint() and not list(scene.command.folder.glob("*x.csv*"))
    history(scene, "--group", "stedy").expect(1)


@pytest.mark.long
def test_what_a_transaction_that_stays_open_hides_is_named_and_exits_1(scene: Scene) -> None:
    with ExitStack() as stack:
        in_transaction(scene.cluster.bootstrap, "open", stack)
        ran = history(scene, "--group", "transaction-open", "--format", "csv", "--no-lag").expect(1)
    assert HIDDEN in ran.stderr and "waiting for transactions that are open in 1 partition" in ran.stderr
    # Nobody waits where none is open.
    assert "waiting for" not in history(scene, "--group", "transaction-open", "--no-lag").expect(0).stderr


@pytest.mark.filterwarnings("ignore")
def test_the_notebook_draws_what_was_written_as_parquet(scene: Scene) -> None:
    history(scene, "--group", "steady", "--bucket", "1s", "--format", "parquet", "--out", "history.parquet").expect(0)
    listed = scene.command.run("groups", "list", *scene.command.clusters, "--format", "json", "--records")
    (scene.command.folder / "groups.json").write_text(listed.stdout)
    notebook = run_notebook("inventory.ipynb", scene.command.folder)
    assert len(outputs(notebook, "image/png")) == 4
    tables = [Tables(page).rows for page in outputs(notebook, "text/html")]
    assert [row[3:5] for t in tables if "last_commit" in t[0] for row in t if row[0] == "steady"] == [["2", "8"]]
