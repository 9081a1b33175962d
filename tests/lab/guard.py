"""Run one child process and take it down when the owner goes away.

Started as a script by `process.py`, with nothing but the standard library:

    python -I guard.py OWNER_PID LOG_FILE COMMAND...

Standard input is a pipe from the owner. Each line on it is a signal number to pass to the child, answered
by a line on standard output once the signal has been sent. The end of the pipe means that the owner is
gone: the child is killed. SIGTERM asks the child to stop, and kills it if it has not within the grace time.
The first line on standard output is `pid N` (the child's) or `error TEXT`. The guard ends when the child
does and takes over its exit status (128 + signal number when a signal ended it).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

GRACE_SECONDS = 20.0
OWNER_CHECK_SECONDS = 0.5
PR_SET_PDEATHSIG = 1


def die_with_guard(guard_pid: int) -> None:
    """In the child, before exec: on Linux ask the kernel to kill it when the guard itself is killed."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    if not sys.platform.startswith("linux"):
        return
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    except (OSError, AttributeError):
        return
    if os.getppid() != guard_pid:
        os._exit(1)


def say(text: str) -> None:
    """One line to the owner; an owner that no longer listens is noticed elsewhere."""
    with contextlib.suppress(OSError):
        os.write(1, f"{text}\n".encode())


def start(log_file: Path, command: list[str]) -> subprocess.Popen[bytes]:
    guard_pid = os.getpid()
    with log_file.open("ab") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            preexec_fn=lambda: die_with_guard(guard_pid),
        )


def watch(child: subprocess.Popen[bytes], owner_pid: int, wake_fd: int, stop_requested: list[bool]) -> int:
    """Serve the owner until the child has ended; returns the child's exit status."""
    pending = b""
    kill_at: float | None = None
    while child.poll() is None:
        readable, _, _ = select.select([0, wake_fd], [], [], OWNER_CHECK_SECONDS)
        if wake_fd in readable:
            os.read(wake_fd, 512)
        if 0 in readable:
            data = os.read(0, 512)
            if not data:
                child.kill()
                return child.wait()
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                child.send_signal(int(line))
                say(f"sent {int(line)}")
        if os.getppid() != owner_pid:
            child.kill()
        if stop_requested and kill_at is None:
            child.send_signal(signal.SIGCONT)
            child.terminate()
            kill_at = time.monotonic() + GRACE_SECONDS
        if kill_at is not None and time.monotonic() >= kill_at:
            child.kill()
    return child.wait()


def main() -> int:
    owner_pid, log_file, command = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    stop_requested: list[bool] = []
    signal.signal(signal.SIGTERM, lambda *_: stop_requested.append(True))
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        child = start(log_file, command)
    except OSError as error:
        say(f"error {error}")
        return 127
    say(f"pid {child.pid}")
    status = watch(child, owner_pid, wake_read, stop_requested)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())
