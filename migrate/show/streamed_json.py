"""A JSON document in lines, made as they are taken: a value to a line, and of its lists an entry to a line. Pure."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any


def document_lines(values: Mapping[str, Any], lists: Mapping[str, Iterable[Mapping[str, Any]]]) -> Iterator[str]:
    """Yield the document, which has the values first and then the lists, at least one; all of it is ASCII."""
    yield "{"
    for key, value in values.items():
        yield f'"{key}": {json.dumps(value)},'
    for count, (key, entries) in enumerate(lists.items(), start=1):
        yield f'"{key}": ['
        waiting = ""
        for entry in entries:
            if waiting:
                yield waiting + ","
            waiting = json.dumps(entry)
        if waiting:
            yield waiting
        yield "]" if count == len(lists) else "],"
    yield "}"


def fields_of(value: object, *names: str) -> dict[str, Any]:
    """Return these fields of a value, in this order."""
    return {name: getattr(value, name) for name in names}
