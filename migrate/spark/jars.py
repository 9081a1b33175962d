"""The jars that Spark lacks, fetched once into a cache: its Kafka connector, which must fit the installed pyspark.

And Amazon's library, for those who log in to MSK by it. Left to itself, Spark resolves `spark.jars.packages` at every
start and prints Ivy's report on the user's stderr. Here the same Ivy (it ships with pyspark) runs once, quietly, and
later starts name the files.
"""

import fcntl
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import quoteattr

from migrate.errors import EnvironmentLacks
from migrate.spark.java import java_executable, java_version

MAVEN_CENTRAL = "https://repo1.maven.org/maven2/"
FETCH_DEADLINE_SECONDS = 600
CONNECTOR = "spark-sql-kafka-0-10"
MSK_IAM = "aws-msk-iam-auth"
# With all that it needs inside, some of which Spark has too, in other versions.
MSK_COORDINATE = f"software.amazon.msk:{MSK_IAM}:2.3.5:all"
HOW_TO_GIVE = (
    "Let this machine reach a Maven repository (MM2_MIGRATE_MAVEN_REPOSITORY=https://mirror/maven2 names "
    "another than Maven Central), run `mm2-migrate doctor` once where it can be reached and copy its cache "
    "folder, or name the jars with --spark-conf spark.jars=FILE,FILE..."
)


def cache_folder() -> Path:
    """Return where downloads are kept: $MM2_MIGRATE_CACHE, else `mm2-migrate` in the user's cache folder."""
    if own := os.environ.get("MM2_MIGRATE_CACHE"):
        return Path(own).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base).expanduser() if base else Path.home() / ".cache").absolute() / "mm2-migrate"
    except RuntimeError:  # a container's user, that no passwd file and no HOME knows
        raise EnvironmentLacks(
            "This user has no home folder to keep the cache in.", "Name a cache folder with MM2_MIGRATE_CACHE."
        ) from None


def spark_jars_folder() -> Path:
    """Return the folder of Spark's own jars; raises `EnvironmentLacks` if no pyspark is installed."""
    try:
        from pyspark.find_spark_home import _find_spark_home
    except ImportError:
        raise EnvironmentLacks("pyspark is not installed.", "Install it: pip install 'pyspark>=4.0,<4.3'.") from None
    return Path(_find_spark_home(), "jars")


def connector_coordinate() -> str:
    """Return the Maven coordinate of the connector for the installed pyspark: the versions must be equal."""
    from pyspark import __version__

    scala = "2.13"
    for jar in spark_jars_folder().glob("scala-library-*.jar"):
        scala = ".".join(jar.stem.removeprefix("scala-library-").split(".")[:2])
    return f"org.apache.spark:{CONNECTOR}_{scala}:{__version__}"


def connector_jars(conf: Mapping[str, str] | None = None) -> list[Path]:
    """Return the connector's jars, fetched into the cache if they are not there yet.

    Empty where `conf` (`spark.jars`, `spark.jars.packages`) or Spark's own jars folder brings them.
    `spark.jars.ivySettings` and `spark.jars.repositories` in `conf` are respected.
    Raises `EnvironmentLacks` if they cannot be fetched.
    """
    conf = conf or {}
    return [] if _is_brought(CONNECTOR, conf) else _cached(connector_coordinate(), conf)


def msk_jars(conf: Mapping[str, str], fetch: bool = False) -> list[Path]:
    """Return Amazon's jar for logins to MSK, in the same way; without `fetch`, only if the cache has it already."""
    is_there = _folder(MSK_COORDINATE).is_dir()
    return _cached(MSK_COORDINATE, conf) if (fetch or is_there) and not _is_brought(MSK_IAM, conf) else []


def _is_brought(name: str, conf: Mapping[str, str]) -> bool:
    named = ",".join(conf.get(key, "") for key in ("spark.jars", "spark.jars.packages"))
    return name in named or any(spark_jars_folder().glob(f"{name}*.jar"))


def _folder(coordinate: str) -> Path:
    return cache_folder() / "spark-kafka" / coordinate.replace(":", "_")


def _cached(coordinate: str, conf: Mapping[str, str]) -> list[Path]:
    folder = _folder(coordinate)
    try:
        if not folder.is_dir():
            java_version()
            folder.parent.mkdir(parents=True, exist_ok=True)
            with (folder.parent / "fetch.lock").open("a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not folder.is_dir():
                    with tempfile.TemporaryDirectory(prefix="fetch-", dir=folder.parent) as scratch:
                        _fetch(coordinate, Path(scratch), conf)
                        Path(scratch, "jars").rename(folder)
        # Not glob, which takes a folder that it may not read for an empty one.
        return sorted(path for path in folder.iterdir() if path.suffix == ".jar")
    except OSError as error:
        raise EnvironmentLacks(
            f"The cache folder {cache_folder()} cannot be used: {error.strerror}.",
            "Make it readable and writable, make room, or name another one with MM2_MIGRATE_CACHE.",
        ) from None


def _fetch(coordinate: str, scratch: Path, conf: Mapping[str, str]) -> None:
    """Let Ivy put the jars into `scratch/jars`."""
    repository = os.environ.get("MM2_MIGRATE_MAVEN_REPOSITORY", MAVEN_CENTRAL).rstrip("/") + "/"
    settings = scratch / "ivysettings.xml"
    named = [
        part.strip().rstrip("/") + "/" for part in conf.get("spark.jars.repositories", "").split(",") if part.strip()
    ]
    settings.write_text(_settings([repository, *named]), encoding="utf-8")
    if "spark.jars.ivySettings" in conf:
        settings = Path(conf["spark.jars.ivySettings"])
    (scratch / "ivy.xml").write_text(_module(coordinate), encoding="utf-8")
    command = [str(java_executable()), "-jar", str(_ivy_jar())]
    command += ["-ivy", str(scratch / "ivy.xml"), "-settings", str(settings)]
    command += ["-retrieve", f"{scratch}/jars/[artifact]-[revision].[ext]"]
    command += ["-types", "jar", "bundle", "-confs", "run", "-warn"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", check=False, timeout=FETCH_DEADLINE_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise EnvironmentLacks(
            f"Fetching {coordinate} from {repository} took over {FETCH_DEADLINE_SECONDS} s.", HOW_TO_GIVE
        ) from None
    name = coordinate.split(":")[1]
    if done.returncode != 0 or not any(scratch.glob(f"jars/{name}-*.jar")):
        what = "Amazon's library for MSK" if name == MSK_IAM else "Spark's Kafka connector"
        raise EnvironmentLacks(
            f"{what} {coordinate} could not be fetched from {repository}: {_cause(done.stdout + done.stderr)}.",
            HOW_TO_GIVE,
        )


def _settings(repositories: list[str]) -> str:
    resolvers = "".join(
        f"<ibiblio name='maven{number}' m2compatible='true' root={quoteattr(root)}/>"
        for number, root in enumerate(repositories)
    )
    return (
        "<ivysettings><settings defaultResolver='maven'/>"
        f"<caches defaultCacheDir={quoteattr(str(cache_folder() / 'ivy'))}/>"
        f"<resolvers><chain name='maven' returnFirst='true'>{resolvers}</chain></resolvers></ivysettings>\n"
    )


def _module(coordinate: str) -> str:
    """Ivy's wish list: an artifact and what it needs, without what Spark has already (Hadoop alone: 50 MB).

    What has a classifier has all inside that it needs.
    """
    organisation, name, version, *classifier = coordinate.split(":")
    wanted = f'<dependency org="{organisation}" name="{name}" rev="{version}"'
    if classifier:
        artifact = f'<artifact name="{name}" type="jar" m:classifier="{classifier[0]}"/>'
        wanted += f' transitive="false">{artifact}</dependency>'
    else:
        present = {re.sub(r"-\d.*", "", jar.stem) for jar in spark_jars_folder().glob("*.jar")}
        excludes = "".join(f"<exclude module={quoteattr(module)}/>" for module in sorted(present))
        wanted += f"/>{excludes}"
    return (
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">'
        '<info organisation="mm2-migrate" module="connector"/><configurations><conf name="run"/></configurations>'
        f'<dependencies defaultconf="run->default">{wanted}</dependencies></ivy-module>\n'
    )


def _ivy_jar() -> Path:
    for jar in sorted(spark_jars_folder().glob("ivy-*.jar")):
        return jar
    raise EnvironmentLacks(f"There is no Ivy in {spark_jars_folder()} to fetch Spark's connector with.", HOW_TO_GIVE)


def _cause(output: str) -> str:
    """One phrase out of Ivy's long report."""
    if access := re.search(r"(?:Server access error|Host \S+ not found|Connection \S+|UnknownHost)[^\n]*", output):
        return f"the repository cannot be reached ({access[0].strip().rstrip('.')})"
    if missing := sorted(set(re.findall(r":: ([\w.-]+#[\w.-]+;[\w.-]+): not found", output))):
        return f"it does not have {', '.join(missing)}"
    last = [line.strip() for line in output.splitlines() if line.strip(" \t:.")]
    return last[-1].rstrip(".") if last else "Ivy printed nothing"
