"""Configuration providers: Kafka's own three, followed as Kafka follows them, and never told."""

import os
from unittest.mock import patch

import pytest

from migrate.errors import ConfigError
from migrate.mm2.config_providers import Providers, provider_settings, resolved, without_providers

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
