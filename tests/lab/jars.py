"""Kafka's own jars, fetched once into a cache outside the source tree.

The fetch uses the Ivy jar that pyspark carries along, so that it needs nothing but Java and a Maven
repository. `MM2_MIGRATE_MAVEN_REPOSITORY` names another repository than Maven Central.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from xml.sax.saxutils import quoteattr
from zlib import crc32

from tests.lab.waiting import LabError

DEFAULT_VERSION = "4.3.1"
# No MirrorMaker 2 of a later Kafka is published; it runs beside later brokers.
NEWEST_MIRROR = "4.3.1"
MAVEN_CENTRAL = "https://repo1.maven.org/maven2/"
FETCH_DEADLINE_SECONDS = 1200
LOG4J2_VERSION = "2.25.4"
LOG4J2_ARTIFACTS = ("log4j-slf4j-impl", "log4j-core")
RELOAD4J_BINDING_VERSION = "1.7.36"
KAFKA_ARTIFACTS = ("kafka_2.13", "connect-mirror", "connect-mirror-client", "connect-runtime", "kafka-tools")
Artifact = tuple[str, str, str]
"""Organisation, name and version."""
JAVA_HELP = (
    "install Java 17 (for example `apt install openjdk-17-jre-headless` or `brew install openjdk@17`) "
    "and put `java` on the PATH or set JAVA_HOME"
)


def cache_folder() -> Path:
    """Where the lab keeps what it downloads: $MM2_MIGRATE_CACHE, else below the user's cache folder."""
    own = os.environ.get("MM2_MIGRATE_CACHE")
    if own:
        return Path(own).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base).expanduser() if base else Path.home() / ".cache").absolute() / "mm2-migrate"


def version_tuple(version: str) -> tuple[int, ...]:
    """(4, 3, 1) for "4.3.1"; anything but three numbers is an error."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise LabError(f"{version!r} is not a Kafka version such as {DEFAULT_VERSION}")
    return tuple(int(part) for part in version.split("."))


def java_executable() -> str:
    """The `java` to run: from JAVA_HOME if set, else from the PATH."""
    home = os.environ.get("JAVA_HOME")
    if home and os.access(Path(home, "bin", "java"), os.X_OK):
        return str(Path(home, "bin", "java"))
    found = shutil.which("java")
    if found is None:
        raise LabError(f"Java was not found: {JAVA_HELP}")
    return found


def kafka_jars(version: str = DEFAULT_VERSION) -> Path:
    """The folder with the jars of that Kafka version: broker, MirrorMaker 2 if it has one, tools, a logging backend.

    Fetched on first use, then only looked up. The folder appears under its name when it is complete.
    """
    major = version_tuple(version)[0]
    check_java(17 if major >= 4 else 11)
    return fetched(f"kafka-{version}", f"Kafka {version}", kafka_artifacts(version))


def fetched(folder: str, what: str, wanted: Sequence[Artifact]) -> Path:
    """The folder of that name in the cache, with the jars of Maven artifacts and of what they need to run."""
    cache = cache_folder()
    target = cache / folder
    if target.is_dir():
        return target
    cache.mkdir(parents=True, exist_ok=True)
    with locked(cache / "fetch.lock"):
        if not target.is_dir():
            print(f"fetching the jars of {what} into {target} (only this once)", file=sys.stderr)
            with tempfile.TemporaryDirectory(prefix=f"fetch-{folder}-", dir=cache) as scratch:
                fetch(what, wanted, Path(scratch), cache / "ivy")
                Path(scratch, "jars").rename(target)
    return target


def compiled(program: Path, jars: Path) -> Path:
    """The folder with a program's classes: to compile it at each start would take as long as all else that it does."""
    folder = cache_folder() / "lab-classes" / f"{program.stem}-{crc32(program.read_bytes()):08x}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            made = Path(scratch, "made")
            class_path = os.pathsep.join(map(str, jars.glob("*.jar")))
            compiler = [java_executable(), "-m", "jdk.compiler/com.sun.tools.javac.Main", "-proc:none"]
            subprocess.run(
                [*compiler, "-cp", class_path, "-d", str(made), str(program)], check=True, capture_output=True
            )
            with suppress(OSError):  # another worker was quicker
                made.rename(folder)
    return folder


def check_java(least: int) -> None:
    """Fail early when Java is missing, does not run, or is too old for the Kafka version."""
    shown = subprocess.run([java_executable(), "-version"], capture_output=True, text=True, check=False)
    match = re.search(r'version "(?:1\.)?(\d+)', shown.stderr)
    if shown.returncode != 0 or match is None:
        raise LabError(f"`{java_executable()} -version` does not work: {JAVA_HELP}")
    if int(match.group(1)) < least:
        raise LabError(f"Java {match.group(1)} is too old, at least {least} is needed: {JAVA_HELP}")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file; the kernel lets go of it even when the holder is killed."""
    with path.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def fetch(what: str, wanted: Sequence[Artifact], scratch: Path, ivy_cache: Path) -> None:
    """Let Ivy put the jars into `scratch/jars`."""
    repository = os.environ.get("MM2_MIGRATE_MAVEN_REPOSITORY", MAVEN_CENTRAL).rstrip("/") + "/"
    (scratch / "ivy.xml").write_text(ivy_module(wanted))
    (scratch / "ivysettings.xml").write_text(
        "<ivysettings><settings defaultResolver='maven'/>"
        f"<caches defaultCacheDir={quoteattr(str(ivy_cache))}/>"
        f"<resolvers><ibiblio name='maven' m2compatible='true' root={quoteattr(repository)}/></resolvers>"
        "</ivysettings>\n"
    )
    command = [java_executable(), "-jar", str(ivy_jar())]
    command += ["-ivy", str(scratch / "ivy.xml"), "-settings", str(scratch / "ivysettings.xml")]
    command += ["-retrieve", f"{scratch}/jars/[artifact]-[revision](-[classifier]).[ext]"]
    # Some libraries are packaged as OSGi bundles; they are jars under another type name.
    command += ["-types", "jar", "bundle", "-confs", "run", "-warn"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=FETCH_DEADLINE_SECONDS)
    except subprocess.TimeoutExpired:
        raise LabError(f"fetching {what} from {repository} took over {FETCH_DEADLINE_SECONDS} s") from None
    if done.returncode != 0 or not all(any(scratch.glob(f"jars/{name}-*.jar")) for _, name, _ in wanted):
        raise LabError(fetch_failure(what, repository, done.stdout + done.stderr))


def fetch_failure(what: str, repository: str, output: str) -> str:
    """One line that says what went wrong, out of Ivy's long report."""
    access = re.search(r"(?:Server access error|Host \S+ not found|Connection \S+|UnknownHost)[^\n]*", output)
    if access is not None:
        return (
            f"the Maven repository {repository} cannot be reached ({access.group(0).strip()}): check the "
            "network, or name another one with MM2_MIGRATE_MAVEN_REPOSITORY"
        )
    missing = sorted(set(re.findall(r":: ([\w.-]+#[\w.-]+;[\w.-]+): not found", output)))
    if missing:
        return f"the Maven repository {repository} does not have {', '.join(missing)}"
    last = [line.strip() for line in output.splitlines() if line.strip(" \t:.")]
    return f"Ivy could not fetch {what}: {last[-1] if last else 'no output'}"


def ivy_jar() -> Path:
    """The Ivy that comes with pyspark, found without importing pyspark."""
    spec = importlib.util.find_spec("pyspark")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for jar in sorted(Path(folder, "jars").glob("ivy-*.jar")):
            return jar
    raise LabError("pyspark is not installed here, and the lab uses its Ivy: run scripts/setup first")


def kafka_artifacts(version: str) -> list[Artifact]:
    """Kafka's own, and a logging backend."""
    has_mirror = version_tuple(version) <= version_tuple(NEWEST_MIRROR)
    wanted = [("org.apache.kafka", n, version) for n in KAFKA_ARTIFACTS if has_mirror or "mirror" not in n]
    if version_tuple(version)[0] >= 4:
        wanted += [("org.apache.logging.log4j", name, LOG4J2_VERSION) for name in LOG4J2_ARTIFACTS]
    else:
        wanted += [("org.slf4j", "slf4j-reload4j", RELOAD4J_BINDING_VERSION)]
    return wanted


def ivy_module(wanted: Sequence[Artifact]) -> str:
    """The Ivy module file: artifacts with their runtime dependencies."""
    lines = "".join(f'<dependency org="{org}" name="{name}" rev="{rev}"/>\n' for org, name, rev in wanted)
    return (
        '<ivy-module version="2.0"><info organisation="mm2-migrate" module="lab"/>'
        '<configurations><conf name="run"/></configurations>\n'
        f'<dependencies defaultconf="run->default">\n{lines}</dependencies></ivy-module>\n'
    )
