"""The commands of `positions`: texts to stdout or files, what changes with them to stderr, nothing overwritten."""

import subprocess
import sys
from pathlib import Path

import pytest

from migrate.extras.positions.forms import BESIDE, FORMATS_OF_POSITIONS
from migrate.extras.positions.plan import write
from migrate.survey.policies import Policies, parse_untranslatable
from tests.builders import make_row
from tests.extras.positions.unit.positionplans import file_of, make_positions, origin_of, planned
from tests.unit.commands import clusters, run

BATCH = 'v1\n{}\n{"orders":{"0":700}}\n7'


@pytest.fixture
def path(tmp_path):
    return tmp_path / "jobs.json"


@pytest.fixture
def plan(tmp_path, path):
    """Two holders: a query, and a job of a file."""
    rows = [make_row(holder, "orders", 0, target_offset=offset) for holder, offset in (("query", 5), ("job", 6))]
    write(make_positions(rows, origins=(origin_of("query", str(tmp_path / "query"), content=BATCH),)), path)
    return path


def printed(plan, *options):
    return run("positions", "print", str(plan), *map(str, options))


def said(result):
    return " ".join(result.stderr.split())


def test_all_holders_are_in_one_csv_by_default_and_each_form_says_on_stderr_what_to_do_with_it(plan):
    shown = printed(plan)
    lines = shown.stdout.splitlines()
    assert shown.exit_code == 0 and lines[0].startswith("holder,topic,partition,offset,meaning") and len(lines) == 3
    assert "bootstrap.servers" in shown.stderr
    for form in set(FORMATS_OF_POSITIONS) - {"spark-checkpoint"}:
        one = printed(plan, "--format", form, "--holder", "job")
        assert one.exit_code == 0 and "A.orders" in one.stdout and "query" not in one.stdout
        assert one.stderr.startswith(f"{BESIDE[form]}\n")


def test_a_rewritten_batch_is_a_file_whose_number_is_said_and_no_other_file_is_overwritten(plan, tmp_path):
    out = tmp_path / "17"
    words = ("--format", "spark-checkpoint", "--holder", "query", "--out")
    shown = printed(plan, *words, out)
    assert shown.exit_code == 0 and "N is 17." in shown.stderr
    rewritten = BATCH.replace('{"orders":{"0":700}}', '{"A.orders":{"0":5}}') + "\n"
    assert out.read_text() == rewritten
    assert printed(plan, "--out", out).exit_code == 3 and out.read_text() == rewritten
    own = tmp_path / "query" / "offsets" / "17"
    own.parent.mkdir(parents=True)
    own.write_text(BATCH)
    assert printed(plan, *words, tmp_path / "query").exit_code == 3 and own.read_text() == BATCH


@pytest.mark.parametrize("form", ["spark-checkpoint", "csv"])
def test_a_stderr_that_takes_nothing_costs_no_file_and_no_exit_code(plan, tmp_path, form):
    out = tmp_path / "x"
    words = ["positions", "print", plan, "--holder", "query", "--format", form, "--out", out]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "migrate", *words], stderr=full, stdout=subprocess.PIPE, timeout=60
        )
    assert done.returncode == 0 and out.is_file()


@pytest.mark.parametrize(("options", "complaint"), [
    (("--format", "spark"), "job, query"),
    (("--format", "spark-checkpoint"), "is for one holder"),
    (("--format", "spark-checkpoint", "--holder", "job", "--out", "x"), "job is from a file"),
    (("--format", "spark-checkpoint", "--holder", "query", "--side", "source", "--out", "x"), "--side"),
    (("--format", "spark-checkpoint", "--holder", "query", "--out", "s3a://jobs/moved"), "cannot be written"),
    (("--format", "table", "--out", "review.txt"), "--format table"),
    (("--format", "table", "--holder", "job"), "--format table"),
    (("--holder", "nobody"), "no holder of that name"),
])  # fmt: skip
def test_wrong_use_is_said_and_writes_nothing(plan, tmp_path, monkeypatch, options, complaint):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    shown = printed(plan, *options)
    assert shown.exit_code == 2 and complaint in said(shown)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_blocked_holder_is_refused_and_shown_with_its_reason_to_who_reviews_it(path):
    write(planned(file_of(("job", "t", 0, 55), ("job", "t", 1, 999))), path)
    shown = printed(path)
    assert shown.exit_code == 3 and "commit-beyond-log-end" in shown.stderr and not shown.stdout
    table = printed(path, "--format", "table")
    assert table.exit_code == 0, "to look at what is blocked is not refused"
    assert table.stdout.startswith("BLOCKED: 1 of 1 holder") and "Fingerprint  " in table.stdout
    assert "commit-beyond-log-end" in table.stdout and "holder-blocked: Another position" in table.stdout


def test_a_position_that_may_skip_records_by_choice_is_named_to_who_reviews_it(path):
    chosen = Policies((), *parse_untranslatable(["commit-beyond-log-end=latest"]))
    write(planned(file_of(("job", "t", 0, 55), ("job", "t", 1, 999)), policies=chosen), path)
    shown = printed(path, "--format", "table")
    assert shown.exit_code == 0
    assert shown.stdout.startswith("READY: 2 positions of 1 holder to set; 1 position MAY SKIP")
    assert "MAY SKIP" in shown.stdout.partition("NEEDS ATTENTION")[2]


@pytest.mark.parametrize(("given", "complaint"), [
    ("oops", "expected NAME=URL"), ("other=jobs/x", "no holder of that name"),
])  # fmt: skip
def test_verify_refuses_a_wrong_checkpoint_before_it_reads_any(plan, given, complaint):
    made = run("positions", "verify", str(plan), "--spark-checkpoint", given)
    assert made.exit_code == 2 and complaint in said(made)


def test_a_file_that_lacks_its_signatures_is_printed_with_a_warning_until_people_have_signed(path):
    write(make_positions([make_row("job")], settings={"require-signatures": "2"}), path)
    assert "WARNING: not signed by enough different names: 0 of 2" in printed(path).stderr
    signed = run("positions", "sign", str(path), "--by", "Ada", "--note", "read all of it")
    assert signed.exit_code == 0
    assert "Signatures   1 of 2 (Ada)" in signed.stdout and "READY: 1 position" in signed.stdout
    run("positions", "sign", str(path), "--by", "ada")
    assert "1 of 2 (Ada)" in printed(path).stderr, "a name counts once"
    run("positions", "sign", str(path), "--by", "Grace")
    assert "WARNING" not in printed(path).stderr


HAS_A_PASSWORD = ": a URL holds a password"


@pytest.mark.parametrize(("options", "complaint"), [
    (("--positions", "jobs.xlsx"), "unknown format"),
    (("--positions", "a.csv", "--positions", "a.csv"), "--positions a.csv is given twice"),
    (("--spark-checkpoint", "s3a://jobs/orders"), "expected NAME=URL"),
    (("--spark-checkpoint", "a="), "expected NAME=URL"),
    (("--spark-checkpoint", "a=x", "--spark-checkpoint", "a=y"), "--spark-checkpoint names a twice"),
    (("--positions", "a.csv", "--sink", "a"), "expected HOLDER=URL"),
    (("--stateful", "job"), "Which positions?"),
    (("--spark-checkpoint", "q=hdfs://nn:8020/user/me@corp/q", "--accept", "nothing"), "there is no check 'nothing'"),
    (("--positions", "s3a://key:hidden@jobs/a.txt"), f"--positions{HAS_A_PASSWORD}"),
    (("--spark-checkpoint", "a=s3a://key:9/hidden@jobs/a"), f"--spark-checkpoint{HAS_A_PASSWORD}"),
    (("--positions", "a.csv", "--spark-conf", "spark.hadoop.fs.s3a.secret.key=hidden"), "has a secret"),
    (("--positions", "a.csv", "--sink", "a=s3a://key:hidden@jobs/out"), f"--sink{HAS_A_PASSWORD}"),
])  # fmt: skip
def test_what_does_not_go_together_is_wrong_use_before_anything_is_read(tmp_path, path, options, complaint):
    made = run("positions", "plan", *clusters(tmp_path), "--out", str(path), *options)
    assert made.exit_code == 2, made.output
    assert complaint in said(made) and "hidden" not in said(made)
