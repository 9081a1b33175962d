"""A client's properties as Spark's Kafka source and Kafka's Java Admin take them: nearly as they are."""

from collections.abc import Mapping

from migrate.mm2.config_providers import without_providers
from migrate.mm2.flow import CLIENT_ID, NEVER_CREATE

# Kafka's ClientUtils.filterPreferredAddresses; librdkafka tries them all.
JAVA_ADDRESSES = (
    "If a name has IPv4 and IPv6 addresses, Java tries only the IPv4 ones; if brokers listen on IPv6 alone, set "
    "JAVA_TOOL_OPTIONS=-Djava.net.preferIPv6Addresses=true."
)

# Spark rejects most of these; interceptors and reporters make Java load classes that are not there.
_NOT_FOR_SPARK = frozenset(
    (
        "auto.offset.reset",
        "enable.auto.commit",
        "group.id",
        "interceptor.classes",
        "key.deserializer",
        "metric.reporters",
        "value.deserializer",
    )
)
_NOT_FOR_ADMIN = _NOT_FOR_SPARK | {"key.serializer", "value.serializer"}


def spark_options(properties: Mapping[str, str]) -> dict[str, str]:
    """Return options for Spark's Kafka source; the settings that it rejects are left out."""
    return {f"kafka.{key}": value for key, value in _for_java(properties, _NOT_FOR_SPARK).items()}


def java_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties for Kafka's Java Admin client."""
    return _for_java(properties, _NOT_FOR_ADMIN)


def _for_java(properties: Mapping[str, str], left_out: frozenset[str]) -> dict[str, str]:
    kept = {k: v for k, v in without_providers(properties).items() if k not in left_out}
    return {"client.id": CLIENT_ID} | kept | NEVER_CREATE
