"""Lines of text: within the width where words allow, and no word is cut or lost."""

from hypothesis import given
from hypothesis import strategies as st

from migrate.show.lines import aligned, wrapped
from migrate.text import cells

words = st.lists(st.text("abc注é", min_size=1, max_size=9), min_size=1, max_size=30)


@given(words, st.integers(10, 60))
def test_wrapping_keeps_every_word_whole_and_in_order(text, width):
    lines = list(wrapped(" ".join(text), width, "* "))
    assert [word for line in lines for word in line[2:].split()] == text


@given(words, st.integers(12, 60))
def test_a_line_is_wider_than_the_page_only_if_one_word_is(text, width):
    for line in wrapped(" ".join(text), width, "* "):
        assert cells(line) <= width or len(line[2:].split()) == 1


@given(words, st.integers(20, 60))
def test_a_line_is_broken_only_where_the_next_word_would_not_fit(text, width):
    lines = list(wrapped(" ".join(text), width))
    for line, following in zip(lines, lines[1:], strict=False):
        assert cells(line) + 1 + cells(following.split()[0]) > width


def test_texts_stand_beside_their_labels():
    lines = list(aligned([("Plan", "one two three"), ("Settings", "x")], 18))
    assert lines == ["Plan      one two", "          three", "Settings  x"]
