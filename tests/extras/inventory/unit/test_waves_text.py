"""`groups waves` as text: every wave and its file, what is too large and why, and what is in none."""

import re

import pytest

from migrate.extras.inventory.waves import groups_to_move, wave_report, waves_by_prefix, waves_by_topics
from migrate.model import Side
from tests.extras.inventory.unit.inventoryscene import DENIED, FakeGroups, commits, read
from tests.unit.describedgroups import group


def report(most=2, side=Side.SOURCE, prefix=None, width=80):
    names = ("eu-a", "eu-b", "us-a", "alone")
    topics = {
        "eu-a": commits(hub_0=1),
        "eu-b": commits(hub_0=1, t_0=1),
        "us-a": commits(hub_0=1),
        "alone": commits(u_0=1),
    }
    cluster = FakeGroups(
        {name: group() for name in (*names, "idle", "denied")}, committed={**topics, "denied": DENIED}, side=side
    )
    found = read(cluster, with_ends=False)
    moved = groups_to_move(found)
    waves = waves_by_prefix(moved.reads, most, prefix) if prefix else waves_by_topics(moved.reads, most)
    files = [f"my waves/wave{number}.txt" for number in range(1, len(waves.waves) + 1)]
    return list(wave_report(found, waves, moved, files, width, False))


@pytest.mark.parametrize("width", [80, 200])
def test_every_wave_has_a_line_with_its_file(width):
    lines = report(width=width)
    assert lines[0] == "2 waves of 4 groups on A (source)" and all(len(line) <= width for line in lines)
    assert [line.split(maxsplit=4) for line in lines if line.endswith(".txt")] == [
        ["1", "3", "1", "2", "my waves/wave1.txt"], ["2", "1", "1", "1", "my waves/wave2.txt"],
    ]  # fmt: skip


def test_a_wave_that_is_too_large_names_the_topics_that_hold_it_together():
    text = " ".join(report())
    assert (
        "its 3 groups go together" in text and "hub: read by 3 groups; without it the largest part would have 1" in text
    )
    assert "--by 'prefix REGEX'" in text
    assert "too large" not in " ".join(report(most=3)) and "--by" not in " ".join(report(most=3))


def test_topics_that_two_waves_read_are_named():
    assert any("Read in more than one wave: hub" in line for line in report(prefix=re.compile("[a-z]+-"), most=2))


def test_groups_in_no_wave_are_named_with_the_reason():
    text = "\n".join(report())
    assert "1 group: no commit is visible, so there is nothing to move: idle" in text
    assert "denied: GROUP_AUTHORIZATION_FAILED" in text


def test_the_next_command_is_for_groups_of_the_source_only():
    assert "  mm2-migrate plan --groups-file 'my waves/wave1.txt' --out wave1.plan" in report()
    assert not any("mm2-migrate plan" in line for line in report(side=Side.TARGET))
