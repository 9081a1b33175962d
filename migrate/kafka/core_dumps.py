"""No memory of ours on disk: a core dump would hold the passwords."""

import resource

# Less than a page, so that none is written. 0 would do where the kernel writes the file itself; where it pipes a dump
# to a program (systemd-coredump, apport) it heeds no limit but this one (Linux, fs/coredump.c).
LIMIT_BYTES = 1


def forbid_core_dumps() -> None:
    """Forbid this process and all that it starts to dump core; never raises."""
    for limit in (LIMIT_BYTES, 0):
        try:
            resource.setrlimit(resource.RLIMIT_CORE, (limit, limit))
            return
        except (OSError, ValueError):
            # Nobody may raise a hard limit, which is 0 already then.
            continue
