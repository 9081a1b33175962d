"""The status file of `follow`, beside its mandate: what the newest pass did, replaced as a whole by each pass."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from migrate.errors import MigrateError
from migrate.plan.companions import companion_path
from migrate.whole_file import replacing

ENCODER = json.JSONEncoder(separators=(",", ":"))


def status_path(plan_path: Path, fingerprint: str) -> Path:
    """Return where the status file of a mandate lies, there or not; raises as `companion_path` does."""
    return companion_path(plan_path, fingerprint, "status.json")


def write_status(path: Path, document: Mapping[str, Any]) -> str:
    """Replace the status file durably, mode 0600; return why that failed, "" if it did not.

    Nothing rests on this file: that a disk is full is told with the pass, and the passes go on.
    """
    try:
        with replacing(path) as file:
            file.write(ENCODER.encode(document).encode("ascii") + b"\n")
    except OSError as error:
        return f"the status file could not be written ({error.strerror})"
    return ""


def read_status(path: Path) -> dict[str, Any] | None:
    """Return what the status file says, None where there is none; raises `MigrateError` if it cannot be read."""
    try:
        document = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise MigrateError(
            f"The status file {path} cannot be read: {error}.", "Look at what `follow` says on stderr."
        ) from None
    return dict(document)
