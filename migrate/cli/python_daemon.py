"""What Spark forks its Python workers from on this machine: it imports once what each of them needs.

Spark names pyspark to its workers in a zip without compiled code, and would have them compile it at every start: half a
second of a core, while the JVM needs both.
"""

import sys
from contextlib import suppress
from pathlib import Path

_ZIP = "pyspark.zip"


def without_copies(path: list[str]) -> list[str]:
    """Return Python's search path without Spark's zips and jars, where it leads to the pyspark that they come with."""
    kept = [entry for entry in path if not entry.endswith((".zip", ".jar"))]
    zips = [Path(entry) for entry in path if Path(entry).name == _ZIP]
    # As pip installs it: site-packages/pyspark/python/lib/pyspark.zip.
    installed = all(len(zipped.parents) > 3 and str(zipped.parents[3]) in kept for zipped in zips)
    return kept if zips and installed else path


def main() -> None:
    """Be pyspark's daemon."""
    sys.path[:] = without_copies(sys.path)
    from pyspark.daemon import manager

    from migrate.kafka.reader_pair import prepare

    with suppress(ImportError):  # the first task says what is missing
        prepare()
    manager()


if __name__ == "__main__":
    main()
