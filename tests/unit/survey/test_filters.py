"""The tool's own filters: full match, excludes win, and the taker is named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.errors import UsageError
from migrate.survey.filters import Filters, is_one_name, read_groups_file

NAMES = st.text("ab_-.c", min_size=1, max_size=6) | st.sampled_from(["__x", "console-consumer-1", "connect-s"])
PATTERNS = st.lists(st.sampled_from(["a.*", "b", ".*", "__x", "c+", "connect-.*"]), max_size=2)


def test_without_options_everything_stays_but_kafkas_own_groups():
    filters = Filters.from_options()
    assert filters.verdict("orders", "t") is None
    assert filters.verdict("connect-sink", "t") is None
    assert filters.verdict("__internal", "t") == "default-exclude"
    assert filters.verdict("console-consumer-123", "t") == "default-exclude"


def test_patterns_match_in_full_and_each_taker_is_named():
    filters = Filters.from_options(
        groups=["team-.*", "x"], exclude_groups=["team-b.*"], topics=["o.*"], exclude_topics=["other"]
    )
    assert filters.verdict("team-a", "orders") is None
    assert filters.verdict("x", "orders") is None
    assert filters.verdict("xx", "orders") == "group"
    assert filters.verdict("my-team-a", "orders") == "group"
    assert filters.verdict("team-b1", "orders") == "exclude-group"
    assert filters.verdict("team-a", "other") == "exclude-topic"
    assert filters.verdict("team-a", "a.orders") == "topic"


def test_the_default_exclude_holds_unless_the_group_is_named_literally(tmp_path):
    assert Filters.from_options(groups=[".*"]).verdict("__x", "t") == "default-exclude"
    assert Filters.from_options(groups=["__x"]).verdict("__x", "t") is None
    assert Filters.from_options(groups=["__x"], exclude_groups=["__.*"]).verdict("__x", "t") == "exclude-group"
    wave = tmp_path / "wave.txt"
    wave.write_text("__x\n")
    assert Filters.from_options(groups_file=wave).verdict("__x", "t") is None


def test_a_name_whose_dots_are_escaped_is_a_name(tmp_path):
    filters = Filters.from_options(groups=[r"com\.acme\.biling", r"__my\.own", "x|y"])
    assert filters.unknown_names({"com.acme.billing", "__my.own"}) == ("com.acme.biling",)
    assert filters.unknown_names({"com.acme.biling"}) == ("__my.own",)
    assert filters.verdict("__my.own", "t") is None and filters.verdict("comXacme.biling", "t") == "group"


@pytest.mark.parametrize(
    "name", ["team:biling", "team/biling", "biling@eu", "a#b", "my biling", "zahlung-ü", r"a\+b", r"a\:b"]
)
def test_a_name_may_have_any_character_that_means_nothing_in_an_expression(name):
    filters = Filters.from_options(groups=[name])
    assert filters.unknown_names({"team:billing"}) == (name.replace("\\", ""),)
    assert all(map(is_one_name, filters.groups))
    assert filters.unknown_names({name.replace("\\", "")}) == ()


def test_an_expression_is_no_name_and_one_that_java_reads_otherwise_is_refused():
    for expression in ("a+b", "a|b", "a.*", "[ab]", "(a)", "^a", "a$", "a{2}", r"\d", r"a\wb", "a?"):
        assert Filters.from_options(groups=[expression]).unknown_names({"x"}) == ()
    for text in (r"\p{Lu}", "[a-z&&[^b]]", "[[a]", r"\Qx\E", "a{99999999999}", "("):
        with pytest.raises(UsageError, match="number 1"):
            Filters.from_options(groups=[text])


def test_a_groups_file_narrows_and_names_what_the_cluster_lacks(tmp_path):
    wave = tmp_path / "wave.txt"
    wave.write_bytes("# wave 1\r\n\r\n  orders \r\npaymënts\r\na#b\r\n".encode())
    filters = Filters.from_options(groups_file=wave)
    assert filters.groups_file == {"orders", "paymënts", "a#b"}
    assert filters.verdict("orders", "t") is None
    assert filters.verdict("other", "t") == "groups-file"
    assert Filters.from_options(groups=["pay.*"], groups_file=wave).verdict("orders", "t") == "group"
    assert filters.unknown_names({"orders", "x"}) == ("a#b", "paymënts")
    assert Filters.from_options().unknown_names({"x"}) == ()


def test_a_groups_file_that_cannot_serve_is_refused_by_name(tmp_path):
    with pytest.raises(UsageError, match=r"--groups-file .*none.txt cannot be read"):
        read_groups_file(tmp_path / "none.txt")
    empty = tmp_path / "empty.txt"
    empty.write_text("# nothing\n\n")
    with pytest.raises(UsageError, match="names no group"):
        read_groups_file(empty)
    empty.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="is not UTF-8"):
        read_groups_file(empty)


def test_a_bad_expression_is_told_with_its_option_and_its_place():
    for argument in ("groups", "exclude_groups", "topics", "exclude_topics"):
        option = f"--{argument.replace('_', '-').removesuffix('s')}"
        with pytest.raises(UsageError, match=rf"{option} '\(x' \(number 2\)"):
            Filters.from_options(**{argument: ["ok", "(x"]})


@given(PATTERNS, PATTERNS, PATTERNS, PATTERNS, NAMES, NAMES)
def test_every_commit_stays_or_is_taken_by_one_filter_that_was_given(
    groups, no_groups, topics, no_topics, group, topic
):
    filters = Filters.from_options(groups, no_groups, topics, no_topics)
    verdict = filters.verdict(group, topic)
    assert verdict in {None, "default-exclude", "groups-file", "group", "exclude-group", "topic", "exclude-topic"}
    given_for = {"group": groups, "exclude-group": no_groups, "topic": topics, "exclude-topic": no_topics}
    assert verdict is None or given_for.get(verdict, True)
    if any(p.fullmatch(group) for p in filters.exclude_groups):
        assert verdict == "exclude-group"


def test_groups_that_are_left_out_by_name_are_excluded_as_they_are_spelt_and_no_others():
    filters = Filters.from_options(("team.*",), ("team.x",)).without(["team.a", "team(b"])
    verdicts = {group: filters.group_verdict(group) for group in ("team.a", "team-a", "team(b", "team.c", "team.x")}
    assert verdicts == {
        "team.a": "exclude-group", "team-a": None, "team(b": "exclude-group", "team.c": None, "team.x": "exclude-group",
    }  # fmt: skip
