"""Folders that take no file: read-only, another user's, on a full disk. What this machine cannot make is skipped."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PAGE = os.sysconf("SC_PAGE_SIZE")


def without_root_powers() -> tuple[str, ...]:
    """Return the words that start a command as somebody for whom mode bits count; the user stays who they are.

    Another user could not even read a Python that lies in root's home folder.
    """
    if os.geteuid() != 0:
        return ()
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("there is no setpriv: mode bits do not count for root, who runs the tests")
    return (setpriv, "--bounding-set=-all", "--inh-caps=-all")


def give_away(folder: Path) -> None:
    """Make a folder that of another user."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder to another user")
    other = pwd.getpwnam("nobody")
    os.chown(folder, other.pw_uid, other.pw_gid)


@contextmanager
def small_disk(folder: Path, pages: int) -> Iterator[Path]:
    """Mount a file system of so many pages at a folder, and take it away again."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system to fill")
    words = ["mount", "-t", "tmpfs", "-o", f"size={pages * PAGE},mode=755", "tmpfs", str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"this machine lets nobody mount a small file system to fill: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path, pages_left: int = 0) -> Path:
    """Fill the file system of a folder up to so many pages; return the file that does it, to be deleted."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        free = os.statvfs(folder).f_bfree - pages_left
        assert free >= 0, f"{folder} has less than {pages_left} free pages"
        file.write(bytes(free * PAGE))
    assert os.statvfs(folder).f_bfree == pages_left
    return filler


def held(folder: Path) -> dict[str, bytes]:
    """What a folder holds, by the names of its files."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
