"""A Kafka Connect worker's REST: MM2's connectors, and the positions that they have committed. Reads only.

An answer may hold passwords (the worker shows settings as they were given), so no part of one ever reaches a message
but the first line of a failed task's trace, redacted (of one whose settings keep secrets elsewhere, only the
exception's name), and only the facts of `migrate.mm2.connectors` are kept.
"""

import json
import os
from base64 import b64encode
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import quote, urlsplit

from migrate.errors import ClusterError, UsageError
from migrate.mm2.connect_offsets import positions_in
from migrate.mm2.connector_status import ConnectorTasks, Mm2Tasks, exception_name, first_line, parts_of
from migrate.mm2.connectors import Described, Role, connector_of
from migrate.mm2.flow import Mm2Home, Mm2Runtime
from migrate.mm2.secrets import redact, secret_values
from migrate.model import Failure, TopicPartition
from migrate.silence import asking

# Never an option: a process list shows what is typed.
LOGIN = "MM2_MIGRATE_CONNECT_LOGIN"
CALL_SECONDS = 30.0
# How a setting names a value that a config provider has (KIP-297): ${provider:path:key}.
REFERENCE = "${"
WITHOUT_WORKER = (
    "If MM2 is stopped for the cutover, leave --connect-url out and give --source-config, --target-config and the "
    "names that differ from MM2's defaults."
)


@dataclass(frozen=True, slots=True)
class ConnectWorker:
    """One worker of a Connect cluster; any of them reports all connectors. `login` is "user:password" or "".

    The adapter behind `migrate.mm2.connector_status.WorkerReader` for a flow whose source is called `source_alias`:
    `connectors` are MM2's, by name; `secrets` are hidden in what is shown of their tasks' traces.
    """

    url: str
    login: str = field(default="", repr=False)
    deadline_seconds: float = CALL_SECONDS
    connectors: Mapping[str, Role] = field(default_factory=dict)
    source_alias: str = ""
    secrets: Collection[str] = field(default=(), repr=False)

    @property
    def where(self) -> str:
        """The worker, for messages."""
        return f"the Connect worker at {self.url}"

    @property
    def warning(self) -> str:
        """What is to be said of the way to it: a login that anybody on that way can read; "" where nothing is."""
        if not self.login or urlsplit(self.url).scheme == "https":
            return ""
        return (
            f"{LOGIN} goes to {self.url} unencrypted: whoever is on the way can read it. Use https://, or a worker "
            "that asks for no login."
        )

    def described(self) -> Described:
        """Return MM2's connectors that run there. Raises `ClusterError` if the worker does not report them."""
        root = self._get("/")
        version = root.get("version") if isinstance(root, Mapping) else None
        listed = self._get("/connectors?expand=info")
        if not isinstance(version, str) or not isinstance(listed, Mapping):
            raise self._no_worker()
        runtime = Mm2Runtime(Mm2Home.CONNECT, version=version, url=self.url)
        connectors = []
        for name, about in sorted(listed.items()):
            match about:
                case {"info": {"config": dict(settings)}} if connector := connector_of(str(name), settings, runtime):
                    connectors.append(connector)
        return Described(self.where, "--connect-url", connectors)

    def positions(self) -> Mapping[TopicPartition, int]:
        """Return the last source offset copied, by source partition."""
        copying = (name for name, role in self.connectors.items() if role is Role.SOURCE)
        return positions_in((pair for name in copying for pair in self._offsets(name)), self.source_alias)

    def tasks(self) -> Mm2Tasks:
        """Return the state of each connector."""
        return {name: self._tasks(name, role) for name, role in self.connectors.items()}

    def _offsets(self, connector: str) -> Sequence[tuple[object, object]]:
        """Return the (partition, offset) documents that a source connector has committed (KIP-875, Kafka 3.5)."""
        match self._get(f"/connectors/{quote(connector, safe='')}/offsets"):
            case {"offsets": list(entries)}:
                return [(e.get("partition"), e.get("offset")) for e in entries if isinstance(e, Mapping)]
        raise self._no_worker()

    def _tasks(self, connector: str, role: Role) -> ConnectorTasks | Failure:
        path = f"/connectors/{quote(connector, safe='')}"
        try:
            status = parts_of(self._get(f"{path}/status"))
        except ClusterError as error:
            return Failure("NOT_TOLD", error.problem)
        if status is None:
            return Failure("NOT_TOLD", self._no_worker().problem)
        parts, traces = status
        if not traces:
            return ConnectorTasks(role, parts)
        settings: object = None
        with suppress(ClusterError):
            settings = self._get(f"{path}/config")
        if not isinstance(settings, Mapping):
            # What a trace quotes is not known then, and nothing of it is shown.
            return ConnectorTasks(role, parts)
        of_settings = secret_values({str(key): str(value) for key, value in settings.items()})
        if any(REFERENCE in secret for secret in of_settings):
            # The worker shows where a secret is kept, not the secret, which a message may still quote.
            lines = {task: exception_name(trace) for task, trace in traces.items()}
        else:
            lines = {task: first_line(redact(trace, {*self.secrets, *of_settings})) for task, trace in traces.items()}
        return ConnectorTasks(role, tuple(replace(part, trace=lines.get(part.task, "")) for part in parts))

    def _get(self, path: str) -> object:
        status, body = self._answer(path)
        if status in (401, 403):
            raise self._failure(f"refuses us (HTTP {status})", f"Set {LOGIN}=USER:PASSWORD in the environment.")
        if status == 409:
            raise self._failure("is rebalancing (HTTP 409)", "Try again in a moment.")
        if status == 404 and path.endswith("/offsets"):
            raise self._failure(
                "does not serve offsets (HTTP 404): it is older than Kafka 3.5",
                "Name the worker's offset.storage.topic with --connect-offsets-topic.",
            )
        if status != 200:
            raise self._failure(
                f"answers HTTP {status} to GET {path}",
                "Is it Kafka Connect's REST? An MM2 that runs by itself has none: give --mm2-config.",
            )
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            raise self._no_worker() from None

    def _answer(self, path: str) -> tuple[int, bytes]:
        parts = urlsplit(self.url)
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=self.deadline_seconds)
        headers = {"Accept": "application/json"}
        if self.login:
            headers["Authorization"] = "Basic " + b64encode(self.login.encode()).decode()
        try:
            with asking(f"the Connect worker at {self.url}", self.deadline_seconds):
                connection.request("GET", parts.path.rstrip("/") + path, headers=headers)
                answer = connection.getresponse()
                return answer.status, answer.read()
        except (OSError, HTTPException) as error:
            why = f": {getattr(error, 'strerror', None) or type(error).__name__}"
            if isinstance(error, TimeoutError):
                why = f" within {self.deadline_seconds:g} s"
            raise self._failure(f"does not answer{why}", f"Check the address. {WITHOUT_WORKER}") from error
        finally:
            connection.close()

    def _failure(self, what: str, todo: str) -> ClusterError:
        return ClusterError(f"The Connect worker at {self.url} {what}.", todo)

    def _no_worker(self) -> ClusterError:
        return ClusterError(
            f"What answers at {self.url} is not a Kafka Connect worker.",
            "Name the root of its REST, such as http://connect:8083.",
        )


def connect_worker(url: str, deadline_seconds: float = CALL_SECONDS) -> ConnectWorker:
    """Return the worker at an address; raises `UsageError` for one that is no plain http or https address."""
    trouble = ""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        parts, trouble = urlsplit(""), "it cannot be read"
    if parts.username is not None or parts.password is not None:
        trouble = "it has a login in it, which every process list shows"
    elif parts.scheme not in ("http", "https") or not parts.hostname:
        trouble = trouble or "expected http://HOST:PORT or https://HOST:PORT"
    elif parts.query or parts.fragment:
        trouble = "only the root of the REST belongs there"
    if trouble:
        raise UsageError(
            f"invalid --connect-url: {trouble}.",
            f"Give http://HOST:PORT; a login goes into the environment, {LOGIN}=USER:PASSWORD.",
        )
    return ConnectWorker(url.rstrip("/"), os.environ.get(LOGIN, ""), deadline_seconds)
