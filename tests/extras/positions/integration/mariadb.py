"""A MariaDB of a test's own, from the system's packages (Debian: mariadb-server-core and mariadb-client-core)."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.lab.waiting import wait_until

DEADLINE_SECONDS = 60.0
NEEDED = ("mariadbd", "mariadb", "mariadb-install-db")
# Daemons lie there on Debian, and not every user looks there.
PATH = os.environ.get("PATH", "") + os.pathsep + "/usr/sbin"


@dataclass(frozen=True)
class Database:
    """A server on a socket alone, and its own command-line client."""

    socket: Path
    folder: Path

    def run(self, sql: str) -> str:
        """Run statements, and return what they print: a heading, then lines with tabs."""
        client = [_program("mariadb"), "--no-defaults", f"--socket={self.socket}", "--user=root", "--batch", "jobs"]
        done = subprocess.run(client, input=sql, capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout


def _program(name: str) -> str:
    found = shutil.which(name, path=PATH)
    if found is None:
        pytest.skip(f"MariaDB is missing ({name}): apt-get install mariadb-server-core mariadb-client-core")
    return found


@contextmanager
def database(folder: Path) -> Iterator[Database]:
    """Run a server with an empty database `jobs`; the test is skipped where MariaDB is not installed."""
    server, _, install = map(_program, NEEDED)
    data, socket = folder / "data", Path("/tmp") / f"mm2-migrate-{os.getpid()}.sock"
    own = ["--no-defaults", f"--datadir={data}"]
    subprocess.run(
        [install, *own, "--auth-root-authentication-method=normal", "--skip-test-db", "--user=root"],
        check=True, capture_output=True, timeout=DEADLINE_SECONDS,
    )  # fmt: skip
    with (folder / "server.log").open("w") as log:
        process = subprocess.Popen(
            [server, *own, f"--socket={socket}", "--skip-networking", "--user=root", f"--pid-file={folder / 'pid'}"],
            stdout=log, stderr=log,
        )  # fmt: skip
    try:
        ask = [_program("mariadb"), "--no-defaults", f"--socket={socket}", "--user=root", "-e", "CREATE DATABASE jobs"]
        wait_until(
            lambda: subprocess.run(ask, capture_output=True, timeout=DEADLINE_SECONDS, check=False).returncode == 0,
            DEADLINE_SECONDS, "MariaDB to answer",
        )  # fmt: skip
        yield Database(socket, folder)
    finally:
        process.terminate()
        process.wait(DEADLINE_SECONDS)
        socket.unlink(missing_ok=True)
