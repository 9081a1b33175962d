"""Files of Java properties, read by the rules of `java.util.Properties`.

Values are never part of a message: they may be passwords.
"""

import re
from io import BytesIO
from pathlib import Path

from migrate.errors import ConfigError

# As Java's String.trim(), which Kafka applies to every setting that is not a plain map entry.
BLANKS = "".join(map(chr, range(0x21)))
PROVIDERS = "config.providers"

_MARKS = {b"\xef\xbb\xbf": "UTF-8", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


def read_properties(path: Path) -> dict[str, str]:
    """Return the settings of a .properties file; of a key that is there twice the last wins, as in Java.

    Bytes are ISO-8859-1, which is how Kafka's own tools and MM2 read them. Raises `ConfigError` if the file
    cannot be read, starts with a byte order mark, holds NUL bytes, or has a malformed \\u escape.
    """
    # Here, for Spark's tasks import this module too, where there may be no such library.
    from javaproperties import InvalidUEscapeError, KeyValue, parse

    content = content_of(path, "Name a .properties file.")
    for mark, encoding in _MARKS.items():
        if content.startswith(mark):
            raise ConfigError(
                f"{path}, line 1: the file starts with a {encoding} byte order mark, which Java takes for part "
                "of the first key.",
                "Save it without the mark, in ASCII; write other characters as \\uXXXX.",
            )
    if b"\0" in content:
        # UTF-16, or a key store: parsed, it would only lack every setting that an editor shows in it.
        raise ConfigError(f"{path} has NUL bytes: it is not text in ASCII or ISO-8859-1.", "Name such a text file.")
    line = 1
    settings: dict[str, str] = {}
    try:
        for element in parse(BytesIO(content)):
            line += len(re.findall(r"\r\n|\r|\n", element.source))
            if isinstance(element, KeyValue):
                settings[element.key] = element.value
    except InvalidUEscapeError:
        raise ConfigError(
            f"{path}, line {line}: \\u is not followed by four hexadecimal digits.",
            "Write a backslash in a value as two backslashes.",
        ) from None
    return settings


def content_of(path: Path, not_a_directory: str = "") -> bytes:
    """Return what a settings file holds; raises `ConfigError` if it cannot be read.

    `not_a_directory` is what to do about a directory, if it is to be called one.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file.", "Check the path.") from None
    except OSError as error:
        if not_a_directory and isinstance(error, IsADirectoryError):
            raise ConfigError(f"{path} is a directory.", not_a_directory) from None
        raise ConfigError(f"{path} cannot be read: {error.strerror}.", "Check its permissions.") from None
