"""Files of settings: read as Java and Kafka read them, refused by name and line, and never told."""

import os
from unittest.mock import patch

import pytest

from migrate.errors import ConfigError
from migrate.mm2.config_providers import Providers, provider_settings, resolved, without_providers
from migrate.mm2.java_properties import read_properties
from migrate.mm2.yaml_file import yaml_documents


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


@pytest.mark.parametrize(("content", "told"), [
    (b"a=1\n# c\nb=x\\\n y\nssl.key.password=C:\\users\\hunter2\n", r"client\.properties, line 5"),
    (None, r"client\.properties: there is no such file"),
    ("a=b".encode("utf-8-sig"), "line 1: .* byte order mark"),
    ("a=b".encode("utf-16"), "line 1: .* byte order mark"),
    ("bootstrap.servers=x:1\n".encode("utf-16-le"), "NUL bytes"),
], ids=["a malformed escape", "no file", "UTF-8 with a mark", "UTF-16", "UTF-16 without a mark"])  # fmt: skip
def test_what_cannot_be_read_is_refused_with_its_line_and_without_a_value(tmp_path, content, told):
    path = written(tmp_path, content) if content else tmp_path / "client.properties"
    with pytest.raises(ConfigError, match=told) as caught:
        read_properties(path)
    assert "hunter2" not in str(caught.value)


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


PACKAGE = "org.apache.kafka.common.config.provider"
DECLARED = {
    "config.providers": "file, env ,dir",
    "config.providers.file.class": f"{PACKAGE}.FileConfigProvider",
    "config.providers.env.class": f"{PACKAGE}.EnvVarConfigProvider",
    "config.providers.dir.class": f"{PACKAGE}.DirectoryConfigProvider",
}
SECRET = "hunter2"


@pytest.fixture
def secrets(tmp_path):
    """A file of properties and a folder of files, each with a password in it."""
    (tmp_path / "kafka.properties").write_text(
        f"password={SECRET}\nb\\:c={SECRET}3\nuser=us\u00e9r\n", encoding="utf-8"
    )
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "password").write_text(f"{SECRET}\n")
    return tmp_path


def value(text, change=None, environment=None):
    with patch.dict(os.environ, environment or {}, clear=True):
        return Providers(DECLARED | {"x": text} | (change or {}), "a.properties").value("x")


def refusal(text, change=None, environment=None):
    with pytest.raises(ConfigError) as caught:
        value(text, change, environment)
    told = str(caught.value)
    assert "x in a.properties refers to" in told
    assert SECRET not in told
    assert caught.value.todo
    return told


def test_a_file_an_environment_variable_and_a_folder_give_values_as_far_as_they_are_allowed(secrets):
    allowed = {
        "config.providers.file.param.allowed.paths": f"/elsewhere, {secrets}",
        "config.providers.env.param.allowlist.pattern": "KAFKA_.*",
    }
    for change in ({}, allowed):
        assert value(f"${{file:{secrets}/folder/../kafka.properties:password}}", change) == SECRET
        assert value("${env:KAFKA_P}", change, {"KAFKA_P": SECRET}) == SECRET
    assert value(f"${{file:{secrets}/kafka.properties:user}}") == "us\u00e9r"
    assert value(f"${{dir:{secrets}/folder:password}}") == f"{SECRET}\n"
    # A key may hold colons, but a path may not.
    assert value(f"${{file:{secrets}/kafka.properties:b:c}}") == f"{SECRET}3"


def test_references_stand_anywhere_and_what_they_stand_for_is_not_looked_into_again():
    text = 'M required username="${env:U}" password="${env:P}${env:P}";'
    told = 'M required username="${env:B}" password="p$p$";'
    assert value(text, environment={"U": "${env:B}", "P": "p$", "B": "no"}) == told
    assert value("${vault:x}") == "${vault:x}", "a provider that is not declared"


@pytest.mark.parametrize(
    ("text", "change", "names"),
    [
        ("${file:/none/kafka.properties:password}", {}, "/none/kafka.properties cannot be read (No such file"),
        ("${file:{0}/kafka.properties:passwort}", {}, "kafka.properties has no key passwort"),
        ("${file:password}", {}, "names no path"),
        ("${dir:/none:password}", {}, "no folder /none"),
        ("${dir:{0}/folder:passwort}", {}, "has no file passwort"),
        ("${dir:{0}/folder:../kafka.properties}", {}, "has no file ../kafka.properties"),
        ("${env:PASSWORT}", {}, "no environment variable PASSWORT"),
        ("${env:some:PASSWORD}", {}, "write ${env:PASSWORD}"),
        ("${env:PASSWORD}", {"config.providers.env.param.allowlist.pattern": "KAFKA_.*"}, "does not allow PASSWORD"),
        ("${env:PASSWORD}", {"config.providers.env.param.allowlist.pattern": "("}, "cannot be read"),
        ("${file:{0}/kafka.properties:password}", {"config.providers.file.param.allowed.paths": "/elsewhere"},
         "allowed.paths does not allow"),
        ("${file:{0}/folder/../../x:password}", {"config.providers.file.param.allowed.paths": "{0}"},
         "allowed.paths does not allow"),
        ("${vault:a:b}", {"config.providers": "vault", "config.providers.vault.class": "com.x.VaultConfigProvider"},
         "the provider vault is com.x.VaultConfigProvider, which this version cannot use"),
        ("${file:/x:y}", {"config.providers.file.class": ""}, "config.providers.file.class is not set"),
    ],
)  # fmt: skip
def test_a_reference_that_stands_for_nothing_is_refused_by_name(secrets, text, change, names):
    change = {key: part.replace("{0}", str(secrets)) for key, part in change.items()}
    assert names in refusal(text.replace("{0}", str(secrets)), change, {"PASSWORD": SECRET})


def test_a_file_of_secrets_that_cannot_be_parsed_is_named_without_its_content(secrets):
    bad = secrets / "bad.properties"
    bad.write_text(f"password={SECRET}\\u00zz\n")
    assert "bad.properties" in refusal(f"${{file:{bad}:password}}")
    bad.write_bytes(b"password=\xff\n")
    assert "not UTF-8" in refusal(f"${{file:{bad}:password}}")


@patch.dict(os.environ, {"A": SECRET}, clear=True)
def test_a_whole_file_is_resolved_as_far_as_it_can_be():
    properties = DECLARED | {"a": "${env:A}", "b": "plain"}
    assert resolved(properties, "f") == {"a": SECRET, "b": "plain"}
    left = resolved(properties | {"c": "${env:C}"}, "f")
    assert left == DECLARED | {"a": SECRET, "b": "plain", "c": "${env:C}"}
    assert provider_settings(left) == DECLARED
    assert without_providers(left) == {"a": SECRET, "b": "plain", "c": "${env:C}"}
