"""Properties files: read as Java reads them, and refused without telling a value."""

import pytest

from migrate.errors import ConfigError
from migrate.mm2.java_properties import read_properties


def written(tmp_path, content):
    path = tmp_path / "client.properties"
    path.write_bytes(content)
    return path


def test_lines_are_read_by_javas_rules(tmp_path):
    path = written(
        tmp_path,
        b"# comment\n! comment\n\na = 1\nb:2\nc 3\nd\n"
        b"e=x \\\n    y\nf=a\\\\b\\u00e9\\t|\na=again\nA->B.enabled = true\ng=\xc3\xa9\n",
    )
    assert read_properties(path) == {
        "a": "again",
        "b": "2",
        "c": "3",
        "d": "",
        "e": "x y",
        "f": "a\\bé\t|",
        "A->B.enabled": "true",
        "g": "Ã©",  # bytes are Latin-1, as in Java
    }


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"a=1\n# c\nb=x\\\n y\nssl.key.password=C:\\users\\hunter2\n", r"client\.properties, line 5"),
        (None, r"client\.properties: there is no such file"),
        ("a=b".encode("utf-8-sig"), "line 1: .* byte order mark"),
        ("a=b".encode("utf-16"), "line 1: .* byte order mark"),
        ("bootstrap.servers=x:1\n".encode("utf-16-le"), "NUL bytes"),
    ],
    ids=["a malformed escape", "no file", "UTF-8 with a mark", "UTF-16", "UTF-16 without a mark"],
)
def test_what_cannot_be_read_is_refused_with_its_line_and_without_a_value(tmp_path, content, told):
    path = written(tmp_path, content) if content else tmp_path / "client.properties"
    with pytest.raises(ConfigError, match=told) as caught:
        read_properties(path)
    assert "hunter2" not in str(caught.value)
