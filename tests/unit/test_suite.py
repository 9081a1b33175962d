"""The suite itself: what runs when, and that nothing is left out unnoticed."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.lanes import LANES, SIXTHS, files_of, long_files, sixth_of_long

REPOSITORY = Path(__file__).parents[2]
NO_TEST_RAN = 5


def run_pytest(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *words]
    return subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)


def test_every_test_file_is_in_exactly_one_lane_of_the_long_run() -> None:
    lanes = Counter(file for lane in LANES for file in files_of(lane))
    assert lanes == dict.fromkeys((REPOSITORY / "tests").rglob("test_*.py"), 1)


def test_every_file_with_long_scenes_is_in_one_of_the_sixths_that_ci_adds_by_a_commits_hash() -> None:
    sixths = Counter(file for n in range(SIXTHS) for file in sixth_of_long(f"{n:08x}{'f' * 32}"))
    assert sixths == dict.fromkeys(long_files(), 1) and sixths


def test_a_quick_run_leaves_out_the_folders_that_need_a_jvm_or_a_browser() -> None:
    files = ("spark/test_mm2_topics.py", "integration/test_exact.py", "browser/test_report.py")
    ran = run_pytest("-m", "not spark and not kafka and not browser", *(f"tests/{file}" for file in files))
    assert ran.returncode == NO_TEST_RAN, ran.stdout


@pytest.mark.parametrize(
    "name", ["test_signals.py", "test_exact.py::test_a_plan_says_not_drained_of_what_is_not_and_of_nothing_else"]
)
def test_a_long_test_is_left_out_of_other_runs_and_not_skipped(name: str) -> None:
    ran = run_pytest("--collect-only", f"tests/integration/{name}")
    assert "deselected" in ran.stdout and "skipped" not in ran.stdout


def test_a_skip_whose_reason_is_not_listed_fails_in_ci_and_only_there() -> None:
    name = "tests/unit/kafka/test_client_security.py::test_pem_files_serve_as_trust_and_key_store"
    nowhere = {"PATH": "/nonexistent"}
    here, in_ci = run_pytest(name, **nowhere), run_pytest(name, CI="true", **nowhere)
    assert here.returncode == 0 and "1 skipped" in here.stdout, here.stdout
    assert in_ci.returncode == 1 and f"{name} - Skipped: openssl is needed to make a certificate" in in_ci.stdout, (
        in_ci.stdout
    )
