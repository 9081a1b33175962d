"""Files in YAML: what they hold, or where they are none."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from migrate.errors import ConfigError
from migrate.mm2.java_properties import content_of


class LinedDict(dict[Any, Any]):
    """A mapping of a file that was read strictly, with the line of each key."""

    lines: Mapping[Any, int] = {}


class _Strict(yaml.SafeLoader):  # type: ignore[misc]
    """Refuses a key that is there twice, of which YAML's own loader silently keeps the last; takes numbers as text.

    A group may be called 0042 or 1.10: YAML would make 34 and 1.1 of these.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            word = key.value if isinstance(key, yaml.ScalarNode) else None
            if word in seen:
                raise _DoubledKeyError(word, key.start_mark.line + 1)
            seen.add(word)
        held: dict[Any, Any] = super().construct_mapping(node, deep)
        return held


def _lined(loader: _Strict, node: yaml.MappingNode) -> Iterator[LinedDict]:
    made = LinedDict()
    yield made  # an anchor may name it before it is complete
    made.update(loader.construct_mapping(node))
    made.lines = {loader.construct_object(key): key.start_mark.line + 1 for key, _ in node.value}


_Strict.add_constructor("tag:yaml.org,2002:map", _lined)
for _kind in ("int", "float", "timestamp"):
    _Strict.add_constructor(f"tag:yaml.org,2002:{_kind}", yaml.SafeLoader.construct_scalar)


class _DoubledKeyError(Exception):
    def __init__(self, key: Any, line: int) -> None:
        super().__init__(key)
        self.key, self.line = key, line


def yaml_documents(path: Path, expected: str, is_strict: bool = False) -> list[Any]:
    """Return the documents in a file; `expected` is what to do where they are none.

    With `is_strict` numbers and times are texts as they are written, and mappings are `LinedDict`. Raises
    `ConfigError` if it cannot be read, or is no YAML; with `is_strict` also for a key that is there twice.
    """
    try:
        return list(yaml.load_all(content_of(path).decode(), _Strict if is_strict else yaml.SafeLoader))
    except _DoubledKeyError as error:
        raise ConfigError(f"{path}, line {error.line}: {error.key!r} is there twice.", "Say it once.") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        # The parser's own words quote the line, and that may be a secret.
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        raise ConfigError(f"{path}{where}: this is not valid YAML.", expected) from None
