"""What this process and all that it has started have taken of the cores."""

import os
from collections import defaultdict
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of its descendants: those that run, and those that it has waited for.

    0 where there is no /proc. What a child that is gone had started and left behind is not counted.
    """
    children: dict[int, list[int]] = defaultdict(list)
    spent: dict[int, float] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        process = int(stat.parent.name)
        children[int(fields[1])].append(process)
        # utime, stime, and those of the children that were waited for: proc_pid_stat(5).
        spent[process] = sum(map(int, fields[11:15])) / TICKS
    counted = [os.getpid()]
    for process in counted:
        counted += children[process]
    return sum(spent.get(process, 0.0) for process in counted)
