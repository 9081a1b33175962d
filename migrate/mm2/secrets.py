"""Which values of a client's properties are secret, text without them, and no memory of ours on disk."""

import re
import resource
from collections.abc import Iterable, Mapping

from migrate.errors import ConfigError
from migrate.mm2.jaas import parse_jaas
from migrate.mm2.java_properties import BLANKS

HIDDEN = "[hidden]"
_SECRET_NAME = re.compile(r"password|passphrase|secret|token(?!\.endpoint)|\.key$|jaas|user\.info", re.IGNORECASE)
# Azure's account keys end in the account's name.
_SPARK_SECRET = re.compile(_SECRET_NAME.pattern + r"|\.account\.key\.|\.azure\.sas\.", re.IGNORECASE)
# In options of a JVM, and in URLs: -Djavax.net.ssl.trustStorePassword=..., https://user:password@host
_JVM_PROPERTY = re.compile(r"-D([^\s=]+)=")
_LOGIN_IN_URL = re.compile(r"://[^/@\s]*:[^/@\s]+@")
_NO_SPARK_SECRET = re.compile(
    r"file$|secretBitLength$|^spark\.kubernetes\..*\.secrets\.|\.mechanism$|\.sas\.expiry\.", re.IGNORECASE
)
_QUOTED = re.compile(r'"((?:\\.|[^"\\])*)"|\'([^\']*)\'')
_SECRET_OPTION = re.compile(r"password|secret|token|key", re.IGNORECASE)


def is_spark_secret(key: str, value: str) -> bool:
    """Return whether a setting of Spark's, or of its file systems, holds a secret: by its name, or inside its value."""
    names = (key, *_JVM_PROPERTY.findall(value))
    by_name = any(_SPARK_SECRET.search(n) is not None and _NO_SPARK_SECRET.search(n) is None for n in names)
    return by_name or _LOGIN_IN_URL.search(value) is not None


def secret_values(properties: Mapping[str, str]) -> frozenset[str]:
    """Return every value that must not be printed, in each form in which a library may quote it."""
    secrets: set[str] = set()
    for key, value in properties.items():
        if not _SECRET_NAME.search(key):
            continue
        secrets.add(value.strip(BLANKS))
        if key.endswith("sasl.jaas.config"):
            secrets.update(text for pair in _QUOTED.findall(value) for text in pair)
            try:
                options = parse_jaas(value, "").options
            except ConfigError:
                continue
            # The user's name is no secret, and hiding it would hide whom the broker refused.
            secrets.difference_update(v for k, v in options.items() if not _SECRET_OPTION.search(k))
            secrets.update(v for k, v in options.items() if _SECRET_OPTION.search(k))
    return frozenset(secret for secret in secrets if secret.strip())


def redact(text: str, secrets: Iterable[str]) -> str:
    """Return the text with every secret in it hidden; longer ones first, as one may be part of another."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


# Less than a page, so that none is written. 0 would do where the kernel writes the file itself; where it pipes a dump
# to a program (systemd-coredump, apport) it heeds no limit but this one (Linux, fs/coredump.c).
LIMIT_BYTES = 1


def forbid_core_dumps() -> None:
    """Forbid this process and all that it starts to dump core, which would hold the passwords; never raises."""
    for limit in (LIMIT_BYTES, 0):
        try:
            resource.setrlimit(resource.RLIMIT_CORE, (limit, limit))
            return
        except (OSError, ValueError):
            # Nobody may raise a hard limit, which is 0 already then.
            continue
