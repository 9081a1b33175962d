"""The command `positions`: texts to stdout or files, what changes beside them to stderr, and nothing overwritten."""

import errno
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from migrate.model import Decision
from migrate.plan.file import write_plan
from migrate.plan.plan import PositionOrigin
from migrate.show.positions import BESIDE, FORMATS_OF_POSITIONS
from migrate.survey.policies import Policies, Waiver
from tests.builders import make_plan, make_position, make_row, make_untranslated
from tests.fakes import FakeGroupFacts
from tests.unit.commands import clusters, run
from tests.unit.heldscene import FakePositions, read
from tests.unit.planscene import planned, world

BATCH = 'v1\n{}\n{"orders":{"0":700}}\n7'


@pytest.fixture
def plan(tmp_path):
    """A group, and two holders: a query, and a job of a file."""
    origin = PositionOrigin(str(tmp_path / "jobs/query"), "spark-checkpoint", "a/query", "a" * 64, 17, 1, BATCH, False)
    rows = [
        make_row("job"),
        make_position("a/query", "orders", 0, target_offset=5, holder_kind="spark-checkpoint"),
        make_position("job", "orders", 0, target_offset=6),
    ]
    write_plan(make_plan(rows, positions=(origin,)), tmp_path / "c.plan")
    return tmp_path / "c.plan"


def positions(plan, *options):
    return run("positions", str(plan), *options)


def test_all_holders_are_in_one_csv_by_default_and_no_group_is(plan):
    shown = positions(plan)
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    assert lines[0].startswith("holder,topic,partition,offset,meaning") and len(lines) == 3
    assert "bootstrap.servers" in shown.stderr


@pytest.mark.parametrize(
    ("form", "text"), [("csv", "job,orders,0,700,next,estimated,"), ("spark", '{"orders":{"0":700}}')]
)
def test_the_sources_side_is_said_to_be_for_comparing_and_never_how_to_start_a_job_with_it(plan, form, text):
    shown = positions(plan, "--format", form, "--holder", "job", "--side", "source")
    assert shown.exit_code == 0 and shown.stdout.splitlines()[-1] == text
    assert "the positions on A, to compare" in shown.stderr and "bootstrap.servers" not in shown.stderr
    assert "Start the query" not in shown.stderr


def test_no_environment_turns_the_side_round(plan):
    asked = ("positions", str(plan), "--holder", "job", "--format", "kcg")
    assert run(*asked, MM2_MIGRATE_SIDE="source").stdout == run(*asked).stdout == "job,A.orders,0,6\n"


PRINTED = {
    "csv": "holder,topic,partition,offset,meaning,grade,rereads_at_most\njob,A.orders,0,6,next,estimated,\n",
    "jsonl": '{"holder": "job", "topic": "A.orders", "partition": 0, "offset": 6, "meaning": "next", '
    '"grade": "estimated", "rereads_at_most": null}\n',
    "spark": '{"A.orders":{"0":6}}\n',
    "flink": "A.orders,0,6\n",
    "flink-sql": "'topic'='A.orders', 'scan.startup.mode'='specific-offsets', "
    "'scan.startup.specific-offsets'='partition:0,offset:6'\n",
    "hudi": "A.orders,0:6\n",
    "druid": '{"type":"kafka","partitions":{"type":"end","stream":"A.orders","partitionOffsetMap":{"0":6}}}\n',
    "routine-load": "ALTER ROUTINE LOAD FOR job FROM "
    'KAFKA("kafka_topic"="A.orders","kafka_partitions"="0","kafka_offsets"="6");\n',
    "connect": '{"offsets":[{"partition":{"kafka_topic":"A.orders","kafka_partition":0},'
    '"offset":{"kafka_offset":6}}]}\n',
    "kcg": "job,A.orders,0,6\n",
}


@pytest.mark.parametrize("form", [f for f in FORMATS_OF_POSITIONS if f != "spark-checkpoint"])
def test_each_form_is_printed_for_one_holder_and_says_on_stderr_what_to_do_with_it(plan, form):
    shown = positions(plan, "--format", form, "--holder", "job")
    assert shown.exit_code == 0 and shown.stdout == PRINTED[form]
    assert shown.stderr.startswith(f"{BESIDE[form]}\n")


def test_a_form_of_one_holder_asks_which(plan):
    shown = positions(plan, "--format", "spark")
    assert shown.exit_code == 2 and "a/query, job" in " ".join(shown.stderr.split())


def test_several_holders_get_a_file_each(plan, tmp_path):
    out = tmp_path / "texts"
    assert positions(plan, "--format", "spark", "--out", str(out)).exit_code == 0
    assert {p.name: json.loads(p.read_text()) for p in out.iterdir()} == {
        "a%2Fquery.txt": {"A.orders": {"0": 5}}, "job.txt": {"A.orders": {"0": 6}},
    }  # fmt: skip


def test_a_rewritten_checkpoint_goes_to_a_folder_that_was_not_there(plan, tmp_path):
    out = tmp_path / "moved"
    shown = positions(plan, "--format", "spark-checkpoint", "--holder", "a/query", "--out", str(out))
    assert shown.exit_code == 0, shown.stderr
    assert [p.relative_to(out).as_posix() for p in out.rglob("*")] == ["offsets", "offsets/17"]
    assert (out / "offsets" / "17").read_text() == BATCH.replace('{"orders":{"0":700}}', '{"A.orders":{"0":5}}')


@pytest.fixture
def queries(tmp_path):
    """Two queries."""
    origins = tuple(
        PositionOrigin(str(tmp_path / holder), "spark-checkpoint", holder, "a" * 64, 17, 1, BATCH, False)
        for holder in ("one", "two")
    )
    rows = [make_position(o.holder, "orders", 0, target_offset=5, holder_kind="spark-checkpoint") for o in origins]
    write_plan(make_plan(rows, positions=origins), tmp_path / "c.plan")
    return tmp_path / "c.plan"


@pytest.mark.parametrize("form", ["spark-checkpoint", "spark", "csv"])
def test_a_stderr_that_takes_nothing_costs_no_file_and_no_exit_code(queries, tmp_path, form):
    words = [sys.executable, "-m", "migrate", "positions", str(queries), "--format", form, "--out", str(tmp_path / "x")]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(words, stderr=full, stdout=subprocess.PIPE, timeout=60)
    files = [path for path in (tmp_path / "x", *(tmp_path / "x").rglob("*")) if path.is_file()]
    assert done.returncode == 0 and len(files) == (1 if form == "csv" else 2)


@pytest.mark.parametrize("form", ["spark-checkpoint", "spark"])
def test_a_folder_that_cannot_be_written_whole_is_taken_away_so_that_the_same_command_can_run_again(
    queries, tmp_path, monkeypatch, form
):
    out, sync = tmp_path / "texts", os.fsync
    written = []

    def full_at_the_second_file(descriptor):
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            if written:
                raise OSError(errno.ENOSPC, "No space left on device")
            written.append(descriptor)
        sync(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full_at_the_second_file)
        shown = positions(queries, "--format", form, "--out", str(out))
    assert shown.exit_code == 1 and "No space left on device" in shown.stderr
    assert written and not out.exists() and ": wrote" not in shown.stderr
    assert positions(queries, "--format", form, "--out", str(out)).exit_code == 0


@pytest.mark.parametrize(("length", "code"), [(230, 0), (231, 3)])
def test_a_name_that_is_too_long_for_a_file_is_refused_before_a_folder_is_made(tmp_path, length, code):
    holders = ("short", "ä" * (length // 6) + "x" * (length % 6))  # each ä is 6 bytes of a file's name
    write_plan(make_plan([make_position(h, "orders", 0, target_offset=5) for h in holders]), tmp_path / "c.plan")
    out = tmp_path / "texts"
    shown = positions(tmp_path / "c.plan", "--format", "spark", "--out", str(out))
    assert shown.exit_code == code, shown.output
    assert out.exists() is (code == 0) and ("too long for a file" in shown.stderr) is (code == 3)


def test_the_querys_own_folder_is_never_written(plan, tmp_path):
    folder = tmp_path / "jobs" / "query"
    (folder / "offsets").mkdir(parents=True)
    (folder / "offsets" / "17").write_text(BATCH)
    shown = positions(plan, "--format", "spark-checkpoint", "--holder", "a/query", "--out", str(folder))
    assert shown.exit_code == 3 and (folder / "offsets" / "17").read_text() == BATCH


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--format", "spark-checkpoint"), 2),
        (("--format", "spark-checkpoint", "--holder", "job", "--out", "x"), 2),
        (("--format", "spark-checkpoint", "--holder", "a/query", "--side", "source", "--out", "x"), 2),
        (("--format", "spark-checkpoint", "--holder", "a/query", "--out", "s3a://jobs/moved"), 2),
        (("--holder", "nobody"), 2),
        (("--holder", "("), 2),
        (("--format", "avro"), 2),
    ],
)
def test_wrong_use_is_said_and_writes_nothing(plan, tmp_path, monkeypatch, options, code):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    assert positions(plan, *options).exit_code == code
    assert sorted(tmp_path.rglob("*")) == before


@pytest.fixture
def unplaced(tmp_path):
    """A query of which nothing has a place on the target, beside one that has."""
    origins = tuple(
        PositionOrigin(str(tmp_path / holder), "spark-checkpoint", holder, "a" * 64, 17, 1, BATCH, False)
        for holder in ("gone", "job")
    )
    rows = [
        make_untranslated(Decision.SKIP, "target-topic-missing", "gone", "orders", 0, holder_kind="spark-checkpoint"),
        make_position("job", "orders", 0, target_offset=6, holder_kind="spark-checkpoint"),
    ]
    counts = {"target-partitions:A.orders": 2}
    write_plan(make_plan(rows, positions=origins, counts=counts), tmp_path / "c.plan")
    return tmp_path / "c.plan"


@pytest.mark.parametrize("holder", ["gone", ".*"])
def test_a_checkpoint_without_any_place_is_refused_and_never_left_out(unplaced, tmp_path, holder):
    out = tmp_path / "moved"
    shown = positions(unplaced, "--format", "spark-checkpoint", "--holder", holder, "--out", str(out))
    assert shown.exit_code == 3 and "gone has no place" in " ".join(shown.stderr.split()) and not out.exists()


def test_what_is_said_beside_a_text_is_of_the_text_that_was_printed(unplaced):
    shown = positions(unplaced, "--format", "spark", "--holder", "gone")
    assert json.loads(shown.stdout) == {"A.orders": {"0": -2, "1": -2}}
    assert "2 partitions at -2" in " ".join(shown.stderr.split())


def test_a_file_that_exists_is_not_overwritten(plan, tmp_path):
    out = tmp_path / "jobs.csv"
    assert positions(plan, "--out", str(out)).exit_code == 0
    before = out.read_text()
    assert positions(plan, "--out", str(out)).exit_code == 3 and out.read_text() == before


def test_a_blocked_holder_is_refused(tmp_path):
    write_plan(make_plan([make_position(decision=Decision.BLOCK, reason="spark-batch-open")]), tmp_path / "c.plan")
    shown = positions(tmp_path / "c.plan")
    assert shown.exit_code == 3 and "spark-batch-open" in shown.stderr and not shown.stdout


def test_verify_refuses_the_folder_that_was_translated(plan, tmp_path):
    folder = tmp_path / "jobs/query"
    made = run("verify", str(plan), *clusters(tmp_path), "--spark-checkpoint", f"a/query={folder}")
    assert made.exit_code == 2 and "is the folder of the query on the source" in " ".join(made.stderr.split())


@pytest.mark.parametrize(("given", "said"), [("oops", "expected NAME=URL"), ("other=jobs/x", "no holder of that name")])
def test_verify_refuses_a_wrong_checkpoint_before_it_asks_any_cluster(plan, tmp_path, given, said):
    made = run("verify", str(plan), *clusters(tmp_path), "--spark-checkpoint", given)
    assert made.exit_code == 2 and said in " ".join(made.stderr.split())


def test_the_start_offsets_of_a_share_group_go_by_a_file_of_positions_and_the_group_itself_is_left_out(tmp_path):
    """What kafka-share-groups --describe shows on A becomes what kafka-share-groups --from-file reads on B."""
    held = FakePositions.of(read(("sharers", "t", 0, 55), ("sharers", "t", 1, 60)))
    kinds = FakeGroupFacts(kinds={"g": "consumer", "h": "consumer", "sharers": "share"})
    made = planned(
        *world(), held=held, positions=held.asked(), source_groups=kinds,
        policies=Policies(waivers=(Waiver("share-group", "sharers"),)),
    )  # fmt: skip
    assert made.is_clean(), made.blocks()
    write_plan(made, tmp_path / "jobs.plan")
    shown = positions(tmp_path / "jobs.plan", "--format", "kcg", "--holder", "sharers")
    assert (shown.exit_code, shown.stdout) == (0, "sharers,A.t,0,51\nsharers,A.t,1,60\n")
    assert "kafka-share-groups --reset-offsets --from-file" in shown.stderr
