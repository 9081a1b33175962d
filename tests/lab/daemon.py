"""The lab in the background: a process that owns the JVMs, its lock and its state file."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

from tests.lab.jars import cache_folder, kafka_jars
from tests.lab.lab import Lab
from tests.lab.options import MirrorOptions
from tests.lab.waiting import LabError, wait_until

REPOSITORY = Path(__file__).resolve().parents[2]
UP_DEADLINE_SECONDS = 300.0
DOWN_DEADLINE_SECONDS = 60.0
LOCK_NAME = "lab.lock"


@dataclass(frozen=True)
class LabState:
    """What a running lab has to say about itself."""

    version: str
    source: str
    target: str
    source_properties: str
    target_properties: str
    mm2_properties: str


def default_folder() -> Path:
    return cache_folder() / "lab"


class Daemon:
    """The background lab of one folder, seen from the command line.

    The lock file holds the daemon's process id, and the daemon holds a lock on it as long as it lives:
    only then does the number mean anything.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.lock_path = self.folder / LOCK_NAME
        self.state_path = self.folder / "state.json"
        self.log_path = self.folder / "daemon.log"

    def pid(self) -> int | None:
        """The process that holds the lock, None if nobody does."""
        try:
            with self.lock_path.open("r") as handle:
                try:
                    fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    return int(handle.read() or 0) or None
        except FileNotFoundError:
            pass
        return None

    def state(self) -> LabState | None:
        """Of a lab that is up and ready; None while it starts, and when it is down."""
        if self.pid() is None:
            return None
        try:
            return LabState(**json.loads(self.state_path.read_text()))
        except FileNotFoundError:
            return None

    def up(self, version: str, options: MirrorOptions) -> LabState:
        """Start the background process and wait until its lab is ready; the present one if it is up."""
        child: subprocess.Popen[bytes] | None = None
        log_start = 0
        if self.pid() is None:
            kafka_jars(version)
            self.prepare()
            command = [sys.executable, "-m", "tests.lab.daemon", str(self.folder), version]
            with self.log_path.open("a") as log:
                log_start = log.tell()
                child = subprocess.Popen(
                    [*command, json.dumps(asdict(options))],
                    cwd=REPOSITORY,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )

        def ready() -> LabState | None:
            # Of two that start at the same time one gets the lock; both then wait for that one.
            if self.pid() is None and (child is None or child.poll() is not None):
                raise LabError(f"the lab did not start: {self.log_path.read_text()[log_start:].strip()}")
            return self.state()

        try:
            return wait_until(ready, UP_DEADLINE_SECONDS, "the lab")
        except BaseException:
            if child is not None and child.poll() is None:
                child.terminate()
            raise

    def prepare(self) -> None:
        """Make the folder ready for a daemon; one with other things in it is refused."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self.lock_path.exists() and any(self.folder.iterdir()):
            raise LabError(f"{self.folder} is not empty and was not made by the lab: name another folder")
        with self.lock_path.open("a") as handle, contextlib.suppress(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            handle.truncate(0)

    def clear(self) -> None:
        """Remove what an earlier lab has left in the folder."""
        self.state_path.unlink(missing_ok=True)
        for name in ("source", "target", "mirror"):
            if (self.folder / name).is_dir():
                shutil.rmtree(self.folder / name)

    def down(self) -> bool:
        """Stop the background lab and wait until everything is gone; False if there was none."""
        pid = self.pid()
        if pid is None:
            return False
        os.kill(pid, signal.SIGTERM)
        try:
            wait_until(lambda: self.pid() is None, DOWN_DEADLINE_SECONDS, "the lab to end")
        except LabError:
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda: self.pid() is None, 10, "the lab to be killed")
        return True

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """In the daemon: hold the lock, with our process id in the file."""
        with self.lock_path.open("r+") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise LabError(f"another lab is using {self.folder}") from None
            handle.truncate()
            self.clear()
            handle.write(str(os.getpid()))
            handle.flush()
            try:
                yield
            finally:
                self.state_path.unlink(missing_ok=True)

    def run(self, version: str, options: MirrorOptions) -> None:
        """The daemon's life: lab up, state file, wait for SIGTERM, lab down."""
        with self.held():
            lab = Lab(self.folder, version, options)
            try:
                lab.up()
                state = LabState(
                    version=version,
                    source=lab.source_bootstrap,
                    target=lab.target_bootstrap,
                    source_properties=str(lab.source_properties),
                    target_properties=str(lab.target_properties),
                    mm2_properties=str(lab.mm2_properties),
                )
                fresh = self.state_path.with_suffix(".new")
                fresh.write_text(json.dumps(asdict(state), indent=1))
                fresh.replace(self.state_path)
                while True:
                    signal.pause()
            finally:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                lab.down()


def end(number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(0)


def main() -> int:
    folder, version, options = sys.argv[1:]
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    try:
        Daemon(Path(folder)).run(version, MirrorOptions(**json.loads(options)))
    except LabError as error:
        print(error, file=sys.stderr)
        return 1
    except Exception:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
