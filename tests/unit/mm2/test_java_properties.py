"""Properties files: read as Java reads them, and refused without telling a value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from javaproperties import dumps

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
        b"e=x \\\n    y\nf=a\\\\b\\u00e9\\t|\na=again\nA->B.enabled = true\n",
    )
    assert read_properties(path) == {
        "a": "again",
        "b": "2",
        "c": "3",
        "d": "",
        "e": "x y",
        "f": "a\\bé\t|",
        "A->B.enabled": "true",
    }


def test_bytes_are_latin_1_as_in_java(tmp_path):
    assert read_properties(written(tmp_path, "k=é".encode())) == {"k": "Ã©"}


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_what_is_written_is_read_back(tmp_path_factory, settings):
    path = tmp_path_factory.mktemp("round") / "x.properties"
    path.write_bytes(dumps(settings).encode("latin-1"))
    assert read_properties(path) == settings


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"missing\.properties: there is no such file"):
        read_properties(tmp_path / "missing.properties")


def test_a_directory_is_named_as_one(tmp_path):
    with pytest.raises(ConfigError, match="is a directory"):
        read_properties(tmp_path)


def test_a_malformed_escape_is_told_with_its_line_and_without_the_value(tmp_path):
    path = written(tmp_path, b"a=1\n# c\nb=x\\\n y\nssl.key.password=C:\\users\\hunter2\n")
    with pytest.raises(ConfigError) as caught:
        read_properties(path)
    assert f"{path}, line 5" in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("content", ["a=b".encode("utf-8-sig"), "a=b".encode("utf-16")])
def test_a_byte_order_mark_is_refused(tmp_path, content):
    with pytest.raises(ConfigError, match="line 1: .* byte order mark"):
        read_properties(written(tmp_path, content))


def test_a_file_with_nul_bytes_is_refused_as_no_text(tmp_path):
    with pytest.raises(ConfigError, match="NUL bytes"):
        read_properties(written(tmp_path, "bootstrap.servers=x:1\n".encode("utf-16-le")))
