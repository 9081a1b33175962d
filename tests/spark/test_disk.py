"""No secret on any disk: whatever Spark and Python write while many topics are compared, and what they delete again."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from migrate.errors import EnvironmentLacks
from migrate.kafka.reader_pair import KafkaReaders
from migrate.kafka.settings import ClientSettings
from migrate.match.compare import compare_records
from migrate.match.protocol import no_chain
from migrate.model import Side, TopicPartition
from migrate.spark.jars import cache_folder
from migrate.spark.tasks import SparkTasks
from tests.spark.comparescene import NO_LIMITS, Heard, plain
from tests.spark.diskrun import TOPICS, name_of
from tests.spark.processes import with_our_package

SECRETS = ("hush-hush-of-A", "hush-hush-of-B")
LOOK_SECONDS = 0.002


@contextmanager
def every_file_kept(folder: Path, kept: Path) -> Iterator[None]:
    """Give each file below a folder a second name as soon as it is seen: what deletes it takes the first."""
    over = threading.Event()

    def look() -> None:
        while not over.wait(LOOK_SECONDS):
            for place, _, names in os.walk(folder):
                for name in names:
                    path = Path(place, name)
                    with suppress(OSError):  # gone already, or kept already
                        os.link(path, kept / f"{path.stat().st_ino}-{name[-100:]}", follow_symlinks=False)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def test_a_run_over_many_topics_leaves_and_makes_no_file_with_a_secret(tmp_path: Path) -> None:
    folder, kept = tmp_path / "run", tmp_path / "kept"
    cache, temporary = folder / "cache", folder / "tmp"
    for each in (kept, cache, temporary):
        each.mkdir(parents=True)
    (cache / "spark-kafka").symlink_to(cache_folder() / "spark-kafka")
    environment = {
        **with_our_package(),
        "MM2_MIGRATE_CACHE": str(cache),
        "TMPDIR": str(temporary),
        "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={temporary}",
    }
    command = [sys.executable, "-m", "tests.spark.diskrun", str(folder), *SECRETS]
    with every_file_kept(folder, kept):
        done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=400)
    assert (done.stdout, done.stderr) == (f"{TOPICS}\n{TOPICS}\n", "")
    files = [path for path in (*folder.rglob("*"), *kept.iterdir()) if path.is_file()]
    texts = {path: path.read_bytes() for path in files}
    # It looks where something is: the event log, and what tasks exchange, which is deleted in the end.
    assert any(b"SparkListenerEnvironmentUpdate" in text for text in texts.values())
    assert any(name_of(0).encode() in text for path, text in texts.items() if "shuffle" in path.name), sorted(texts)
    for secret in SECRETS:
        assert not [str(path) for path, text in texts.items() if secret.encode() in text]


def test_settings_that_spark_would_write_to_a_file_are_refused(spark) -> None:  # type: ignore[no-untyped-def]
    works = plain(TopicPartition("t", 0)).works
    sides = [ClientSettings(side, side.name, side.name, {"ssl.ca.pem": side.name[0] * 600_000}) for side in Side]
    readers = KafkaReaders(sides[0], sides[1], 10.0)
    with pytest.raises(EnvironmentLacks, match=r"take 1\.3 MB.*larger than 1\.0 MB.*truststores"):
        compare_records(SparkTasks(lambda: spark, lambda: no_chain, readers), works, NO_LIMITS, Heard().listener)
    # What does not fit into memory is encrypted on disk.
    assert spark.sparkContext.getConf().get("spark.io.encryption.enabled") == "true"
    assert spark.sparkContext._encryption_enabled
