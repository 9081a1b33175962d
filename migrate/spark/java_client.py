"""Kafka's Java Admin client inside a JVM that py4j speaks to: made, asked and closed; its errors in our words."""

from collections.abc import Mapping
from typing import Any

from migrate.errors import ClusterError
from migrate.mm2.secrets import redact
from migrate.model import Failure
from migrate.spark.java_errors import described, innermost, java_exception
from migrate.spark.java_settings import JavaSettings
from migrate.spark.machine import log_file

# The client itself gives up first: its own reason is better than ours.
GRACE_SECONDS = 10.0
TIMED_OUT = "REQUEST_TIMED_OUT"

_KAFKA = "org.apache.kafka"
_AUTHENTICATION_CLASS = f"{_KAFKA}.common.errors.AuthenticationException"
_RETRIABLE_CLASS = f"{_KAFKA}.common.errors.RetriableException"


class JavaClient:
    """One open Admin client of one cluster.

    `jvm` is py4j's view of a JVM that has Kafka's classes; `deadline_seconds` is how long one call may take.
    """

    def __init__(self, jvm: Any, settings: JavaSettings, deadline_seconds: float) -> None:
        """Open the client; raises `ClusterError` if Kafka will not have its settings."""
        from py4j.protocol import Py4JJavaError

        self.jvm = jvm
        self.deadline_seconds = deadline_seconds
        self.name = settings.name
        self._secrets = settings.secrets
        self._loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        self.kafka: Any = jvm.org.apache.kafka
        try:
            self.admin: Any = self.kafka.clients.admin.Admin.create(java_properties(jvm, settings.admin))
        except Py4JJavaError as error:
            raise self.unusable(java_exception(error)) from error

    def reach(self) -> None:
        """Ask the cluster for its id; raises `ClusterError` if it does not answer, or does not let us in."""
        from py4j.protocol import Py4JJavaError

        options = self.kafka.clients.admin.DescribeClusterOptions().timeoutMs(int(self.deadline_seconds * 1000))
        try:
            self.get(self.admin.describeCluster(options).clusterId(), self.deadline_seconds + GRACE_SECONDS)
        except Py4JJavaError as error:
            raise self.unusable(java_exception(error)) from error

    def close(self) -> None:
        """Close the client at once: a JVM waits a while, at its end, for what an open one's thread may still do."""
        self.admin.close(self.jvm.java.time.Duration.ZERO)

    def get(self, future: Any, seconds: float) -> Any:
        """Return a Java future's value; raises `Py4JJavaError` with what it ended in, or after `seconds`."""
        return future.get(int(seconds * 1000), self.jvm.java.util.concurrent.TimeUnit.MILLISECONDS)

    def failure(self, throwable: Any, what: str) -> Failure:
        """Return a call's error under Kafka's name of it; raises `ClusterError` if we were not let in."""
        inner = innermost(throwable)
        if self.java_class(_AUTHENTICATION_CLASS).isInstance(inner):
            raise self.unusable(inner)
        code = self.code(inner)
        retriable = code == TIMED_OUT or bool(self.java_class(_RETRIABLE_CLASS).isInstance(inner))
        return Failure(code, f"{what}: {redact(described(inner), self._secrets)}", retriable)

    def code(self, throwable: Any) -> str:
        """Return Kafka's name of a Java throwable's innermost cause."""
        inner = innermost(throwable)
        # A future's own deadline: Kafka would call what it does not know an error of the server.
        if inner.getClass().getName() == "java.util.concurrent.TimeoutException":
            return TIMED_OUT
        return str(self.kafka.common.protocol.Errors.forException(inner).name())

    def unusable(self, throwable: Any) -> ClusterError:
        """Return the error that says that this client cannot be used, and why."""
        return ClusterError(
            f"{self.name} cannot be used by Kafka's Java client: {redact(described(throwable), self._secrets)}.",
            f"Check the security settings in its client properties; Spark's own log is {log_file()}.",
        )

    def java_class(self, name: str) -> Any:
        """Return a Java class by its full name, by the loader that has Kafka's."""
        return self.jvm.java.lang.Class.forName(name, True, self._loader)


def java_properties(jvm: Any, settings: Mapping[str, str]) -> Any:
    """Return settings as a `java.util.Properties`."""
    properties = jvm.java.util.Properties()
    for key, value in settings.items():
        properties.put(key, value)
    return properties
