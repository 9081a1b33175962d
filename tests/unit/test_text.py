"""Other people's names on a terminal: shown, never obeyed."""

import os
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.text import (
    cells,
    name,
    parse_duration,
    safe,
    shell_word,
    utf16_units,
    wants_colour,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("zahlungen größe 注文 back\\slash", "zahlungen größe 注文 back\\slash"),
        ("a\nb", r"a\nb"),
        ("a\x1b[2Jb", r"a\x1b[2Jb"),
        ("evil\u202etxt", r"evil\u202etxt"),
        ("lone\udc80", r"lone\udc80"),
    ],
)
def test_what_is_not_plainly_visible_is_escaped_and_all_else_kept(text, shown):
    assert safe(text) == shown


@given(st.text(st.characters()))
def test_safe_text_is_printable_encodes_to_utf_8_and_is_not_escaped_twice(text):
    assert safe(text).isprintable() and safe(safe(text)) == safe(text)
    safe(text).encode()


@pytest.mark.parametrize(("text", "shown"), [("", '""'), (" a", '" a"'), ("a ", '"a "'), ("a", "a")])
def test_a_name_whose_ends_nobody_would_see_stands_in_quotes(text, shown):
    assert name(text) == shown


@pytest.mark.parametrize(
    ("text", "columns", "units"),
    [("", 0, 0), ("größe", 5, 5), ("注文", 4, 2), ("e\u0301", 1, 2), ("\uff71", 1, 1), ("a\U0001f600\x00", None, 4)],
)
def test_width_is_what_a_terminal_takes_and_length_what_java_counts(text, columns, units):
    assert columns is None or cells(text) == columns
    assert utf16_units(text) == units == len(text.encode("utf-16-le")) // 2


@pytest.mark.parametrize(
    ("is_terminal", "environment", "wanted"),
    [(True, {}, True), (False, {}, False), (True, {"NO_COLOR": "1"}, False), (True, {"NO_COLOR": ""}, True),
     (True, {"TERM": "dumb"}, False)],
)  # fmt: skip
def test_colour_is_for_terminals_that_want_it(is_terminal, environment, wanted):
    assert wants_colour(is_terminal, environment) is wanted


HOSTILE = ["pl\udce4ne.plan", "a b", "it's", "$(id)", "`id`", "a\nb", "\x1b[2J", "注文\u200b", "\\x41'\n", "x\x1b41"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize("text", HOSTILE)
def test_bash_reads_a_shell_word_as_exactly_the_name(text):
    word = shell_word(text)
    assert word.isprintable()
    done = subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, check=True)
    assert done.stdout == os.fsencode(text)  # also of a file name that is no text


@pytest.mark.parametrize(
    ("text", "seconds"), [("45s", 45), ("30m", 1800), ("12H", 43_200), (" 90 d", 7_776_000), ("2w", 1_209_600)]
)
def test_a_length_of_time_is_a_whole_number_and_a_unit(text, seconds):
    assert parse_duration(text) == 1000 * seconds


@pytest.mark.parametrize("text", ["", "7", "d", "-1d", "1.5d", "7 days", "1y"])
def test_any_other_length_of_time_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match="use for example 90d"):
        parse_duration(text)
