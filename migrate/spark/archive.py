"""The classes that a JVM of ours has loaded, kept for the next one, which then starts in a fraction of the time.

An archive of class-data sharing (JEP 350), which a JVM writes at its exit. It runs what is in it: so a file is only
used if nobody but this user can have written it, and the JVM checks that it is unchanged. It is made for one JVM, its
jars and its options, and made anew when any of these changes.
"""

import hashlib
import os
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from migrate.spark.jars import cache_folder, spark_jars_folder
from migrate.spark.java import java_executable, java_version
from migrate.spark.session_settings import CLASS_PATH, JAVA_OPTIONS

# An archive takes some 130 MB; an installation has two, of small readings and of large ones.
KEPT = 4
RECORDING = "-XX:ArchiveClassesAtExit"
USING = "-XX:SharedArchiveFile"
# Where a JVM takes options from besides its settings.
OPTIONS = ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS")
# With an agent, an archive or a class loader of the user's own, a JVM may not start with ours, or not as was asked.
_OWN = ("-agent", "-javaagent", "Archive", "-Xshare", "SharedSpaces", "class.loader", "jdk.module")
_REFUSED_SECONDS = 24 * 3600


class ClassArchive:
    """The archive of a JVM with these settings: its options, and the file that it is kept in.

    The JVM writes the file's head last. A file without one is being written, or could not be: for a day no other JVM
    tries.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        options = " ".join([settings.get(JAVA_OPTIONS, ""), *(os.environ.get(name, "") for name in OPTIONS)])
        self.path = cache_folder() / "classes" / f"{_key(options, settings.get(CLASS_PATH, ''))}.jsa"
        self._can_be_made = not any(word in options for word in _OWN) and '"' not in str(self.path)

    def options(self, recording: bool) -> str:
        """Return the options of a JVM that uses the archive, or that is to write it at its exit."""
        if not self._can_be_made:
            return ""
        with suppress(OSError):
            if _is_sound(self.path):
                # Kept by last use: two installations used in turn would otherwise throw away each other's.
                with suppress(OSError):
                    os.utime(self.path)
                return f'{USING}="{self.path}" -XX:+VerifySharedSpaces -Xshare:auto'
        if not recording or (self.path.exists() and time.time() - _modified(self.path) < _REFUSED_SECONDS):
            return ""
        try:
            self._make_room()
        except OSError:
            return ""
        return f'{RECORDING}="{self.path}"'

    def refuse(self) -> None:
        """Remember that a JVM with these settings cannot have an archive."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)
            self.path.touch(mode=0o600)

    def remove(self) -> None:
        """Remove what a JVM has written that ended too early."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)

    def _make_room(self) -> None:
        folder = self.path.parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
        for path in sorted(folder.iterdir(), key=_modified, reverse=True)[KEPT - 1 :]:
            path.unlink(missing_ok=True)


def _modified(path: Path) -> float:
    return path.stat().st_mtime


def _key(options: str, class_path: str) -> str:
    """Name a JVM, its jars and its options."""
    java = java_executable().resolve()
    jars = [*sorted(spark_jars_folder().iterdir()), *map(Path, filter(None, class_path.split(os.pathsep)))]
    parts = [java_version(), options, class_path, *(_identity(path) for path in (java, *jars))]
    return hashlib.sha256("\n".join(parts).encode(errors="surrogateescape")).hexdigest()[:16]


def _identity(path: Path) -> str:
    try:
        status = path.stat()
    except OSError:
        return f"{path} -"
    return f"{path} {status.st_size} {status.st_mtime_ns}"


def _is_sound(path: Path) -> bool:
    """True if the file was written to its end, by this user, in a folder that no other may enter."""
    folder = path.parent.stat()
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        status = os.fstat(file.fileno())
        ours = {folder.st_uid, status.st_uid} == {os.geteuid()}
        closed = stat.S_IMODE(folder.st_mode) == 0o700 and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        return ours and closed and stat.S_ISREG(status.st_mode) and any(file.read(4))
