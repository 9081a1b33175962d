"""The matching laws in many simulated worlds, judged by brute force: 10,000 rows, 200,000 with `--long`.

What each kind of violation means stands in `tests/world/kinds.py`; a failure prints the smallest world that has it,
and the command that finds it again.
"""

import pytest

from tests.world.tally import Asked, Draw, Tally, tally
from tests.world.troubles import LOSSY, TROUBLES

ROWS, LONG_ROWS = 1_000, 2_000
SEEDS, LONG_SEEDS = 10, 100
AIM, ALONE = 0.95, 0.99

# Residues of an earlier log equal no record of the present one, and may be owed ones in another shape; what retention
# removed on the source can't be compared. Rows among these are bounded by the laws themselves. Of the others nearly all
# stand at the best one trouble at a time; crossed with records that look alike, or with a topic whose equality nothing
# tells, some stay below it, and say so.
UNKNOWABLE = frozenset({"source-recreated", "source-truncated", "source-retention", "retention-while-reading"})


def pytest_generate_tests(metafunc):
    if "seed" in metafunc.fixturenames:
        count = LONG_SEEDS if metafunc.config.getoption("--long") else SEEDS
        metafunc.parametrize("seed", range(1, count + 1))


@pytest.fixture
def rows(request) -> int:
    return LONG_ROWS if request.config.getoption("--long") else ROWS


def told(sums: Tally, ask: Asked, command: str) -> str:
    """Every kind of violation with its smallest example."""
    kinds = sorted(sums.failures)
    counts = ", ".join(f"{kind} {sums.failures[kind]}" for kind in kinds)
    examples = "".join(f"\n\n--- {kind}\n{sums.example(kind, ask)}" for kind in kinds)
    return f"{counts} of {sums.rows} rows; again: python -m tests.world {command}{examples}"


def assert_lawful(ask: Asked, draw: Draw, seed: int, rows: int, options: str = "") -> Tally:
    sums = tally(ask, draw, seed, rows)
    assert sums.rows >= rows
    assert not sums.failures, told(sums, ask, f"--seed {seed} --rows {rows} {options}")
    return sums


def test_no_law_is_broken_where_troubles_cross(seed, rows):
    assert_lawful(Asked(), Draw(), seed, rows)


def test_no_law_is_broken_where_little_may_be_read():
    for match_limit in (0, 10, 40):
        assert_lawful(Asked(match_limit=match_limit), Draw(), match_limit, 500, f"--match-limit {match_limit}")


def test_no_law_is_broken_in_tiny_worlds_whose_edges_are_near():
    assert_lawful(Asked(), Draw(size=0.2), 1, 2_000, "--size 0.2")


def test_without_trouble_every_row_is_exact():
    sums = assert_lawful(Asked(), Draw(only=True), 1, 1_000, "--only")
    assert sums.exact == sums.at_best == sums.rows


def test_where_records_are_neither_dropped_nor_changed_almost_every_row_stands_at_the_best(request):
    rows = 40_000 if request.config.getoption("--long") else 5_000
    draw = Draw(unwanted=LOSSY | UNKNOWABLE)
    sums = tally(Asked(), draw, 1, rows)
    assert sums.kept_rows == sums.rows
    assert sums.kept_at_best >= AIM * sums.kept_rows, f"{sums.kept_at_best} of {sums.kept_rows}"


@pytest.mark.parametrize("trouble", sorted(TROUBLES.keys() - LOSSY - UNKNOWABLE))
def test_one_trouble_alone_leaves_almost_every_row_at_the_best(trouble):
    sums = tally(Asked(), Draw(wanted=(trouble,), only=True), 1, 300)
    assert not sums.failures
    assert sums.kept_at_best >= ALONE * sums.kept_rows, f"{sums.kept_at_best} of {sums.kept_rows}"
