"""How much memory the processes of a run take at most: this one, the JVM it started, and Spark's Python workers."""

import os
import threading
from collections import defaultdict
from pathlib import Path
from types import TracebackType

SAMPLE_SECONDS = 0.2
PAGE = os.sysconf("SC_PAGE_SIZE")


class Peak:
    """Samples resident memory while it is entered; sizes in bytes, beyond those at the start."""

    def __init__(self, jvm: int) -> None:
        self._jvm = jvm
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._start = self._now()
        self.driver = self.jvm = self.workers = 0

    def __enter__(self) -> "Peak":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._stop.wait(SAMPLE_SECONDS):
            driver, jvm, workers = self._now()
            self.driver = max(self.driver, driver - self._start[0])
            self.jvm = max(self.jvm, jvm - self._start[1])
            self.workers = max(self.workers, workers)

    def _now(self) -> tuple[int, int, int]:
        children: dict[int, list[int]] = defaultdict(list)
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            children[int(fields[1])].append(int(stat.parent.name))
        below = [self._jvm]
        for process in below:
            below += children[process]
        return resident(os.getpid()), resident(self._jvm), sum(resident(process) for process in below[1:])


def resident(process: int) -> int:
    """Return a process's resident bytes; 0 if it is gone."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * PAGE
    except OSError:
        return 0
