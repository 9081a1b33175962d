"""`groups list` in its three forms: the same facts, no name that a terminal obeys, nothing unseen shown as a number."""

import csv
import json
from dataclasses import replace
from io import StringIO

import pytest

from migrate.described_group import ListedGroup
from migrate.extras.inventory.listing import inventory_of, listing_csv, listing_document, listing_lines
from migrate.model import TopicPartition
from migrate.survey.filters import Filters
from migrate.survey.offsets_topic import GroupKind, GroupRecord, PastCommit
from tests.extras.inventory.unit.inventoryscene import DENIED, NO_SHARE, FakeGroups, commits, read
from tests.fakes import FakeClock
from tests.unit.describedgroups import group, member

FIELDS = (
    "group", "kind", "protocol_type", "state", "members", "assignor", "coordinator", "topics", "partitions_committed",
    "partitions_of_its_topics", "lag", "lag_partitions_unknown", "attention",
)  # fmt: skip
ACTIVITY_FIELDS = (
    "last_commit_ms", "empty_since_ms", "expires_ms", "seconds_between_commits", "records_between_commits",
)  # fmt: skip
NOW_MS = FakeClock().now_ms()
EVIL = "evil\x1b[2J,=cmd"


def cluster() -> FakeGroups:
    return FakeGroups(
        {
            "billing": group(member(orders=(0, 1)), assignor="range"), "never": group(protocol_type=""), EVIL: group(),
            "partly": group(), "console-consumer-1": group(),
        },
        {"sharers": ListedGroup("share", "share", NO_SHARE)},
        {
            "billing": commits(orders_0=90, orders_1=97), "never": {}, EVIL: commits(orders_0=150),
            "partly": commits(orders_0=99, gone_0=1),
        },
        {"orders": 2},
    )  # fmt: skip


def inventory(**changes):
    seen = cluster()
    for name, value in changes.items():
        setattr(seen, name, value)
    return inventory_of(read(seen, Filters()))


@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_table_fits_and_has_every_group_with_its_numbers(width):
    lines = list(listing_lines(inventory(), width, False))
    assert all(len(line) <= width for line in lines)
    (at,) = (number for number, line in enumerate(lines) if line.startswith("billing"))
    # A long name leaves the numbers no room beside it on a narrow page: they are below.
    assert {"Stable", "1", "2/2", "13"} <= {*lines[at].split(), *lines[at + 1].split()}
    text = "\n".join(lines)
    # A wide page has columns of their own for them.
    for expected in (
        ("kafka-1:9092 (1)", "range") if width == 200 else ("coordinator kafka-1:9092 (1)", "assignor range")
    ):
        assert expected in text


def test_what_is_not_known_is_a_question_mark_and_nothing_committed_a_hyphen():
    lines = {line.split()[0]: line.split() for line in listing_lines(inventory(), 200, False) if line.strip()}
    heading = lines["GROUP"]
    lag = heading.index("LAG")
    assert lines["never"][lag] == "-" and lines["partly"][lag] == "1+" and lines["sharers"][lag] == "?"
    assert "sharers: NO_CLIENT: no client at hand describes share groups" in "\n".join(
        listing_lines(inventory(), 200, False)
    )


def test_totals_count_kinds_states_lag_attention_and_what_filters_took():
    text = "\n".join(listing_lines(inventory(), 200, False))
    for expected in (
        "5 groups", "4 classic: 3 Empty, 1 Stable", "1 share: 1 not-visible",
        "14 records; not known of 2 partitions and 1 group", "1 alive", "1 default-exclude (by filter)",
    ):  # fmt: skip
        assert expected in text


def test_what_the_list_may_lack_is_said_and_so_are_names_that_are_not_there():
    text = "\n".join(listing_lines(inventory(may_describe=False, others=DENIED), 200, False))
    assert "NOT VISIBLE" in text and "brokers leave them out" in text and "GROUP_AUTHORIZATION_FAILED" in text
    missing = inventory_of(read(cluster(), Filters(groups_file=frozenset({"bilinng\x1b"}))))
    assert r"bilinng\x1b: no group on A has this name" in "\n".join(listing_lines(missing, 200, False))


def test_no_form_has_a_character_that_a_terminal_obeys():
    seen = inventory()
    for lines in (listing_lines(seen, 80, False), listing_csv(seen), listing_document(seen)):
        assert not any("\x1b" in line for line in lines)
    assert any("\x1b[" in line for line in listing_lines(seen, 80, True))


def in_json(found) -> list[dict[str, object]]:
    return json.loads("\n".join(listing_document(found)))["groups"]


def in_csv(found) -> list[dict[str, str]]:
    return list(csv.DictReader(StringIO("\r\n".join(listing_csv(found)))))


def test_json_has_null_and_a_reason_for_what_is_not_visible():
    document = json.loads("\n".join(listing_document(inventory())))
    groups = {found["group"]: found for found in document["groups"]}
    assert (document["side"], document["cluster"], document["totals"]["groups"]) == ("source", "A", 5)
    assert groups["billing"]["coordinator"] == {"id": 1, "host": "kafka-1", "port": 9092}
    assert (groups["billing"]["lag"], groups["billing"]["not_visible"]) == (13, {})
    unseen = {"state", "members", "assignor", "coordinator", *FIELDS[7:11]}
    no_client = "NO_CLIENT: no client at hand describes share groups"
    assert groups["sharers"]["not_visible"] == dict.fromkeys(unseen, no_client)
    assert {groups["sharers"][field] for field in unseen} == {None}
    assert groups["never"]["lag"] is None and groups["never"]["not_visible"] == {}
    assert (groups["partly"]["lag"], groups["partly"]["lag_partitions_unknown"]) == (1, 1)
    assert groups["partly"]["not_visible"] == {"lag": "gone: UNKNOWN_TOPIC_OR_PARTITION: not there"}
    assert groups[EVIL]["attention"] == ["never-committed-partitions", "commit-beyond-log-end"]


def with_records():
    made = {TopicPartition("orders", 0): NOW_MS - 90 * 86_400_000}
    seen = cluster()
    billing = dict.fromkeys(seen.committed["billing"], NOW_MS - 5_000)
    newest = {next(iter(billing)): (PastCommit(NOW_MS - 10_200, 0), PastCommit(NOW_MS - 5_000, 312))}
    seen.records = {
        "billing": GroupRecord(GroupKind.CLASSIC, "consumer", None, billing, newest=newest),
        "partly": GroupRecord(GroupKind.SIMPLE, committed_ms=made | {TopicPartition("gone", 0): NOW_MS}),
        EVIL: GroupRecord(GroupKind.SIMPLE, committed_ms=made),
    }  # fmt: skip
    return read(seen, Filters(), with_records=True)


@pytest.mark.parametrize("width", [60, 80, 160, 240])
def test_with_records_the_table_says_when_how_often_and_until_when(width):
    lines = list(listing_lines(inventory_of(with_records()), width, False))
    assert all(len(line) <= width for line in lines)
    # Words may be broken over two lines of a narrow page.
    text = " ".join(" ".join(lines).split())
    for expected in ("5 s", "5.2 s, 312 records", "90 d") if width == 240 else ("last-commit 5 s", "every 5.2 s"):
        assert expected in text
    assert "1 for 90 days or more" in text and "2 not known" in text
    assert "A keeps unused offsets 7 days" in text


def test_with_idle_the_table_counts_what_it_leaves_out():
    found = inventory_of(with_records(), 30 * 86_400_000)
    text = "\n".join(listing_lines(found, 200, False))
    assert [g.group for g in found.groups] == [EVIL, "never", "sharers"]
    assert "2 groups in use, or used since (--idle)" in text
    assert json.loads("\n".join(listing_document(found)))["totals"]["not_idle"] == 2


def denied():
    seen = cluster()
    seen.records = DENIED
    return read(seen, Filters(), with_records=True)


@pytest.mark.parametrize(("found", "more"), [
    (inventory(), ()), (inventory_of(with_records()), ACTIVITY_FIELDS), (inventory_of(denied()), ACTIVITY_FIELDS),
    # New columns come last: scripts take places.
    (inventory_of(read(cluster()), earlier=read(cluster())), ("stalled_partitions",)),
], ids=["plain", "records", "records denied", "stalled"])  # fmt: skip
def test_csv_says_what_json_says_of_what_was_asked_for_with_words_for_what_is_not_visible(found, more):
    for told, cells in zip(in_json(found), in_csv(found), strict=True):
        assert list(cells) == [*FIELDS, *more] and set(told) == {*FIELDS, *more, "not_visible"}
        for field in {"state", "lag", "last_commit_ms", "stalled_partitions"} & cells.keys():
            absent = "not-visible" if field in told["not_visible"] else ""
            assert cells[field] == (absent if told[field] is None else str(told[field]))
        assert cells["topics"] == ("not-visible" if told["topics"] is None else " ".join(told["topics"]))


def test_what_records_tell_of_a_group_is_in_its_fields():
    by_name = {told["group"]: told for told in in_json(inventory_of(with_records()))}
    assert [by_name["billing"][field] for field in ACTIVITY_FIELDS] == [NOW_MS - 5_000, None, None, 5.2, 312]
    assert by_name[EVIL]["last_commit_ms"] == NOW_MS - 90 * 86_400_000 and by_name[EVIL]["attention"][0] == "idle"
    assert [by_name["never"][field] for field in ACTIVITY_FIELDS] == [None] * 5
    assert "last_commit_ms" in by_name["never"]["not_visible"], "a group that is listed has records somewhere"
    assert in_csv(inventory_of(with_records()))[0]["seconds_between_commits"] == "5.2"
    unread = inventory_of(denied())
    (line,) = (line for line in listing_lines(unread, 240, False) if line.startswith("billing"))
    assert line.split()[8:11] == ["?", "?", "?"] and all(told["not_visible"] for told in in_json(unread))


def test_no_groups_are_no_table():
    lines = list(listing_lines(inventory_of(read(FakeGroups())), 80, False))
    assert "Groups       0 groups" in lines and not any("COORDINATOR" in line for line in lines)
    assert not any("Stalled" in line for line in lines), "of one look nothing is said of stalling"


def test_what_has_stalled_is_counted_with_the_time_between_the_looks():
    first = read(cluster(), Filters())
    found = inventory_of(replace(first, time_ms=first.time_ms + 30_000), earlier=first)
    text = "\n".join(listing_lines(found, 200, False))
    assert "1 stalled" in text and "1 group committed nothing further on 2 partitions with lag in 30 s" in text
    by_name = {told["group"]: told for told in in_json(found)}
    assert [by_name[group]["stalled_partitions"] for group in ("billing", "never", "sharers")] == [2, 0, None]
    assert by_name["billing"]["attention"] == ["stalled", "alive"]
