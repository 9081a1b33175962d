"""Names by a map: the first line that matches decides, a line that is wrong is named; topics' are known both ways."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.errors import UsageError
from migrate.mm2.flow import ANY, Cluster, Flow
from migrate.mm2.name_map import NameMap, NoNameOfItsOwn, read_name_map
from migrate.mm2.naming import PolicyKind, ReversedPolicy
from migrate.mm2.other_names import MappedNames
from migrate.model import Side

HEADING = "source_group,target_group"


def map_of(*lines: str, kind: str = "group") -> NameMap:
    return NameMap.from_lines(f"--{kind}-map", "names.csv", kind, lines)


def test_a_name_is_mapped_by_its_line_and_keeps_its_own_without_one():
    names = map_of(HEADING, "orders,orders-eu", "", "# a note", ' "a,b","c ""d""" ')
    assert [names.mapped(g) for g in ("orders", "a,b", "orders2")] == ["orders-eu", 'c "d"', "orders2"]


def test_an_expression_matches_the_whole_name_and_its_groups_are_in_the_replacement():
    names = map_of(r"regex:team-(.*)\.(?P<what>x+),\g<what>-\1")
    assert names.mapped("team-a.xx") == "xx-a"
    assert names.mapped("my-team-a.xx") == "my-team-a.xx"
    assert names.mapped("team-a.xxy") == "team-a.xxy"


def test_the_first_line_that_matches_decides_of_whatever_form():
    names = map_of(HEADING, "a1,by-name", r"regex:a(\d),by-digit-\1", "a2,too-late", "regex:a.*,by-letter")
    assert [names.mapped(g) for g in ("a1", "a2", "a3", "ab")] == ["by-name", "by-digit-2", "by-digit-3", "by-letter"]
    assert [line.number for line in names.idle_lines(["a1", "a2", "a3", "ab"])] == [4]


@pytest.mark.parametrize("kind", ["group", "topic"])
def test_the_heading_names_what_is_mapped(kind):
    assert map_of(f"Source_{kind}, target_{kind}", "a,b", kind=kind).mapped("a") == "b"
    with pytest.raises(UsageError, match=f"expected source_{kind},target_{kind} as the first line".capitalize()):
        map_of("source_x,target_x", "a,b", kind=kind)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["a,b"], "line 1: a before a heading. Expected source_group,target_group as the first line."),
        (["regex:x,y", HEADING], "line 2: source_group before a heading"),
        ([HEADING, "a"], "line 2: 1 cells. Expected 2: source_group,target_group or regex:EXPRESSION,REPLACEMENT"),
        ([HEADING, "a,b,c"], "line 2: 3 cells"),
        ([HEADING, "", 'a,"b'], "line 3: no CSV"),
        ([HEADING, "a,"], "line 2: an empty name"),
        ([HEADING, " ,b"], "line 2: an empty name"),
        (["regex:,b"], "line 1: an empty name"),
        ([HEADING, "a,b", "a,c"], "line 3: a, which line 2 maps. Expected each group once."),
        (["regex:(,b"], "line 1: (, no regular expression"),
        (["regex:[a-z&&[^x]],b"], "character class operations are not supported"),
        ([r"regex:a,\1"], r"line 1: the replacement \1"),
        ([r"regex:a,\g<x>"], r"line 1: the replacement \g<x>"),
        (["regex:(a),$1"], r"line 1: the replacement $1. Expected \1, or \g<name>, for a group of the expression."),
        ([], "--group-map names.csv maps no group."),
        ([HEADING], "--group-map names.csv maps no group."),
    ],
)
def test_a_wrong_line_is_refused_with_file_line_and_what_was_expected(lines, said):
    with pytest.raises(UsageError, match=re.escape(said)) as refused:
        map_of(*lines)
    assert "--group-map names.csv" in str(refused.value)
    assert re.search(r"\. (Expected|Write) .+\.$", str(refused.value))


def test_a_replacement_that_leaves_nothing_of_a_name_is_refused():
    names = map_of(r"regex:team-(.*),\1")
    assert names.mapped("team-a") == "a"
    with pytest.raises(UsageError, match=re.escape("line 1 (regex:team-(.*)): group team- would be without a name")):
        names.mapped("team-")


def test_two_names_to_one_are_refused_by_both_with_or_without_a_line_of_their_own():
    names = map_of(HEADING, "a,x", "b,x", "c,d")
    assert names.all_mapped(["a", "c"]) == {"a": "x", "c": "d"}
    with pytest.raises(UsageError, match="groups a and b would both be x on the target"):
        names.all_mapped(["b", "a"])
    with pytest.raises(UsageError, match="groups c and d would both be d on the target"):
        names.all_mapped(["c", "d"])
    with pytest.raises(UsageError, match="groups b and x would both be x on the target"):
        names.all_mapped(["x", "b"])
    with pytest.raises(UsageError, match="groups a and z would both be a on the target"):
        map_of(HEADING, "z,a").all_mapped(["a", "z"])


def test_all_names_that_would_share_one_are_told_of_at_once():
    names = map_of(HEADING, "a,x", "b,x", "c,x", "d,e")
    with pytest.raises(NoNameOfItsOwn) as refused:
        names.all_mapped(["d", "c", "b", "a", "e", "f"])
    assert sorted(refused.value.names) == ["a", "b", "c", "d", "e"]
    with pytest.raises(NoNameOfItsOwn) as refused:
        map_of(r"regex:team-(.*),\1").mapped("team-")
    assert refused.value.names == ("team-",)


@given(st.dictionaries(st.text(min_size=1), st.text(min_size=1), min_size=1))
def test_what_csv_writes_is_read_back(pairs):
    printable = {s: t for s, t in pairs.items() if not re.search(r"[\s\x1c-\x1f\x85\x00]", s + t) and s[0] != "#"}
    plain = {s: t for s, t in printable.items() if not s.startswith("regex:")}
    if plain:
        quoted = [",".join('"{}"'.format(cell.replace('"', '""')) for cell in pair) for pair in plain.items()]
        names = map_of(HEADING, *quoted)
        assert {source: names.mapped(source) for source in plain} == plain


def test_a_file_is_read_as_utf_8_and_named_where_it_cannot_be(tmp_path):
    file = tmp_path / "names.csv"
    file.write_bytes(b"\xef\xbb\xbfsource_group,target_group\r\npaym\xc3\xabnts,zahlungen\r\n")
    assert read_name_map("--group-map", file, "group").mapped("paymënts") == "zahlungen"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="is not UTF-8 text"):
        read_name_map("--group-map", file, "group")
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_name_map("--group-map", tmp_path / "none.csv", "group")


MAP = ("source_topic,target_topic", "orders,eu.orders", r"regex:team-(.*),\1", "payments,orders")


def names(*lines: str, topics: tuple[str, ...] | None = None) -> MappedNames:
    made = MappedNames("A", "B", NameMap.from_lines("--topic-map", "m.csv", "topic", lines) if lines else NameMap())
    return made if topics is None else made.knowing(topics)


def test_without_a_map_names_are_unchanged_both_ways_and_kafkas_own_are_no_copies():
    plain = names()
    assert plain.kind is PolicyKind.IDENTITY
    assert (plain.target_topic("t"), plain.source_topic("t"), plain.why_not_replicated("t")) == ("t", "t", None)
    assert plain.source_topic("__consumer_offsets") is None
    assert plain.why_not_replicated("__consumer_offsets") == "__consumer_offsets is an internal topic of Kafka."


def test_a_map_is_known_both_ways_once_topics_were_listed():
    known = names(*MAP, topics=("orders", "team-a", "t", "__consumer_offsets"))
    assert [known.target_topic(t) for t in ("orders", "team-a", "t")] == ["eu.orders", "a", "t"]
    assert [known.source_topic(t) for t in ("eu.orders", "a", "t")] == ["orders", "team-a", "t"]
    assert known.source_topic("__consumer_offsets") is None and known.source_topic("orders") is None
    assert known.kind is PolicyKind.MAP


def test_two_topics_that_share_a_name_on_the_target_are_both_refused_and_named():
    known = names(*MAP, topics=("payments", "team-orders", "t"))
    said = "On B the topic orders would be the copy of {} as well: where records of two topics are mixed, no position "
    assert known.why_not_replicated("payments").startswith(said.format("team-orders"))
    assert known.why_not_replicated("team-orders").startswith(said.format("payments"))
    assert known.source_topic("orders") is None and known.why_not_replicated("t") is None


def test_the_way_back_has_the_same_names_turned_round():
    flow = Flow(
        Cluster(Side.SOURCE, "A", {}), Cluster(Side.TARGET, "B", {}), names(*MAP), Side.SOURCE, "", "",
        replicator=ANY,
    )  # fmt: skip
    back = flow.reversed().knowing(("orders", "team-a", "team-b", "b"))
    assert isinstance(back.policy, ReversedPolicy)
    assert [back.policy.target_topic(t) for t in ("eu.orders", "a")] == ["orders", "team-a"]
    assert back.why_not_replicated("eu.orders") == ""
    assert (
        back.why_not_replicated("b") == "By its name b is not a copy of a topic of A: A has no place for this commit."
    )
    assert back.why_not_replicated("other")
