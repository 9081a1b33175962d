"""The worked example of docs/positions.md: a loader with its offsets in MariaDB, in one transaction with its rows.

It reads on A, is stopped, its table is exported, planned and set anew, and it goes on from B: every record once.
The server is of the system's packages (Debian: mariadb-server-core and mariadb-client-core).
"""

import csv
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.integration.cli import CommandLine
from tests.integration.clusters import QUIET, READ_SECONDS, drain
from tests.integration.scene import Scene
from tests.lab.lab import Lab
from tests.lab.waiting import wait_until
from tests.seeds import new_seed

pytestmark = pytest.mark.long

DEADLINE_SECONDS = 60.0
# Daemons lie there on Debian, and not every user looks there.
PATH = os.environ.get("PATH", "") + os.pathsep + "/usr/sbin"
# Statements to what the server's own client prints of them: a heading, then lines with tabs.
Sql = Callable[[str], str]
TABLES = """
CREATE TABLE offsets (topic VARCHAR(249), partition_id INT, next_offset BIGINT, PRIMARY KEY (topic, partition_id));
CREATE TABLE loaded (id VARCHAR(200));
"""
# As docs/positions.md has it.
EXPORT = "SELECT 'loader' holder, topic, partition_id `partition`, next_offset `offset` FROM offsets"


def program(name: str) -> str:
    found = shutil.which(name, path=PATH)
    if found is None:
        pytest.skip(f"MariaDB is missing ({name}): apt-get install mariadb-server-core mariadb-client-core")
    return found


@contextmanager
def database(folder: Path) -> Iterator[Sql]:
    """Run a server with an empty database `jobs`; the test is skipped where MariaDB is not installed."""
    server, client, install = map(program, ("mariadbd", "mariadb", "mariadb-install-db"))
    socket = Path("/tmp") / f"mm2-migrate-{os.getpid()}.sock"
    own = ["--no-defaults", f"--datadir={folder / 'data'}", "--user=root"]
    asking = [client, "--no-defaults", f"--socket={socket}", "--user=root", "--batch"]

    def ask(sql: str, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*asking, *words], input=sql, capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False
        )

    def run(sql: str) -> str:
        done = ask(sql, "jobs")
        assert done.returncode == 0, done.stderr
        return done.stdout

    made = [install, *own, "--auth-root-authentication-method=normal", "--skip-test-db"]
    subprocess.run(made, check=True, capture_output=True, timeout=DEADLINE_SECONDS)
    with (folder / "server.log").open("w") as log:
        words = [server, *own, f"--socket={socket}", "--skip-networking", f"--pid-file={folder / 'pid'}"]
        process = subprocess.Popen(words, stdout=log, stderr=log)
    try:
        wait_until(lambda: ask("CREATE DATABASE jobs").returncode == 0, DEADLINE_SECONDS, "MariaDB to answer")
        yield run
    finally:
        process.terminate()
        process.wait(DEADLINE_SECONDS)
        socket.unlink(missing_ok=True)


class Loader:
    """Reads on from where its table says, and writes rows and offsets in one transaction."""

    def __init__(self, tables: Sql, bootstrap: str) -> None:
        self.tables, self.bootstrap = tables, bootstrap

    def load(self, most: int | None = None) -> None:
        """Load all that there is; or some, so many at least."""
        table = csv.DictReader(StringIO(self.tables("SELECT * FROM offsets")), delimiter="\t")
        at = {(row["topic"], int(row["partition_id"])): int(row["next_offset"]) for row in table}
        taken: list[Any] = []
        settings = {"bootstrap.servers": self.bootstrap, "group.id": "loader-never-commits",
                    "enable.auto.commit": False, "enable.partition.eof": most is None, **QUIET}  # fmt: skip
        with closing(Consumer(settings)) as consumer:
            consumer.assign([TopicPartition(topic, p, offset) for (topic, p), offset in at.items()])
            if most is None:
                drain(consumer, set(at), taken.append)
            else:
                wait_until(
                    lambda: taken.extend(consumer.consume(100, 0.05)) or len(taken) >= most, READ_SECONDS, "records"
                )
        statements = ["START TRANSACTION;"]
        for message in taken:
            assert message.error() is None
            (mine,) = [value.decode() for name, value in message.headers() if name == "id"]
            statements += [
                f"INSERT INTO loaded VALUES ('{mine}');",
                f"UPDATE offsets SET next_offset={message.offset() + 1} "
                f"WHERE topic='{message.topic()}' AND partition_id={message.partition()};",
            ]
        self.tables("\n".join([*statements, "COMMIT;"]))

    def loaded(self) -> Counter[str]:
        """The identities of all records that were loaded."""
        return Counter(self.tables("SELECT id FROM loaded").split("\n")[1:-1])


def test_a_loader_with_offsets_in_mariadb_goes_on_from_b_with_every_record_exactly_once(
    lab: Lab, tmp_path: Path
) -> None:
    scene, commands = Scene(lab, "table", new_seed()), CommandLine.of(lab, tmp_path)
    topic = scene.create("loaded", 3)
    scene.write(scene.partitions, 2000)
    with database(tmp_path) as tables:
        tables(TABLES + "".join(f"INSERT INTO offsets VALUES ('{topic}', {p}, 0);" for p in range(3)))
        Loader(tables, lab.source_bootstrap).load(most=700)
        before = tables(EXPORT)
        (tmp_path / "offsets.csv").write_text(before.replace("\t", ","))
        scene.write(scene.partitions, 1000)
        scene.wait_replicated()
        commands.run(
            "positions", "plan", *commands.clusters, "--settle", "1", "--out", "jobs.json", "--positions", "offsets.csv"
        ).expect(0)
        commands.run("positions", "print", "jobs.json", "--format", "csv", "--out", "on-b.csv").expect(0)
        rows = list(csv.DictReader((tmp_path / "on-b.csv").read_text().splitlines()))
        assert {row["topic"] for row in rows} == {scene.copy(topic)} and {row["grade"] for row in rows} == {"exact"}
        assert {row["rereads_at_most"] for row in rows} == {"0"}
        tables(
            "START TRANSACTION; DELETE FROM offsets;"
            + "".join(f"INSERT INTO offsets VALUES ('{r['topic']}', {r['partition']}, {r['offset']});" for r in rows)
            + "COMMIT;"
        )
        some = Loader(tables, lab.target_bootstrap).loaded()
        assert 700 <= some.total() < 3000
        Loader(tables, lab.target_bootstrap).load()
        loaded = Loader(tables, lab.target_bootstrap).loaded()
    written = [record.identity for place in scene.partitions for record in scene.written[place]]
    assert loaded == Counter(written) and len(written) == 3000
