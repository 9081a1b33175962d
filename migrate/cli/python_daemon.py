"""What Spark forks its Python workers from on this machine: it imports once what each of them needs.

Spark names pyspark to its workers in a zip without compiled code, and would have them compile it at every start: half a
second of a core, while the JVM needs both.
"""

import sys
from contextlib import suppress
from pathlib import Path

_ZIP = "pyspark.zip"


def without_copies(path: list[str]) -> list[str]:
    """Return Python's search path without Spark's own zips and jars, where the pyspark that they come with is on it."""
    for entry in map(Path, path):
        # As pip installs it: site-packages/pyspark/python/lib/pyspark.zip.
        if entry.name == _ZIP and len(entry.parents) > 3 and str(entry.parents[3]) in path:
            package = entry.parents[2]
            return [each for each in path if Path(each).parent not in (package / "python" / "lib", package / "jars")]
    return path


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
