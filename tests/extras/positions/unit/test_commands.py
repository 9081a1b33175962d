"""The commands of `positions`: texts to stdout or files, what changes with them to stderr, nothing overwritten."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from migrate.extras.positions.forms import BESIDE, FORMATS_OF_POSITIONS
from migrate.extras.positions.plan import write
from migrate.model import Decision
from migrate.survey.policies import Policies, parse_untranslatable
from tests.builders import make_untranslated
from tests.extras.positions.unit.heldscene import FakePositions
from tests.extras.positions.unit.heldscene import read as read_of
from tests.extras.positions.unit.positionplans import make_position, make_positions, origin_of, planned
from tests.unit.commands import clusters, run

BATCH = 'v1\n{}\n{"orders":{"0":700}}\n7'


@pytest.fixture
def plan(tmp_path):
    """Two holders: a query, and a job of a file."""
    origin = origin_of("a/query", str(tmp_path / "jobs/query"), 17, BATCH)
    rows = [
        make_position("a/query", "orders", 0, target_offset=5),
        make_position("job", "orders", 0, target_offset=6),
    ]
    write(make_positions(rows, origins=(origin,)), tmp_path / "c.plan")
    return tmp_path / "c.plan"


def positions(plan, *options):
    return run("positions", "print", str(plan), *options)


def test_all_holders_are_in_one_csv_by_default(plan):
    shown = positions(plan)
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    assert lines[0].startswith("holder,topic,partition,offset,meaning") and len(lines) == 3
    assert "bootstrap.servers" in shown.stderr


@pytest.mark.parametrize("form", [f for f in FORMATS_OF_POSITIONS if f != "spark-checkpoint"])
def test_each_form_is_printed_for_one_holder_and_says_on_stderr_what_to_do_with_it(plan, form):
    shown = positions(plan, "--format", form, "--holder", "job")
    assert shown.exit_code == 0 and "A.orders" in shown.stdout and "a/query" not in shown.stdout
    assert shown.stderr.startswith(f"{BESIDE[form]}\n")


def test_a_form_of_one_holder_asks_which(plan):
    shown = positions(plan, "--format", "spark")
    assert shown.exit_code == 2 and "a/query, job" in " ".join(shown.stderr.split())


def test_a_rewritten_batch_is_a_file_whose_number_is_said(plan, tmp_path):
    out = tmp_path / "17"
    shown = positions(plan, "--format", "spark-checkpoint", "--holder", "a/query", "--out", str(out))
    assert shown.exit_code == 0 and "N is 17." in shown.stderr
    assert out.read_text() == BATCH.replace('{"orders":{"0":700}}', '{"A.orders":{"0":5}}') + "\n"


@pytest.mark.parametrize("form", ["spark-checkpoint", "csv"])
def test_a_stderr_that_takes_nothing_costs_no_file_and_no_exit_code(plan, tmp_path, form):
    words = ["positions", "print", plan, "--holder", "a/query", "--format", form, "--out", tmp_path / "x"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "migrate", *words], stderr=full, stdout=subprocess.PIPE, timeout=60
        )
    files = [path for path in (tmp_path / "x", *(tmp_path / "x").rglob("*")) if path.is_file()]
    assert done.returncode == 0 and len(files) == 1


def test_the_querys_own_folder_is_never_written(plan, tmp_path):
    folder = tmp_path / "jobs" / "query"
    (folder / "offsets").mkdir(parents=True)
    (folder / "offsets" / "17").write_text(BATCH)
    shown = positions(plan, "--format", "spark-checkpoint", "--holder", "a/query", "--out", str(folder))
    assert shown.exit_code == 3 and (folder / "offsets" / "17").read_text() == BATCH


@pytest.mark.parametrize("options", [
    ("--format", "spark-checkpoint"),
    ("--format", "spark-checkpoint", "--holder", "job", "--out", "x"),
    ("--format", "spark-checkpoint", "--holder", "a/query", "--side", "source", "--out", "x"),
    ("--format", "spark-checkpoint", "--holder", "a/query", "--out", "s3a://jobs/moved"),
    ("--format", "table", "--out", "review.txt"),
    ("--format", "table", "--holder", "job"),
    ("--holder", "nobody"),
    ("--holder", "("),
])  # fmt: skip
def test_wrong_use_is_said_and_writes_nothing(plan, tmp_path, monkeypatch, options):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    assert positions(plan, *options).exit_code == 2
    assert sorted(tmp_path.rglob("*")) == before


@pytest.fixture
def unplaced(tmp_path):
    """A query of which nothing has a place on the target, beside one that has."""
    origins = tuple(origin_of(holder, str(tmp_path / holder), 17, BATCH) for holder in ("gone", "job"))
    rows = [
        make_untranslated(Decision.SKIP, "target-topic-missing", "gone", "orders", 0),
        make_position("job", "orders", 0, target_offset=6),
    ]
    write(make_positions(rows, origins=origins, copies={"A.orders": 2}), tmp_path / "c.plan")
    return tmp_path / "c.plan"


def test_a_checkpoint_without_any_place_is_refused_and_never_left_out(unplaced, tmp_path):
    out = tmp_path / "moved"
    shown = positions(unplaced, "--format", "spark-checkpoint", "--holder", "gone", "--out", str(out))
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
    write(make_positions([make_position(decision=Decision.BLOCK, reason="spark-batch-open")]), tmp_path / "c.plan")
    shown = positions(tmp_path / "c.plan")
    assert shown.exit_code == 3 and "spark-batch-open" in shown.stderr and not shown.stdout


@pytest.mark.parametrize(("given", "said"), [("oops", "expected NAME=URL"), ("other=jobs/x", "no holder of that name")])
def test_verify_refuses_a_wrong_checkpoint_before_it_reads_any(plan, given, said):
    made = run("positions", "verify", str(plan), "--spark-checkpoint", given)
    assert made.exit_code == 2 and said in " ".join(made.stderr.split())


def test_the_start_offsets_of_a_share_group_go_by_a_file_of_positions(tmp_path):
    """What kafka-share-groups --describe shows on A becomes what kafka-share-groups --from-file reads on B."""
    write(planned(FakePositions.of(read_of(("sharers", "t", 0, 55), ("sharers", "t", 1, 60)))), tmp_path / "jobs.plan")
    shown = positions(tmp_path / "jobs.plan", "--format", "kcg", "--holder", "sharers")
    assert (shown.exit_code, shown.stdout) == (0, "sharers,A.t,0,51\nsharers,A.t,1,60\n")
    assert "kafka-share-groups --reset-offsets --from-file" in shown.stderr


def test_a_file_that_lacks_its_signatures_is_printed_with_a_warning_until_people_have_signed(tmp_path):
    path = tmp_path / "jobs.json"
    write(make_positions([make_position("job")], settings={"require-signatures": "2"}), path)
    assert "WARNING: not signed by enough different names: 0 of 2" in positions(path).stderr
    signed = run("positions", "sign", str(path), "--by", "Ada", "--note", "read all of it")
    assert (
        signed.exit_code == 0 and "Signatures   1 of 2 (Ada)" in signed.stdout and "READY: 1 position" in signed.stdout
    )
    run("positions", "sign", str(path), "--by", "ada")
    assert "1 of 2 (Ada)" in positions(path).stderr, "a name counts once"
    run("positions", "sign", str(path), "--by", "Grace")
    assert "WARNING" not in positions(path).stderr


def test_the_table_shows_every_position_with_its_reason_and_what_needs_attention(tmp_path):
    path = tmp_path / "jobs.json"
    write(planned(FakePositions.of(read_of(("job", "t", 0, 55), ("job", "t", 1, 999)))), path)
    shown = positions(path, "--format", "table")
    assert shown.exit_code == 0, "to look at what is blocked is not refused"
    assert shown.stdout.startswith("BLOCKED: 1 of 1 holder") and "Fingerprint  " in shown.stdout
    assert "commit-beyond-log-end" in shown.stdout and "holder-blocked: Another position" in shown.stdout


def test_a_position_that_may_skip_records_by_choice_is_named_to_who_reviews_it(tmp_path):
    path, chosen = tmp_path / "jobs.json", Policies((), *parse_untranslatable(["commit-beyond-log-end=latest"]))
    held = FakePositions.of(read_of(("job", "t", 0, 55), ("job", "t", 1, 999)))
    write(planned(held, policies=chosen), path)
    shown = positions(path, "--format", "table")
    assert shown.exit_code == 0 and shown.stdout.startswith(
        "READY: 2 positions of 1 holder to set; 1 position MAY SKIP"
    )
    assert "MAY SKIP" in shown.stdout.partition("NEEDS ATTENTION")[2]


def refused(tmp_path, *options: str) -> str:
    made = run("positions", "plan", *clusters(tmp_path), "--out", str(tmp_path / "c.json"), *options)
    assert made.exit_code == 2, made.output
    return " ".join(made.stderr.split())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--positions", "jobs.xlsx"), "unknown format"),
        (("--positions", "a.csv", "--positions", "a.csv"), "--positions a.csv is given twice"),
        (("--spark-checkpoint", "s3a://jobs/orders"), "expected NAME=URL"),
        (("--spark-checkpoint", "a="), "expected NAME=URL"),
        (("--spark-checkpoint", "a=x", "--spark-checkpoint", "a=y"), "--spark-checkpoint names a twice"),
        (("--positions", "a.csv", "--sink", "a"), "expected HOLDER=URL"),
        ((), "Which positions?"),
        (("--stateful", "job"), "Which positions?"),
        (("--positions", "a.csv", "--accept", "positions-moved"), "there is no check 'positions-moved'"),
        (("--positions", "s3a://key:hidden@jobs/a.csv"), "--positions: a URL holds a password"),
        (("--positions", "s3a://key:hidden@jobs/a.txt"), "--positions: a URL holds a password"),
        (("--spark-checkpoint", "a=s3a://key:9/hidden@jobs/a"), "--spark-checkpoint: a URL holds a password"),
        (("--positions", "a.csv", "--spark-conf", "spark.hadoop.fs.s3a.secret.key=hidden"), "has a secret"),
        (("--spark-checkpoint", "a=hdfs://me:hidden@host/jobs"), "--spark-checkpoint: a URL holds a password"),
        (("--positions", "a.csv", "--sink", "a=s3a://key:hidden@jobs/out"), "--sink: a URL holds a password"),
    ],
)
def test_what_does_not_go_together_is_wrong_use_before_anything_is_read(tmp_path, options, said):
    complaint = refused(tmp_path, *options)
    assert said in complaint
    assert "hidden" not in complaint


def test_a_port_is_no_password(tmp_path):
    assert "password" not in refused(
        tmp_path, "--spark-checkpoint", "q=hdfs://nn:8020/user/me@corp/q", "--accept", "nothing"
    )
