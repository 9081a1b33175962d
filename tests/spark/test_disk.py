"""No secret on any disk: whatever Spark and Python write while many topics are compared, and what they delete again.

`python -m tests.spark.test_disk FOLDER SECRET...` compares so many topics that what Spark's tasks are given does not
fit into a megabyte. It leaves its event log in the folder, and Spark's local files below it.
"""

import os
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from migrate.errors import EnvironmentLacks
from migrate.kafka.reader_pair import KafkaReaders
from migrate.kafka.settings import ClientSettings
from migrate.match.compare import compare_records
from migrate.match.protocol import Limits, Work, no_chain
from migrate.mm2.wire import SyncRecord
from migrate.model import LogRange, Side, TopicPartition
from migrate.spark.jars import cache_folder
from migrate.spark.session import spark_session, stop_session
from migrate.spark.syncs import Syncs
from migrate.spark.tasks import SparkTasks
from tests.memorylogs import MemoryReader
from tests.spark.comparescene import NO_LIMITS, Heard, plain
from tests.spark.processes import with_our_package
from tests.spark.records import FLOW, frame
from tests.wirebytes import encode_sync

SECRETS = ("hush-hush-of-A", "hush-hush-of-B")
LOOK_SECONDS = 0.002
TOPICS = 4_500
# Of the longest names that there are, fewer topics do.
NAME_LENGTH = 249
EMPTY = LogRange(0, 0)


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
    command = [sys.executable, "-m", "tests.spark.test_disk", str(folder), *SECRETS]
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


@dataclass(frozen=True)
class SecretReaders:
    """What travels to the tasks as it does in earnest: settings with secrets. The logs that it opens are empty."""

    settings: KafkaReaders

    @contextmanager
    def __call__(self) -> Iterator[tuple[MemoryReader, MemoryReader]]:
        yield MemoryReader(defaultdict(dict)), MemoryReader(defaultdict(dict))


def name_of(number: int) -> str:
    return f"{number:05}".ljust(NAME_LENGTH, "t")


def main(folder: Path, secrets: list[str]) -> None:
    events = folder / "events"
    events.mkdir()
    spark = spark_session(
        "local[2]",
        {
            "spark.local.dir": str(folder / "local"),
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": f"file://{events}",
            "spark.eventLog.compress": "false",
            # What is looked for must not hide: all is written as it is.
            "spark.io.encryption.enabled": "false",
            "spark.broadcast.compress": "false",
            "spark.shuffle.compress": "false",
            "spark.shuffle.spill.compress": "false",
        },
    )
    names = [name_of(number) for number in range(TOPICS)]
    works = [Work(TopicPartition(n, 0), TopicPartition(f"A.{n}"[:249], 0), EMPTY, EMPTY, (0,)) for n in names]
    config = [{"sasl.password": secret, "ssl.key.pem": secret} for secret in secrets]
    sides = [
        ClientSettings(side, side.name, str(side), said, frozenset(said.values()))
        for side, said in zip(Side, config, strict=True)
    ]
    try:
        readers = SecretReaders(KafkaReaders(sides[0], sides[1], 10.0))
        syncs = Syncs(frame(spark, [encode_sync(SyncRecord(names[0], 0, 0, 0))]), FLOW)
        # The questions held in the driver, and in Spark.
        for chains in (no_chain, syncs):
            tasks = SparkTasks(lambda: spark, lambda chains=chains: chains, readers)  # type: ignore[misc]
            found = compare_records(tasks, works, Limits(1000, None), Heard().listener)
            print(len(found.answers))
    finally:
        stop_session(spark)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
