"""The options of positions outside Kafka: what they mean together, and what is wrong use."""

import pytest

from tests.unit.commands import clusters, run


def refused(tmp_path, *options: str) -> str:
    made = run("plan", *clusters(tmp_path), "--out", str(tmp_path / "c.plan"), *options)
    assert made.exit_code == 2, made.output
    return " ".join(made.stderr.split())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--positions", "jobs.xlsx"), "unknown format"),
        (("--positions", "jobs"), "unknown format"),
        (("--positions", "a.csv", "--positions", "a.csv"), "--positions a.csv is given twice"),
        (("--spark-checkpoint", "s3a://jobs/orders"), "expected NAME=URL"),
        (("--spark-checkpoint", "=s3a://jobs/orders"), "expected NAME=URL"),
        (("--spark-checkpoint", "a="), "expected NAME=URL"),
        (("--spark-checkpoint", "a=x", "--spark-checkpoint", "a=y"), "--spark-checkpoint names a twice"),
        (("--positions", "a.csv", "--sink", "a"), "expected HOLDER=URL"),
        (("--no-groups",), "none are given"),
        (("--stateful", "job"), "none are given"),
        (("--sink", "job=x"), "none are given"),
        (("--positions", "a.csv", "--source-down"), "--source-down and positions outside Kafka exclude each other"),
        (("--positions", "a.csv", "--no-groups", "--group", "g"), "--no-groups excludes --group"),
        (("--positions", "s3a://key:hidden@jobs/a.csv"), "--positions: a URL holds a password"),
        (("--positions", "s3a://key:hid/hidden@jobs/a.csv"), "--positions: a URL holds a password"),
        (("--positions", "s3a://key:hidden@jobs/a.txt"), "--positions: a URL holds a password"),
        (("--spark-checkpoint", "s3a://key:hidden@jobs/a"), "--spark-checkpoint: a URL holds a password"),
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
    assert "password" not in refused(tmp_path, "--spark-checkpoint", "q=hdfs://nn:8020/user/me@corp/q", "--source-down")
