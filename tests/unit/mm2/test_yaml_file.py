"""YAML, and what is none."""

import pytest

from migrate.errors import ConfigError
from migrate.mm2.yaml_file import yaml_documents


def read(tmp_path, text, **options):
    path = tmp_path / "f.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return yaml_documents(path, "Do this.", **options)


@pytest.mark.parametrize("text", ["a: [secret", b"\xff\xfe\x00", "!!python/object:os.system {}", "a: *nowhere"])
def test_what_is_no_yaml_is_named_with_its_line_and_never_quoted(tmp_path, text):
    with pytest.raises(ConfigError, match=r"f\.yaml(, line \d+)?: this is not valid YAML\. Do this\.") as failed:
        read(tmp_path, text)
    assert "secret" not in str(failed.value)


def test_a_key_that_is_there_twice_is_refused_where_asked_for(tmp_path):
    with pytest.raises(ConfigError, match="line 2: 'a' is there twice"):
        read(tmp_path, "a: 1\na: 2\n", is_strict=True)
    assert read(tmp_path, "a: 1\na: 2\n") == [{"a": 2}]
