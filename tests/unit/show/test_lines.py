"""Lines of text: within the width where words allow, and no word is cut or lost."""

from hypothesis import given
from hypothesis import strategies as st

from migrate.show.lines import aligned, wrapped
from migrate.text import cells

words = st.lists(st.text("abc注é", min_size=1, max_size=9), min_size=1, max_size=30)


@given(words, st.integers(10, 60), st.sampled_from(["", "* "]))
def test_a_line_is_as_full_as_it_can_be_wider_only_for_one_word_and_no_word_is_lost(text, width, start):
    lines = [line[len(start) :] for line in wrapped(" ".join(text), width, start)]
    room = width - len(start)
    assert [word for line in lines for word in line.split()] == text
    assert all(cells(line) <= room or len(line.split()) == 1 for line in lines)
    for line, following in zip(lines, lines[1:], strict=False):
        assert cells(line) + 1 + cells(following.split()[0]) > room


def test_texts_stand_beside_their_labels():
    lines = list(aligned([("Plan", "one two three"), ("Settings", "x")], 18))
    assert lines == ["Plan      one two", "          three", "Settings  x"]
