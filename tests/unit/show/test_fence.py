"""The ACLs that keep groups from starting again: whom they deny what, and which groups they cannot name."""

import shlex

import pytest

from migrate.errors import UsageError
from migrate.model import Decision
from migrate.show.fence import fence
from migrate.text import shell_word
from tests.builders import make_plan, make_row, make_untranslated

FLOW = {"source_bootstrap": "a1:9092,a2:9092", "target_bootstrap": "b:1"}


def plan(*groups, **header):
    return make_plan([make_row(group) for group in groups], **({"flow": FLOW} | header))


def commands(lines, word="--add"):
    """The commands among the lines, as the shell splits them, that have this word."""
    typed = [shlex.split(line) for line in lines if line.lstrip().startswith("kafka-acls.sh ")]
    return [words for words in typed if {word, "--deny-principal"} <= {*words}]


def values(words, option):
    return [words[i + 1] for i, word in enumerate(words) if word == option]


def test_every_group_of_the_plan_is_denied_read_on_the_cluster_that_it_leaves_and_allowed_again_by_the_same_words():
    lines = list(fence(plan("billing", "crm", "it's me"), None, ()))
    (add,), (remove,) = commands(lines), commands(lines, "--remove")
    expected = {
        "--bootstrap-server": ["a1:9092,a2:9092"], "--deny-principal": ["User:*"], "--operation": ["Read"],
        "--group": ["billing", "crm", "it's me"],
    }  # fmt: skip
    assert {option: values(add, option) for option in expected} == expected
    assert [w for w in add if w != "--add"] == [w for w in remove if w not in ("--remove", "--force")]
    assert "--force" in remove, "nobody is asked a question"
    lines = fence(plan("billing", flow={"source_bootstrap": "[::1]:9092"}), None, ())
    assert any("--bootstrap-server '[::1]:9092' " in line for line in lines), "no pattern for bash"


def test_a_group_that_the_plan_blocks_is_not_fenced_unless_it_is_named_and_then_with_a_warning():
    bad = make_untranslated(Decision.BLOCK, "commit-beyond-log-end", "bad")
    made = make_plan([make_row("good"), bad], flow=FLOW)
    lines = list(fence(made, None, ()))
    (words,) = commands(lines)
    assert values(words, "--group") == ["good"] and "1 group not fenced: the plan blocks bad" in " ".join(lines)
    named = list(fence(made, "bad", ()))
    assert values(commands(named)[0], "--group") == ["bad"] and "WARNING: the plan blocks bad" in " ".join(named)
    assert "blocks" not in " ".join(fence(made, "good", ()))
    with pytest.raises(UsageError, match="The plan blocks all of its groups, bad: none is moved"):
        fence(make_plan([bad], flow=FLOW), None, ())


def test_principals_and_one_group_can_be_named():
    (words,) = commands(fence(plan("billing", "crm"), "crm", ("User:app", "User:CN=x, OU=y")))
    assert values(words, "--deny-principal") == ["User:app", "User:CN=x, OU=y"]
    assert values(words, "--group") == ["crm"]


@pytest.mark.parametrize("group", ["*", " blank", "\x01billing", "billing\x1b", "\t", "x\x1f", "a\x00b"])
def test_a_name_that_kafka_acls_takes_for_another_is_never_typed_but_named(group):
    lines = list(fence(plan(group, "fine"), None, ()))
    assert values(commands(lines)[0], "--group") == ["fine"]
    assert "1 group not fenced" in " ".join(lines)
    with pytest.raises(UsageError, match="cannot be named in an ACL"):
        fence(plan(group, "fine"), group, ())


@pytest.mark.parametrize("group", ["\u00a0x", "x\u3000", "\x85x", "a\x1bb", "a b"])
def test_a_name_of_which_java_cuts_nothing_is_fenced_as_it_is(group):
    line = next(line for line in fence(plan(group), None, ()) if "--add --deny" in line)
    assert line.endswith(f"--group {shell_word(group)}")


@pytest.mark.parametrize(
    ("made", "group", "principals", "said"),
    [
        *((plan("g"), None, (name,), "TYPE:NAME") for name in ("app", "User:", ":app", " User:app", "")),
        (plan("g"), "other", (), "no group other"),
        (plan("g", kind="undo"), None, (), "undo"),
    ],
)
def test_a_principal_without_type_or_name_a_group_that_the_plan_lacks_and_an_undo_are_refused(
    made, group, principals, said
):
    with pytest.raises(UsageError, match=said):
        fence(made, group, principals)


def test_it_says_within_the_width_what_it_does_and_does_not_do_and_no_name_reaches_the_terminal_raw():
    lines = list(fence(plan("\x1b[2Jevil", "e\x1b[2Jvil", "g"), None, (), width=72))
    assert all(len(line) <= 72 for line in lines if "kafka-acls.sh" not in line)
    text = " ".join(" ".join(lines).split())
    assert "\x1b" not in text
    for words in ("Stop their consumers first", "GROUP_AUTHORIZATION_FAILED", "super users", "assign()", "by this"):
        assert words in text
