"""Numbers of bytes as people write and read them: powers of 1000. Pure."""

import re
from decimal import Decimal

_UNITS = ("", "K", "M", "G", "T", "P")


def parse_bytes(text: str) -> int:
    """Read "1048576", "500M", "1.5G" or "2GB"; raises `ValueError` for anything else."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGTP]?)B?", text.strip().upper())
    if not found:
        raise ValueError(f"{text!r} is no number of bytes, such as 500M, 2G or 1048576.")
    return int(Decimal(found[1]) * Decimal(1000 ** _UNITS.index(found[2])))


def bytes_text(count: int) -> str:
    """Return "999 B", "1.2 kB", "35 MB", "1.2 GB": two digits are enough to decide by."""
    size, unit = float(count), 0
    while size >= 999.5 and unit < len(_UNITS) - 1:
        size /= 1000
        unit += 1
    if unit == 0:
        return f"{count} B"
    digits = f"{size:.1f}" if size < 9.95 else f"{size:.0f}"
    return f"{digits} {'k' if unit == 1 else _UNITS[unit]}B"
