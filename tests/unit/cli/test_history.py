"""`groups history` as it is typed: what does not fit together, and what is refused before anybody is asked."""

import pytest

from tests.unit.commands import clusters, run


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--format", "parquet"), "--format parquet needs a place"),
        (("--out", "x"), "--format table is for the screen"),
        (("--format", "csv", "--out", "s3a://bucket/x.csv"), "is a URL"),
        (("--format", "csv", "--out", "s3a://key:hidden@bucket/x.csv"), "--out: a URL holds a password"),
        (("--format", "parquet", "--out", "s3a://key:hid/hidden@bucket/x"), "--out: a URL holds a password"),
        (("--format", "csv", "--out", "/nowhere/at/all.csv"), "there is no folder /nowhere/at"),
        (("--format", "json"), "'json' is not one of"),
        (("--bucket", "0m"), "--bucket 0 has no length"),
        (("--bucket", "short"), "no length of time"),
        (("--since", "yesterday"), "--since 'yesterday' is no moment"),
        (("--since", "2000", "--until", "1000"), "--since is not before --until"),
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
