"""A dedicated MirrorMaker 2 that belongs to this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from tests.lab.classes import archive, keep_classes
from tests.lab.jars import DEFAULT_VERSION, kafka_jars
from tests.lab.options import MirrorOptions
from tests.lab.process import GuardedProcess, java_command
from tests.lab.progress import DEADLINE_SECONDS, MirrorProgress
from tests.lab.quotas import quota
from tests.lab.waiting import wait_until

MIRROR_HEAP = "768m"
READY_DEADLINE_SECONDS = 120.0


class MirrorMaker:
    """One MM2 process copying from one cluster to another.

    `properties_path` is its mm2.properties, which is also what the migration tool reads. `progress` offers
    the waiting conditions and MM2's newest checkpoints and syncs.
    """

    main_class = "org.apache.kafka.connect.mirror.MirrorMaker"

    def __init__(
        self,
        folder: Path,
        source_bootstrap: str,
        target_bootstrap: str,
        options: MirrorOptions | None = None,
        version: str = DEFAULT_VERSION,
        properties_path: Path | None = None,
    ) -> None:
        self.options = options or MirrorOptions()
        self.progress = MirrorProgress(self.options, source_bootstrap, target_bootstrap)
        self.wait_until_replicated = self.progress.wait_until_replicated
        self.wait_checkpoints = self.progress.wait_checkpoints
        self.properties_path = properties_path or folder / "mm2.properties"
        self._heartbeats_from = 0
        jars = kafka_jars(version)
        self._classes = archive(jars, self.main_class)
        command = java_command(jars, self.main_class, str(self.main_file), heap=MIRROR_HEAP)
        self.process = GuardedProcess(f"MirrorMaker {self.options.flow}", command, folder / "mirror.log")
        self.write_properties()

    @property
    def main_file(self) -> Path:
        """The properties file that the process is started with."""
        return self.properties_path

    @property
    def copying_client(self) -> str:
        """The client id of the producer that writes a task's copies, without the task's number."""
        return "connector-producer-MirrorSourceConnector"

    @property
    def recording_client(self) -> str:
        """The client id of the producer that records what was copied."""
        return f"{self.options.source_alias}-mm2-{self.options.flow}-offsets"

    @property
    def running(self) -> bool:
        return self.process.running

    @property
    def pid(self) -> int | None:
        return self.process.pid

    def write_properties(self) -> None:
        lines = self.options.properties(self.progress.source_bootstrap, self.progress.target_bootstrap)
        self.properties_path.parent.mkdir(parents=True, exist_ok=True)
        self.properties_path.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))

    def start(self) -> None:
        """Start the process; `wait_ready` does the waiting."""
        self._heartbeats_from = self.progress.heartbeats_end()
        self.process.start()

    def wait_ready(self, deadline_seconds: float = READY_DEADLINE_SECONDS) -> None:
        """Wait until its internal topics exist and this run of it has written a heartbeat."""

        def ready() -> bool:
            return not self.progress.missing_topics() and self.progress.has_heartbeat_from(self._heartbeats_from)

        self.process.wait_ready(ready, deadline_seconds, "its topics and a heartbeat were there")
        keep_classes(self.process.pid, self._classes)

    def stop(self, deadline_seconds: float = 60.0) -> bool:
        """A clean stop; False if it had to be killed after the deadline."""
        return self.process.stop(deadline_seconds)

    def kill(self) -> None:
        """kill -9. Without exactly-once, the next run copies some records a second time."""
        self.process.kill()

    def pause(self) -> None:
        """SIGSTOP: replication stands still until `resume`."""
        self.process.pause()

    def resume(self) -> None:
        self.process.resume()

    @contextmanager
    def copying_held(self) -> Iterator[None]:
        """Let each task write one more request of copies, and then none; it is to be killed in the block."""
        with ExitStack() as held:
            for task in range(self.options.tasks_max):
                held.enter_context(self._held(f"{self.copying_client}-{task}"))
            yield

    @contextmanager
    def recording_held(self) -> Iterator[None]:
        """Let it go on copying, and not record how far it is; it is to be killed in the block.

        The next run copies again what was not recorded. With exactly-once both are one transaction.
        """
        if self.options.exactly_once:
            yield
            return
        # A beat comes every second, and each task records in the worker's own interval, at a time of its own.
        interval_ms = int(self.options.extra.get(f"{self.options.target_alias}.offset.flush.interval.ms", "1000"))
        unrecorded = 2 + -(-interval_ms // 1000)
        with self._held(self.recording_client):
            looks: list[tuple[int, int]] = []

            def held() -> bool:
                looks.append((self.progress.recorded_end(), self.progress.heartbeats_end()))
                recorded, beats = looks[-1]
                return beats - min(beat for end, beat in looks if end == recorded) >= unrecorded

            # One record may be written after the quota is set, so to look for the next record would be to wait for
            # ever where that one was quicker than the look.
            wait_until(held, DEADLINE_SECONDS, f"{self.process.name} to write heartbeats and to record none of them")
            yield

    def _held(self, client: str) -> AbstractContextManager[None]:
        """A request over its quota is written; the next has to wait for as many seconds as that had bytes.

        The broker lets that connection wait even where the quota is gone meanwhile.
        """
        return quota(self.progress.target_bootstrap, {"client-id": client}, {"producer_byte_rate": 1})
