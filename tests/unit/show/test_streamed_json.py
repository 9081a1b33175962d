"""A document in lines: valid whatever its lists hold, and made as it is taken."""

import json
from itertools import islice

import pytest

from migrate.show.table import document_lines


@pytest.mark.parametrize("first", [[], [{"a": 1}], [{"a": 1}, {"a": "\u6ce8\n"}]])
def test_the_lines_are_the_document_with_an_entry_to_a_line(first):
    lines = list(document_lines({"count": 2}, {"first": first, "last": []}))
    assert json.loads("".join(lines)) == {"count": 2, "first": first, "last": []}
    assert len(lines) == 2 + 1 + 2 * 2 + len(first) and "\n".join(lines).isascii()


def test_entries_are_taken_when_their_lines_are():
    endless = ({"n": n} for n in iter(int, 1))
    assert list(islice(document_lines({}, {"rows": endless}), 3)) == ["{", '"rows": [', '{"n": 0},']
