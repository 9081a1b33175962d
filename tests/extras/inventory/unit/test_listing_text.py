"""`groups list` in its three forms: the same facts, no name that a terminal obeys, nothing unseen shown as a number."""

import csv
import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest

from migrate.described_group import ListedGroup
from migrate.extras.inventory.listing import DAY_MS, inventory_of, listing_csv, listing_document, listing_lines
from migrate.model import TopicPartition
from migrate.survey.filters import Filters
from migrate.survey.offsets_topic import GroupKind, GroupRecord, PastCommit
from tests.extras.inventory.unit.inventoryscene import DENIED, NO_SHARE, FakeGroups, commits, read
from tests.fakes import FakeClock
from tests.unit.describedgroups import group, member
from tests.unit.goldenfiles import compare_with_golden

GOLDEN = Path(__file__).parents[1] / "golden"
COLUMNS = (GOLDEN / "list.csv").read_text().splitlines()[0].split(",")
FIELDS, ACTIVITY_FIELDS = COLUMNS[:13], COLUMNS[13:18]
NOW_MS = FakeClock().now_ms()
EVIL = "evil\x1b[2J,=cmd"


def seen(filters=None, with_records=False, **changes):
    committed = {
        "billing": commits(orders_0=90, orders_1=97), "never": {}, EVIL: commits(orders_0=150),
        "partly": commits(orders_0=99, gone_0=1),
    }  # fmt: skip
    others = {"sharers": ListedGroup("share", "share", NO_SHARE)}
    consumers = dict.fromkeys([EVIL, "partly", "console-consumer-1"], group())
    consumers |= {"billing": group(member(orders=(0, 1)), assignor="range"), "never": group(protocol_type="")}
    cluster = FakeGroups(consumers, committed=committed, partitions={"orders": 2}, **{"others": others} | changes)
    return read(cluster, filters or Filters(), with_records=with_records)


def seen_with_records():
    made = {TopicPartition("orders", 0): NOW_MS - 90 * DAY_MS}
    billing = {TopicPartition("orders", p): NOW_MS - 5_000 for p in (0, 1)}
    newest = {TopicPartition("orders", 0): (PastCommit(NOW_MS - 10_200, 0), PastCommit(NOW_MS - 5_000, 312))}
    records = {
        "billing": GroupRecord(GroupKind.CLASSIC, "consumer", None, billing, newest=newest),
        "partly": GroupRecord(GroupKind.SIMPLE, committed_ms=made | {TopicPartition("gone", 0): NOW_MS}),
        EVIL: GroupRecord(GroupKind.SIMPLE, committed_ms=made),
    }  # fmt: skip
    return seen(with_records=True, records=records)


def text_of(found, width=200):
    return "\n".join(listing_lines(found, width, False))


def documents(found):
    return {told["group"]: told for told in json.loads("\n".join(listing_document(found)))["groups"]}


FORMS = {
    "60.txt": lambda found: listing_lines(found, 60, False),
    "240.txt": lambda found: listing_lines(found, 240, False),
    "json": listing_document,
    "csv": listing_csv,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_golden_one_and_has_no_character_that_a_terminal_obeys(form):
    first = seen_with_records()
    found = inventory_of(replace(first, time_ms=first.time_ms + 30_000), earlier=first)
    lines = list(FORMS[form](found))
    compare_with_golden(f"list.{form}", "\n".join(lines) + "\n", GOLDEN)
    assert not any("\x1b" in line for line in lines)
    assert not form.endswith("txt") or all(len(line) <= int(form[:-4]) for line in lines)


def test_colours_are_the_only_control_characters():
    assert any("\x1b[" in line for line in listing_lines(inventory_of(seen()), 80, True))


def test_of_what_was_not_asked_nothing_is_said():
    for found, more in (
        (inventory_of(seen()), []), (inventory_of(seen_with_records()), ACTIVITY_FIELDS),
        # New columns come last: scripts take places.
        (inventory_of(seen(), earlier=seen()), ["stalled_partitions"]),
    ):  # fmt: skip
        assert next(listing_csv(found)).split(",") == FIELDS + more
        assert all(set(told) == {*FIELDS, *more, "not_visible"} for told in documents(found).values())
        assert ("Stalled" in text_of(found)) is (more == ["stalled_partitions"])
    none = text_of(inventory_of(read(FakeGroups())), 80)
    assert "Groups       0 groups" in none.splitlines() and "COORDINATOR" not in none


def test_what_the_list_may_lack_is_said_and_so_are_names_that_are_not_there():
    text = text_of(inventory_of(seen(may_describe=False, others=DENIED)))
    assert "NOT VISIBLE" in text and "brokers leave them out" in text and "GROUP_AUTHORIZATION_FAILED" in text
    missing = inventory_of(seen(Filters(groups_file=frozenset({"bilinng\x1b"}))))
    assert r"bilinng\x1b: no group on A has this name" in text_of(missing)
    unread = inventory_of(seen(with_records=True, records=DENIED))
    (line,) = (line for line in listing_lines(unread, 240, False) if line.startswith("billing"))
    assert line.split()[8:11] == ["?", "?", "?"] and all(each["not_visible"] for each in documents(unread).values())
    cells = next(csv.DictReader(StringIO("\r\n".join(listing_csv(unread)))))
    assert {cells[field] for field in ACTIVITY_FIELDS} == {"not-visible"}


def test_with_idle_the_table_counts_what_it_leaves_out():
    found = inventory_of(seen_with_records(), 30 * DAY_MS)
    assert [g.group for g in found.groups] == [EVIL, "never", "sharers"]
    assert "2 groups in use, or used since (--idle)" in text_of(found)
    assert json.loads("\n".join(listing_document(found)))["totals"]["not_idle"] == 2
