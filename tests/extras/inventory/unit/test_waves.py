"""Waves: every group once, no part divided, none too full unless one part alone is; their files, and their text."""

import errno
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.described_group import ListedGroup
from migrate.errors import MigrateError, Refused
from migrate.extras.inventory.waves import (
    NO_COMMITS,
    NOT_IN_A_FILE,
    OTHER_KIND,
    WavePart,
    groups_to_move,
    refuse_waves_in,
    wave_report,
    waves_by_prefix,
    waves_by_topics,
    write_waves,
)
from migrate.model import Side
from migrate.survey.filters import read_groups_file
from tests.extras.inventory.unit.inventoryscene import DENIED, GOLDEN, NO_SHARE, FakeGroups, commits, read
from tests.unit.describedgroups import group, member
from tests.unit.goldenfiles import compare_with_golden

reads = st.dictionaries(st.text("abc", max_size=3), st.frozensets(st.sampled_from("tuvwxyz"), max_size=3), max_size=14)


def wave_of(waves) -> dict[str, int]:
    placed = [(name, number) for number, wave in enumerate(waves.waves) for part in wave for name in part.groups]
    assert len(placed) == len(dict(placed)), "a group is in two waves"
    return dict(placed)


@given(reads, st.integers(1, 6))
def test_every_group_is_in_one_wave_with_those_it_shares_a_topic_with_and_no_wave_is_larger_than_it_must_be(
    topics, most
):
    waves = waves_by_topics(topics, most)
    placed = wave_of(waves)
    assert placed.keys() == topics.keys() and waves.across == ()
    for one, of_one in topics.items():
        for other, of_other in topics.items():
            assert not of_one & of_other or placed[one] == placed[other]
    too_large = {number for number, wave in enumerate(waves.waves, 1) if sum(len(part.groups) for part in wave) > most}
    assert too_large == {oversized.wave for oversized in waves.oversized}
    assert all(len(waves.waves[number - 1]) == 1 for number in too_large)
    largest = [max(len(part.groups) for part in wave) for wave in waves.waves]
    assert largest == sorted(largest, reverse=True)
    for part in (part for wave in waves.waves for part in wave):
        reached = {part.groups[0]}
        while more := {g for g in part.groups if any(topics[g] & topics[r] for r in reached)} - reached:
            reached |= more
        assert reached == set(part.groups), "no part holds more than shared topics hold together"
        assert set(part.topics) == frozenset().union(*(topics[g] for g in part.groups))


def test_the_topics_that_hold_a_large_part_together_come_first_where_they_hold_most():
    topics = {f"a{n}": {"hub", "a"} for n in range(3)} | {f"b{n}": {"hub", "b"} for n in range(3)}
    (oversized,) = waves_by_topics(topics, 4).oversized
    assert [(hub.topic, hub.readers, hub.largest_without) for hub in oversized.hubs] == [
        ("hub", 6, 3), ("a", 3, 6), ("b", 3, 6),
    ]  # fmt: skip


def test_by_prefix_names_decide_and_topics_that_are_read_in_two_waves_are_named():
    topics = {"eu-a": {"t"}, "eu-b": {"u"}, "us-a": {"t"}, "other": {"v"}}
    waves = waves_by_prefix(topics, 2, re.compile("[a-z]+-"))
    assert [[part.groups for part in wave] for wave in waves.waves] == [[("eu-a", "eu-b")], [("other",), ("us-a",)]]
    assert waves.across == ("t",)
    grouped = waves_by_prefix(topics, 2, re.compile("(eu|us)-a?"))
    assert wave_of(grouped)["eu-a"] == wave_of(grouped)["eu-b"]
    # Names of which nothing is matched have nothing in common.
    for expression in ("[a-z]*", "(x-)?"):
        apart = waves_by_prefix({"1a": {"t"}, "2b": {"u"}}, 1, re.compile(expression))
        assert [[part.groups for part in wave] for wave in apart.waves] == [[("1a",)], [("2b",)]]


def test_groups_that_no_plan_moves_are_in_no_wave_and_of_which_not_all_is_visible_are_not_said_to_have_nothing():
    hidden, moving = group(member(secret=(0,))), group(member(), state="PreparingRebalance")
    consumers = {
        "fine": group(member(pay=(0,))), "never": group(), "#odd": group(), "denied": group(),
        "half": ListedGroup.unseen(DENIED), "untold": ListedGroup("classic", "consumer", DENIED),
        "hidden": hidden, "partly": hidden, "moving": moving, "new": moving, "idle": group(member()),
    }  # fmt: skip
    committed = ("fine", "#odd", "streams", "half", "partly", "moving", "idle")
    cluster = FakeGroups(
        consumers,
        {"sharers": ListedGroup("share", "share", NO_SHARE), "streams": group(kind="streams")},
        {name: commits(orders_0=1) for name in committed} | {"denied": DENIED},
        {"orders": 1, "pay": 1},
    )
    moved = groups_to_move(read(cluster))
    assert moved.reads == {
        "fine": {"orders", "pay"}, "partly": {"orders", "secret"},
        **dict.fromkeys(("half", "moving", "idle"), {"orders"}),
    }  # fmt: skip
    assert moved.left_out == {NO_COMMITS: ("never",), NOT_IN_A_FILE: ("#odd",), OTHER_KIND: ("sharers", "streams")}
    assert moved.unread.keys() == {"denied", "half", "untold", "hidden", "partly", "moving", "new"}
    assert "rebalancing" in moved.unread["moving"]


@pytest.mark.parametrize("name", ["#x", " x", "x ", "x\ny", "x\ry", "", b"\xff".decode("utf-8", "surrogateescape")])
def test_a_name_that_a_groups_file_would_change_is_left_out(name):
    moved = groups_to_move(read(FakeGroups({name: group()}, committed={name: commits(t_0=1)})))
    assert moved.left_out == {NOT_IN_A_FILE: (name,)} and not moved.reads


WAVES = (
    (WavePart(("billing", "grün"), ("orders", "pay")), WavePart(("crm",), ("clicks",))),
    (WavePart(("x" * 249,), tuple(f"t{n}" for n in range(40))),),
)


def test_the_option_groups_file_reads_what_was_written(tmp_path):
    written = write_waves(WAVES, tmp_path)
    assert [path.name for path in written] == ["wave1.txt", "wave2.txt"]
    assert [read_groups_file(path) for path in written] == [{"billing", "grün", "crm"}, {"x" * 249}]
    assert written[0].read_text().splitlines()[:2] == ["# Wave 1 of 2: 3 groups", "# 2 groups on orders, pay"]


def test_a_folder_with_any_wave_is_refused_and_left_as_it_is(tmp_path):
    for name in ("wave.txt", "my-wave1.txt"):
        (tmp_path / name).write_text("")
    refuse_waves_in(tmp_path)
    (tmp_path / "wave17.txt").write_text("yesterday's\n")
    with pytest.raises(Refused, match="wave17.txt.*not overwritten"):
        write_waves(WAVES, tmp_path)
    assert len([*tmp_path.iterdir()]) == 3 and (tmp_path / "wave17.txt").read_text() == "yesterday's\n"


def test_where_one_cannot_be_written_none_is_left(tmp_path, monkeypatch):
    opened = Path.open

    def failing(path, *mode, **options):
        if path.name == "wave2.txt":
            raise OSError(errno.ENOSPC, "No space left on device")
        return opened(path, *mode, **options)

    monkeypatch.setattr(Path, "open", failing)
    with pytest.raises(MigrateError, match="No space left"):
        write_waves(WAVES, tmp_path)
    assert list(tmp_path.iterdir()) == []


def report(most=2, side=Side.SOURCE, prefix=None):
    committed = {name: commits(hub_0=1) for name in ("eu-a", "us-a")}
    committed |= {"eu-b": commits(hub_0=1, t_0=1), "alone": commits(u_0=1), "denied": DENIED}
    groups = dict.fromkeys([*committed, "idle"], group())
    found = read(FakeGroups(groups, committed=committed, side=side), with_ends=False)
    moved = groups_to_move(found)
    waves = waves_by_prefix(moved.reads, most, prefix) if prefix else waves_by_topics(moved.reads, most)
    files = [f"my waves/wave{number}.txt" for number in range(1, len(waves.waves) + 1)]
    return list(wave_report(found, waves, moved, files, 80, False))


@pytest.mark.parametrize("by", ["topics", "prefix"])
def test_the_report_is_the_golden_one_and_its_next_command_is_for_groups_of_the_source_only(by):
    prefix = re.compile("[a-z]+-") if by == "prefix" else None
    lines = report(prefix=prefix)
    compare_with_golden(f"waves-{by}.txt", "\n".join(lines) + "\n", GOLDEN)
    assert all(len(line) <= 80 for line in lines) and any("mm2-migrate plan" in line for line in lines)
    assert not any("mm2-migrate plan" in line for line in report(side=Side.TARGET, prefix=prefix))
