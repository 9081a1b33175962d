"""`groups describe` in its three forms: the columns of Kafka's own tool, and words for what is not visible."""

import csv
import json
from io import StringIO

import pytest

from migrate.described_group import ListedGroup
from migrate.extras.inventory.describe import (
    describe_groups,
    description_csv,
    description_document,
    description_lines,
    lines_beside_csv,
)
from tests.extras.inventory.unit.inventoryscene import DENIED, NO_SHARE, FakeGroups, commits, read
from tests.unit.describedgroups import group, member

FIELDS = (
    "group", "topic", "partition", "current_offset", "log_end_offset", "lag", "consumer_id", "host", "client_id",
)  # fmt: skip
LONG = "rdkafka-8c3fcd8d-e2e9-4724-848b-1e8995b294dc"


def seen():
    cluster = FakeGroups(
        {"live": group(member(LONG, orders=(0, 1))), "denied": group(member(pay=(0,))), "beyond\x1b": group()},
        {"sharers": ListedGroup("share", "share", NO_SHARE)},
        {"live": commits(orders_0=90, pay_0=1, lost_3=4), "denied": DENIED, "beyond\x1b": commits(pay_0=160)},
        {"orders": 2, "pay": 1},
    )
    found = read(cluster)
    return found, describe_groups(found)


def text(width: int, colour: bool = False) -> str:
    return "\n".join(description_lines(*seen(), width, colour))


def test_a_wide_page_has_the_columns_of_kafkas_tool_and_its_values():
    lines = [line.split() for line in text(200).splitlines()]
    assert [
        "GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID",
    ] in lines  # fmt: skip
    client = f"client-of-{LONG}"
    for expected in (
        ["live", "orders", "0", "90", "100", "10", LONG, "/10.0.0.7", client],
        ["live", "orders", "1", "-", "100", "-", LONG, "/10.0.0.7", client],
        ["live", "pay", "0", "1", "100", "99", "-", "-", "-"],
        ["live", "lost", "3", "4", "?", "?", "-", "-", "-"],
        ["denied", "pay", "0", "?", "100", "?", "c-1", "/10.0.0.7", "client-of-c-1"],
        [r"beyond\x1b", "pay", "0", "160", "100", "-60", "-", "-", "-"],
    ):
        assert expected in lines


@pytest.mark.parametrize("width", [80, 110])
def test_a_narrow_page_names_each_member_once_above_its_partitions(width):
    lines = text(width).splitlines()
    assert all(len(line) <= width for line in lines)
    assert sum(LONG in line and "at /10.0.0.7" in line for line in lines) == 1
    assert "  no member:" in lines and not any("CONSUMER-ID" in line for line in lines)


def test_each_group_has_a_line_of_its_own_with_state_coordinator_and_sum():
    found = text(200)
    assert "live  Stable  classic; 1 member; coordinator kafka-1:9092 (1); lag 109 (not known of 1 partition)" in found
    assert (
        "beyond\\x1b  Empty  classic; 0 members; coordinator kafka-1:9092 (1); lag not known; 1 commit beyond" in found
    )
    assert "sharers  ?  share; not visible; lag not visible" in found and "denied: GROUP_AUTHORIZATION_FAILED" in found


def test_csv_has_empty_cells_for_none_and_words_for_what_is_not_visible():
    rows = list(csv.DictReader(StringIO("\r\n".join(description_csv(seen()[1])))))
    assert list(rows[0]) == list(FIELDS)
    by_place = {(row["group"], row["topic"], row["partition"]): row for row in rows}
    assert by_place["live", "orders", "1"]["current_offset"] == by_place["live", "orders", "1"]["lag"] == ""
    assert by_place["live", "lost", "3"]["log_end_offset"] == "not-visible"
    assert by_place["denied", "pay", "0"]["current_offset"] == "not-visible"
    assert by_place[r"beyond\x1b", "pay", "0"]["lag"] == "-60"


def test_groups_that_have_no_line_in_csv_are_counted_and_named_unless_they_are_not_visible():
    names = [f"idle-{number:02}" for number in range(25)]
    cluster = FakeGroups(
        {"busy": group(member("c", pay=(0,))), "denied": group(), **{name: group() for name in names}},
        committed={"busy": commits(pay_0=1), "denied": DENIED},
        partitions={"pay": 1},
    )
    described = describe_groups(read(cluster))
    none = "no line: nothing committed or assigned."
    assert list(lines_beside_csv(described)) == [f"25 groups have {none} {', '.join(names[:20])} and 5 more"]
    alone = [found for found in described if found.group in ("busy", "denied", "idle-03")]
    assert list(lines_beside_csv(alone)) == [f"1 group has {none} idle-03"] and not list(lines_beside_csv(alone[:2]))


def test_json_has_every_partition_and_why_something_is_null():
    document = json.loads("\n".join(description_document(*seen())))
    groups = {found["group"]: found for found in document["groups"]}
    assert [p["lag"] for p in groups["live"]["partitions"]] == [10, None, None, 99]
    assert groups["live"]["lag"] == 109
    assert groups["live"]["not_visible"] == {"log_end_offset": "lost: UNKNOWN_TOPIC_OR_PARTITION: not there"}
    assert groups["denied"]["lag"] is None
    assert groups["denied"]["not_visible"] == {"commits": "GROUP_AUTHORIZATION_FAILED: not authorized"}
    assert groups["sharers"]["coordinator"] is None
    no_client = "NO_CLIENT: no client at hand describes share groups"
    assert groups["sharers"]["not_visible"] == {"members": no_client, "commits": no_client}


def crowded():
    """Three members on two partitions, and a name that a terminal would obey."""
    members = (member("c-1", orders=(0,)), member("c-2", orders=(1,)), member("c-3\x1b"))
    found = read(FakeGroups({"crowded": group(*members)}, committed={"crowded": commits(orders_0=90)},
                            partitions={"orders": 2}))  # fmt: skip
    return found, describe_groups(found)


@pytest.mark.parametrize("width", [80, 200])
def test_idle_members_are_counted_and_named(width):
    assert "No groups." in list(description_lines(read(FakeGroups()), (), width, False))
    lines = list(description_lines(*crowded(), width, False))
    assert all(len(line) <= width for line in lines)
    assert "3 members, 1 of them idle" in " ".join(" ".join(lines).split())
    at = lines.index("  Idle, with no partition assigned:")
    assert lines[at + 1] == r"    c-3\x1b at /10.0.0.7, client client-of-c-3\x1b"


def test_idle_members_have_a_place_in_json_and_beside_csv():
    found, described = crowded()
    (document,) = json.loads("".join(description_document(found, described)))["groups"]
    assert document["idle_members"] == [
        {"consumer_id": "c-3\x1b", "host": "/10.0.0.7", "client_id": "client-of-c-3\x1b"}
    ]
    assert list(lines_beside_csv(described)) == [
        r"crowded: 1 of 3 members is idle, with no partition assigned: c-3\x1b"
    ]
    live, *_, sharers = json.loads("".join(description_document(*seen())))["groups"]
    assert live["idle_members"] == [] and sharers["idle_members"] is None
