"""What a plan is asked for: its filters match in full and each taker is named; its policies are spelt right."""

import pytest

from migrate.errors import UsageError
from migrate.survey.filters import Filters, is_one_name, read_groups_file
from migrate.survey.policies import UNTRANSLATABLE_REASONS, Policies, Untranslatable, parse_untranslatable

TEAMS = {"groups": ["team-.*", "x"], "exclude_groups": ["team-b.*"], "topics": ["o.*"], "exclude_topics": ["other"]}


@pytest.mark.parametrize(("options", "group", "topic", "taken_by"), [
    ({}, "connect-sink", "t", None),
    ({}, "__internal", "t", "default-exclude"),
    ({}, "console-consumer-123", "t", "default-exclude"),
    (TEAMS, "team-a", "orders", None),
    (TEAMS, "xx", "orders", "group"),
    (TEAMS, "my-team-a", "orders", "group"),
    (TEAMS, "team-b1", "orders", "exclude-group"),
    (TEAMS, "team-a", "other", "exclude-topic"),
    (TEAMS, "team-a", "a.orders", "topic"),
    # The default exclude holds unless the group is named literally.
    ({"groups": [".*"]}, "__x", "t", "default-exclude"),
    ({"groups": ["__x"]}, "__x", "t", None),
    ({"groups": ["__x"], "exclude_groups": ["__.*"]}, "__x", "t", "exclude-group"),
])  # fmt: skip
def test_patterns_match_in_full_and_each_taker_is_named(options, group, topic, taken_by):
    assert Filters.from_options(**options).verdict(group, topic) == taken_by


def test_a_name_whose_dots_are_escaped_is_a_name():
    filters = Filters.from_options(groups=[r"com\.acme\.biling", r"__my\.own", "x|y"])
    assert filters.unknown_names({"com.acme.billing", "__my.own"}) == ("com.acme.biling",)
    assert filters.verdict("__my.own", "t") is None and filters.verdict("comXacme.biling", "t") == "group"


@pytest.mark.parametrize("name", ["team:/@#biling", "my biling", "zahlung-ü", r"a\+b"])
def test_a_name_may_have_any_character_that_means_nothing_in_an_expression(name):
    filters, literally = Filters.from_options(groups=[name]), name.replace("\\", "")
    assert filters.unknown_names({"team:billing"}) == (literally,) and filters.unknown_names({literally}) == ()
    assert all(map(is_one_name, filters.groups))


def test_an_expression_is_no_name_and_one_that_java_reads_otherwise_is_refused():
    for expression in ("a+b", "a|b", "a.*", "[ab]", "(a)", "^a", "a$", "a{2}", r"\d", r"a\wb", "a?"):
        assert Filters.from_options(groups=[expression]).unknown_names({"x"}) == ()
    for text in (r"\p{Lu}", "[a-z&&[^b]]", "[[a]", r"\Qx\E", "a{99999999999}", "("):
        with pytest.raises(UsageError, match="number 1"):
            Filters.from_options(groups=[text])


def test_a_groups_file_narrows_and_names_what_the_cluster_lacks(tmp_path):
    wave = tmp_path / "wave.txt"
    wave.write_bytes("# wave 1\r\n\r\n  orders \r\npaymënts\r\na#b\r\n__x\r\n".encode())
    filters = Filters.from_options(groups_file=wave)
    assert filters.groups_file == {"orders", "paymënts", "a#b", "__x"}
    assert [filters.verdict(group, "t") for group in ("orders", "__x", "other")] == [None, None, "groups-file"]
    assert Filters.from_options(groups=["pay.*"], groups_file=wave).verdict("orders", "t") == "group"
    assert filters.unknown_names({"orders", "x", "__x"}) == ("a#b", "paymënts")
    assert Filters.from_options().unknown_names({"x"}) == ()


@pytest.mark.parametrize(
    ("content", "told"), [(None, "cannot be read"), (b"# nothing\n\n", "names no group"), (b"\xff\xfe", "not UTF-8")]
)
def test_a_groups_file_that_cannot_serve_is_refused_by_name(tmp_path, content, told):
    file = tmp_path / "wave.txt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UsageError, match=rf"--groups-file .*wave.txt.*{told}"):
        read_groups_file(file)


def test_a_bad_expression_is_told_with_its_option_and_its_place():
    for argument in ("groups", "exclude_groups", "topics", "exclude_topics"):
        option = f"--{argument.replace('_', '-').removesuffix('s')}"
        with pytest.raises(UsageError, match=rf"{option} '\(x' \(number 2\)"):
            Filters.from_options(**{argument: ["ok", "(x"]})


def test_groups_that_are_left_out_by_name_are_excluded_as_they_are_spelt_and_no_others():
    filters = Filters.from_options(("team.*",), ("team.x",)).without(["team.a", "team(b"])
    groups = ("team.a", "team-a", "team(b", "team.c", "team.x")
    assert [group for group in groups if filters.group_verdict(group)] == ["team.a", "team(b", "team.x"]


def test_every_untranslatable_commit_blocks_but_for_a_default_and_choices_by_reason():
    assert {Policies().for_reason(reason) for reason in UNTRANSLATABLE_REASONS} == {Untranslatable.BLOCK}
    policies = Policies((), *parse_untranslatable(["skip", "commit-beyond-log-end=latest"]))
    assert policies.for_reason("commit-beyond-log-end") is Untranslatable.LATEST
    assert policies.for_reason("topic-not-replicated") is Untranslatable.SKIP


def test_no_offset_can_be_set_on_a_partition_that_does_not_exist():
    for reason in ("target-topic-missing", "target-partition-missing"):
        with pytest.raises(UsageError, match="no partition"):
            parse_untranslatable([f"{reason}=earliest"])
        assert Policies((), *parse_untranslatable(["earliest"])).for_reason(reason) is Untranslatable.BLOCK


def test_unknown_words_are_refused_and_latest_which_skips_records_needs_a_reason():
    with pytest.raises(UsageError, match="needs a reason"):
        parse_untranslatable(["latest"])
    for text in ("later", "commit-beyond-log-end=later", "commit=skip"):
        with pytest.raises(UsageError):
            parse_untranslatable([text])
