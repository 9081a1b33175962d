"""The lanes of `scripts/test --long`: every test file is in exactly one; each is to end within 40 minutes on two cores.

python -m tests.lanes                the names of the lanes
python -m tests.lanes match          the files of one
python -m tests.lanes --sixth HASH   the files of a sixth of the long scenes, another one for most commits
"""

import sys
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent

# What is run, by lane: folders and files. Two workers take the files in this order, so the longest come first.
LANES = {
    "match": (
        "integration/test_exact.py",
        "unit/match",
        "integration/test_cutover.py",
    ),
    "plan": (
        "integration/test_variants.py",
        "integration/test_converters.py",
        "integration/test_many_partitions.py",
        "integration/test_checks_live.py",
        "integration/test_any_replicator.py",
        "integration/test_connect_worker.py",
        "integration/test_refusals.py",
        "integration/test_failback.py",
        "integration/test_other_clocks.py",
        "integration/test_record_reader.py",
        "unit/checks",
        "unit/mm2",
        "unit/plan",
        "unit/survey",
    ),
    "apply": (
        "integration/test_killed_apply.py",
        "integration/test_rolling_target.py",
        "integration/test_dying_jvm.py",
        "integration/test_demo.py",
        "integration/test_runbook.py",
        "integration/test_renamed_groups.py",
        "integration/test_signals.py",
        "integration/test_verify.py",
        "integration/test_record_proof.py",
        "integration/test_portrait.py",
        "integration/test_exact_bytes.py",
        "unit/apply",
    ),
    "groups": (
        "integration/test_status.py",
        "integration/test_group_facts.py",
        "integration/test_admin.py",
    ),
    "spark": (
        "integration/test_spark_cluster.py",
        "integration/test_topic_commits.py",
        "integration/test_spark_reading.py",
        "spark",
        "unit/spark",
    ),
    "extras": ("extras",),
    "edges": (
        "integration/test_ending_credentials.py",
        "integration/test_msk_iam.py",
        "integration/test_kerberos.py",
        "integration/test_broken_network_reading.py",
        "integration/test_security.py",
        "integration/test_broken_network.py",
        "integration/test_lab.py",
        "integration/test_addresses.py",
        "browser",
        "unit/cli",
        "unit/kafka",
        "unit/show",
        "unit/test_*.py",
    ),
}


def files_of(lane: str) -> Iterator[Path]:
    """Yield the test files of a lane, in the order in which they are run."""
    for entry in LANES[lane]:
        folder = TESTS / entry
        yield from sorted(folder.rglob("test_*.py") if folder.is_dir() else TESTS.glob(entry))


SIXTHS = 6


def long_files() -> list[Path]:
    """Return the files that have tests which only `--long` runs."""
    return [file for lane in LANES for file in files_of(lane) if "pytest.mark.long" in file.read_text()]


def sixth_of_long(commit: str) -> list[Path]:
    """Return a sixth of these files, by a commit's hash; each sixth has some of most lanes."""
    return long_files()[int(commit[:8], 16) % SIXTHS :: SIXTHS]


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--sixth", commit]:
            print(*sixth_of_long(commit), sep="\n")
        case [lane]:
            print(*files_of(lane), sep="\n")
        case _:
            print(*LANES, sep="\n")
