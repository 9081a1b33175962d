"""Configuration providers: what `${file:PATH:KEY}`, `${env:NAME}` and `${dir:PATH:FILE}` in properties refer to.

The rules are those of Kafka's `ConfigTransformer` and of its `FileConfigProvider`, `EnvVarConfigProvider` and
`DirectoryConfigProvider` (KIP-297, KIP-421, KIP-632, KIP-887, KIP-993), with one exception: where Kafka leaves the
text of a reference in place, because its key is not there, this is an error. A password that reads `${file:...}` is
nobody's.
Values never reach a message; names, paths and keys do.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from migrate.errors import ConfigError
from migrate.mm2.java_properties import BLANKS, PROVIDERS

# As `ConfigTransformer.DEFAULT_PATTERN`: provider, path (may be absent), key.
_REFERENCE = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")
_INSTEAD = (
    "Kafka's own FileConfigProvider, EnvVarConfigProvider and DirectoryConfigProvider can be used; else name a client "
    "properties file that has the value itself with --source-config or --target-config."
)


class Providers:
    """The providers that one file declares with `config.providers`; `origin` names the file, for errors."""

    def __init__(self, properties: Mapping[str, str], origin: str) -> None:
        self._properties = properties
        self._origin = origin
        names = (name.strip(BLANKS) for name in properties.get(PROVIDERS, "").split(","))
        self._declared = frozenset(names) - {""}

    def value(self, key: str) -> str:
        """Return a setting's value with its references replaced, once: their values are not looked into.

        "" if there is no such setting. A reference to a provider that is not declared is plain text, as in Kafka.
        Raises `ConfigError` naming setting, provider, path and key where a reference resolves to nothing.
        """
        return _REFERENCE.sub(lambda reference: self._replaced(key, reference), self._properties.get(key, ""))

    def _replaced(self, setting: str, reference: re.Match[str]) -> str:
        name, path, key = reference[1], reference[2] or "", reference[3]
        if name not in self._declared:
            return reference[0]
        kind = self._properties.get(f"{PROVIDERS}.{name}.class", "").strip(BLANKS)
        where = f"{setting} in {self._origin} refers to {reference[0]}"
        if not kind:
            raise ConfigError(
                f"{where}, and {PROVIDERS}.{name}.class is not set there.",
                f"Say which provider {name} is, with all its settings, in the same file.",
            )
        try:
            match kind.rpartition(".")[2]:
                case "FileConfigProvider" | "File":
                    return self._from_file(name, path, key)
                case "EnvVarConfigProvider" | "EnvVar":
                    return self._from_environment(name, path, key)
                case "DirectoryConfigProvider" | "Directory":
                    return self._from_directory(name, path, key)
        except _Nothing as nothing:
            raise ConfigError(f"{where}, and {nothing}.", "Correct the reference, or what it names.") from None
        raise ConfigError(f"{where}, and the provider {name} is {kind}, which this version cannot use.", _INSTEAD)

    def _from_file(self, name: str, path: str, key: str) -> str:
        # Here, for Spark's tasks import this module too, where there may be no such library.
        from javaproperties import InvalidUEscapeError, loads

        file = self._allowed(name, path)
        try:
            values: dict[str, str] = loads(_text_of(file))
        except InvalidUEscapeError:
            raise _Nothing(f"in {file} \\u is not followed by four hexadecimal digits") from None
        if key not in values:
            raise _Nothing(f"{path} has no key {key}")
        return values[key]

    def _from_directory(self, name: str, path: str, key: str) -> str:
        folder = self._allowed(name, path)
        if not folder.is_dir():
            raise _Nothing(f"there is no folder {path}")
        # Like Kafka only a file of the folder itself: a name with a / in it would lead out of it.
        if key in ("", ".", "..") or "/" in key or not (folder / key).is_file():
            raise _Nothing(f"the folder {path} has no file {key}")
        return _text_of(folder / key)

    def _from_environment(self, name: str, path: str, key: str) -> str:
        if path:
            raise _Nothing("an environment variable has no path: write ${" + f"{name}:{key}" + "}")
        pattern = self._parameter(name, "allowlist.pattern")
        try:
            allowed = not pattern or re.fullmatch(pattern, key)
        except re.error as error:
            raise _Nothing(f"{PROVIDERS}.{name}.param.allowlist.pattern cannot be read ({error})") from None
        if not allowed:
            raise _Nothing(f"{PROVIDERS}.{name}.param.allowlist.pattern does not allow {key}")
        if key not in os.environ:
            raise _Nothing(f"there is no environment variable {key} here")
        return os.environ[key]

    def _allowed(self, name: str, path: str) -> Path:
        """Return the path if the provider may read there (KIP-993)."""
        if not path:
            raise _Nothing("it names no path")
        parameter = self._parameter(name, "allowed.paths")
        if not parameter:
            return Path(path)
        # Java's Path.normalize: by its text, links are not followed.
        normal = Path(os.path.normpath(path))
        roots = [Path(os.path.normpath(root.strip(BLANKS))) for root in parameter.split(",")]
        if not any(root.is_absolute() and normal.is_relative_to(root) for root in roots):
            raise _Nothing(f"{PROVIDERS}.{name}.param.allowed.paths does not allow {path}")
        return normal

    def _parameter(self, name: str, parameter: str) -> str:
        return self._properties.get(f"{PROVIDERS}.{name}.param.{parameter}", "").strip(BLANKS)


class _Nothing(Exception):  # never leaves this module
    """Raised where a reference resolves to nothing; says why, in half a sentence."""


def resolved(properties: Mapping[str, str], origin: str) -> dict[str, str]:
    """Return the settings with every reference replaced that can be, and without what declares the providers.

    References that cannot be replaced stay, with the declarations that they need: only whoever takes such a setting
    has to know (`Providers.value`), since most of a file's settings concern clients other than ours.
    """
    providers = Providers(properties, origin)
    values, left = {}, False
    for key, text in properties.items():
        try:
            values[key] = providers.value(key)
        except ConfigError:
            values[key], left = text, True
    return values if left else without_providers(values)


def provider_settings(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that declare configuration providers."""
    return {k: v for k, v in properties.items() if k == PROVIDERS or k.startswith(f"{PROVIDERS}.")}


def without_providers(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the settings without those that declare configuration providers."""
    declared = provider_settings(properties)
    return {k: v for k, v in properties.items() if k not in declared}


def _text_of(path: Path) -> str:
    """Read a file of secrets: as UTF-8, which is how Kafka's providers read it, unlike its own properties files."""
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise _Nothing(f"{path} is not UTF-8 text") from None
    except OSError as error:
        raise _Nothing(f"{path} cannot be read ({error.strerror})") from None
