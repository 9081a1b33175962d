"""The classes that a JVM of ours has loaded, kept for the next one, which then starts in a fraction of the time.

An archive of class-data sharing (JEP 350). The JVM runs what is in it and checks little by itself: so a file is only
used if nobody but this user can have written it, and it holds what we made. It is made for one JVM, its jars and its
options, and made anew when any of these changes.
"""

import hashlib
import mmap
import os
import shlex
import stat
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from migrate.spark.jars import cache_folder, spark_jars_folder
from migrate.spark.java import java_executable, java_version
from migrate.spark.session_settings import CLASS_PATH, JAVA_OPTIONS

# An archive takes some 130 MB.
KEPT = 3
RECORDING = "-XX:+RecordDynamicDumpInfo"
# Where a JVM takes options from besides its settings.
OPTIONS = ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS")
# With others, such as an agent or an archive of the user's own, a JVM that is to record what it loads may not start.
_HARMLESS = (
    "-D", "-ea", "-Xmx", "-Xms", "-Xss", "-XX:TieredStopAtLevel=", "-XX:+UseSerialGC", "-XX:+UseParallelGC",
    "-XX:+UseG1GC", "-XX:-CreateCoredumpOnCrash", "-XX:ErrorFile=", "-XX:MaxMetaspaceSize=",
)  # fmt: skip
_NOT_HARMLESS = ("-Djava.system.class.loader", "-Djdk.module")
# Versions of Java that have what is asked of them here.
_KNOWN = range(17, 26)
# A shorter secret is found in any hundred megabytes; the archive holds classes, and no settings.
LEAST_SECRET = 8
_DIGEST_LENGTH = 64
_LEFT_BEHIND_SECONDS = 3600
_REFUSED_SECONDS = 24 * 3600
# As the JVM names classes.
_STRING, _STRINGS = "java.lang.String", "[Ljava.lang.String;"


class ClassArchive:
    """The archive of a JVM with these settings: its options, and the file that it is kept in.

    A file is named KEY-DIGEST.jsa: what it was made for, and the SHA-256 of its content. Where none can be made,
    KEY.refused remembers it for a day.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._folder = cache_folder() / "classes"
        options = " ".join([settings.get(JAVA_OPTIONS, ""), *(os.environ.get(name, "") for name in OPTIONS)])
        self._can_be_made = _has_base_archive() and _are_harmless(options)
        self._key = _key(options, settings.get(CLASS_PATH, ""))

    def options(self, recording: bool) -> str:
        """Return the options of a JVM that uses the archive, or that is to record what one is made of."""
        if not self._can_be_made or self._is_refused():
            return ""
        found = self.find()
        if found is not None:
            return f'-XX:SharedArchiveFile="{found}" -Xshare:auto'
        return RECORDING if recording else ""

    def find(self) -> Path | None:
        """Return the file, None where there is none that may be used."""
        with suppress(OSError):
            if not _only_ours(self._folder.stat(), 0o700):
                return None
            for path in self._folder.glob(f"{self._key}-*.jsa"):
                if '"' not in str(path) and _is_sound(path):
                    # Kept by last use: two installations used in turn would otherwise throw away each other's.
                    with suppress(OSError):
                        os.utime(path)
                    return path
        return None

    def keep(self, jvm: Any, new_array: Any, secrets: Collection[str]) -> None:
        """Make the file of the classes that this JVM has loaded; with a secret in it, none.

        Raises what the file system or the JVM raises; nothing half-made is left then.
        """
        made = self._folder / f"{self._key}.{os.getpid()}.part"
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._folder.chmod(0o700)
            _dump(jvm, new_array, made)
            made.chmod(0o600)
            digest = _digest_without(made, secrets)
            if digest is None:
                self.refuse()
                return
            for replaced in self._folder.glob(f"{self._key}-*.jsa"):
                replaced.unlink(missing_ok=True)
            made.rename(self._folder / f"{self._key}-{digest}.jsa")
            self._forget_old()
        finally:
            made.unlink(missing_ok=True)

    def refuse(self) -> None:
        """Remember that a JVM with these settings cannot have an archive."""
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._refusal.touch(mode=0o600)

    @property
    def _refusal(self) -> Path:
        return self._folder / f"{self._key}.refused"

    def _is_refused(self) -> bool:
        try:
            return time.time() - _modified(self._refusal) < _REFUSED_SECONDS
        except OSError:
            return False

    def _forget_old(self) -> None:
        by_age = sorted(self._folder.glob("*.jsa"), key=_modified, reverse=True)
        # What a JVM was writing that was killed.
        long_ago = time.time() - _LEFT_BEHIND_SECONDS
        left_behind = [path for path in self._folder.glob("*.part*") if _modified(path) < long_ago]
        for path in [*by_age[KEPT:], *left_behind]:
            path.unlink(missing_ok=True)


def _modified(path: Path) -> float:
    return path.stat().st_mtime


def _has_base_archive() -> bool:
    """True if the JVM is known to have what an archive rests on: that of its own classes."""
    home = java_executable().resolve().parent.parent
    return int(java_version().split(".")[0]) in _KNOWN and (home / "lib" / "server" / "classes.jsa").is_file()


def _are_harmless(options: str) -> bool:
    try:
        words = shlex.split(options)
    except ValueError:
        return False
    return all(word.startswith(_HARMLESS) and not word.startswith(_NOT_HARMLESS) for word in words)


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


def _only_ours(status: os.stat_result, mode: int) -> bool:
    return status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) == mode


def _is_sound(path: Path) -> bool:
    """True if the file is ours alone and holds what its name says; opened once, so that both are of one file."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        status = os.fstat(file.fileno())
        if not (stat.S_ISREG(status.st_mode) and _only_ours(status, 0o600)):
            return False
        return hashlib.file_digest(file, "sha256").hexdigest() == path.stem[-_DIGEST_LENGTH:]


def _digest_without(path: Path, secrets: Iterable[str]) -> str | None:
    """Return the SHA-256 of a file; None if a secret is in it."""
    looked_for = [raw for secret in secrets if len(raw := secret.encode(errors="surrogateescape")) >= LEAST_SECRET]
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if any(content.find(secret) >= 0 for secret in looked_for):
            return None
        return hashlib.sha256(content).hexdigest()


# Java, for a script that Spark's own compiler runs: from here, a class would be a call each.
_LINK = """
    String[] all = names.split(",");
    for (int i = 0; i < all.length; i++) {
        try { Class.forName(all[i], false, loader).getDeclaredFields(); } catch (Throwable cannotBeLinked) { }
    }
"""


def _dump(jvm: Any, new_array: Any, path: Path) -> None:
    """Let the JVM write the classes that it has recorded, as `jcmd PID VM.cds dynamic_dump FILE` does."""

    def array(kind: Any, *values: Any) -> Any:
        filled = new_array(kind, len(values))
        for index, value in enumerate(values):
            filled[index] = value
        return filled

    lang = jvm.java.lang
    commands = jvm.javax.management.ObjectName("com.sun.management:type=DiagnosticCommand")
    # By the interface: py4j does not see the method in the class behind it, which its module does not export.
    types = map(lang.Class.forName, ("javax.management.ObjectName", _STRING, "[Ljava.lang.Object;", _STRINGS))
    connection = lang.Class.forName("javax.management.MBeanServerConnection")
    invoke = connection.getMethod("invoke", array(lang.Class, *types))
    server = lang.management.ManagementFactory.getPlatformMBeanServer()

    def command(name: str, *words: str) -> str:
        arguments = array(lang.Object, array(lang.String, *words))
        made: str = invoke.invoke(server, array(lang.Object, commands, name, arguments, array(lang.String, _STRINGS)))
        return made

    _link(jvm, array, _loaded(command("vmClassHierarchy")))
    command("vmCds", "dynamic_dump", f'"{path}"')


def _loaded(hierarchy: str) -> list[str]:
    """Return the names in what `jcmd PID VM.class_hierarchy` prints, "|  |--java.lang.Number/null" a line."""
    return sorted({line.lstrip("|- ").partition("/")[0] for line in hierarchy.splitlines() if "/" in line})


def _link(jvm: Any, array: Callable[..., Any], names: Iterable[str]) -> None:
    """Link the classes of these names: what was only looked at to verify others is not, and the dump leaves it out."""
    lang = jvm.java.lang
    loader = lang.Thread.currentThread().getContextClassLoader()
    with suppress(Exception):  # a third of the classes would be read from their jars again, and that is all
        script = jvm.org.codehaus.janino.ScriptEvaluator()
        types = map(lang.Class.forName, (_STRING, "java.lang.ClassLoader"))
        script.setParameters(array(lang.String, "names", "loader"), array(lang.Class, *types))
        script.cook(_LINK)
        script.evaluate(array(lang.Object, ",".join(names), loader))
