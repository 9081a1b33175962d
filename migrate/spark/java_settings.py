"""A client's properties as Spark's Kafka source and Kafka's Java Admin take them: nearly as they are."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from migrate.errors import ClusterError, UsageError
from migrate.mm2.config_providers import without_providers
from migrate.mm2.flow import CLIENT_ID, NEVER_CREATE, Cluster
from migrate.mm2.jaas import LOGIN_HANDLER, OAUTH_CLASSES, OAUTH_SETTINGS, LoginModule, jaas_text, parse_jaas
from migrate.mm2.java_properties import BLANKS
from migrate.mm2.secrets import secret_values
from migrate.token_command import ENDPOINT_CLIENT, SERVED, token_endpoint

PREFER_IPV6 = "-Djava.net.preferIPv6Addresses=true"
# Kafka's ClientUtils.filterPreferredAddresses; librdkafka tries them all.
JAVA_ADDRESSES = (
    "If a name has IPv4 and IPv6 addresses, Java tries only the IPv4 ones; if brokers listen on IPv6 alone, set "
    f"JAVA_TOOL_OPTIONS={PREFER_IPV6}."
)

ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
_ALLOWED_URLS = "org.apache.kafka.sasl.oauthbearer.allowed.urls"

# Spark rejects most of these; interceptors and reporters make Java load classes that are not there.
_NOT_FOR_SPARK = {
    "auto.offset.reset", "enable.auto.commit", "group.id", "interceptor.classes", "key.deserializer",
    "metric.reporters", "value.deserializer",
}  # fmt: skip
_NOT_FOR_ADMIN = _NOT_FOR_SPARK | {"key.serializer", "value.serializer"}


@dataclass(frozen=True, slots=True)
class JavaSettings:
    """One cluster as Kafka's Java clients take it.

    `name` is the cluster's in messages, "source A (broker:9092)"; `admin` the properties of the Java Admin; `source`
    the options of Spark's Kafka source, without the settings that it rejects; `secrets` what no message may show.
    """

    name: str
    admin: Mapping[str, str] = field(repr=False)
    source: Mapping[str, str] = field(repr=False)
    secrets: frozenset[str] = field(repr=False)


def java_settings(cluster: Cluster) -> JavaSettings:
    """Return what every Java client to this cluster is made with."""
    properties = _by_token(cluster)
    source = {f"kafka.{key}": value for key, value in _for_java(properties, _NOT_FOR_SPARK).items()}
    admin = _for_java(properties, _NOT_FOR_ADMIN)
    return JavaSettings(cluster.name, admin, source, secret_values(properties))


def allow_token_endpoint(jvm: Any, settings: Mapping[str, str]) -> None:
    """Let Kafka's clients in a JVM ask the token endpoint of these settings.

    Since Kafka 4.0 they ask none that no property of the JVM allows. The settings of a client may be somebody else's
    there; here they are the user's own.
    """
    if url := settings.get(ENDPOINT) or settings.get(f"kafka.{ENDPOINT}"):
        system = jvm.java.lang.System
        allowed = filter(None, (system.getProperty(_ALLOWED_URLS) or "").split(","))
        system.setProperty(_ALLOWED_URLS, ",".join(dict.fromkeys([*allowed, url])))


def is_for_this_machine(settings: Mapping[str, str]) -> bool:
    """True if the login takes tokens from an endpoint that only this machine reaches."""
    return settings.get(f"kafka.{ENDPOINT}") in SERVED


def out_of_reach() -> UsageError:
    """Return the error of executors on other machines, which do not reach that endpoint."""
    return UsageError(
        "Spark's executors cannot log in with tokens that a command prints on this machine.",
        f"Name a callback handler that gets tokens there with {LOGIN_HANDLER} in the client properties, and its jar "
        "with --spark-conf spark.jars=JAR; or use --master 'local[*]'.",
    )


def takes_printed_tokens(cluster: Cluster) -> bool:
    """True if Java's clients log in with what a command prints, and not by a callback handler of the user's own."""
    handler = cluster.properties.get(LOGIN_HANDLER, "").strip(BLANKS)
    return cluster.token_command is not None and (not handler or handler.endswith(".OAuthBearerLoginCallbackHandler"))


def _by_token(cluster: Cluster) -> Mapping[str, str]:
    """Return a cluster's properties, logged in with what its command prints; raises `ClusterError` if it does not."""
    command, properties = cluster.token_command, cluster.properties
    if command is None or not takes_printed_tokens(cluster):
        return properties
    if command.token().text.count(".") != 2:
        raise ClusterError(
            f"{command.option} prints a token that is no JWT, and Kafka's Java clients take no other by themselves.",
            f"Name the callback handler of whoever gives such tokens with {LOGIN_HANDLER} in the client properties, "
            "and its jar with --spark-conf spark.jars=JAR.",
        )
    endpoint = token_endpoint(command)
    login = {"clientId": ENDPOINT_CLIENT, "clientSecret": endpoint.secret}
    return {key: value for key, value in properties.items() if not key.startswith("sasl.")} | {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": jaas_text(LoginModule(f"{OAUTH_CLASSES}.OAuthBearerLoginModule", "required", login)),
        LOGIN_HANDLER: f"{OAUTH_CLASSES}.OAuthBearerLoginCallbackHandler",
        ENDPOINT: endpoint.url,
    }


def _for_java(properties: Mapping[str, str], left_out: set[str]) -> dict[str, str]:
    kept = {k: v for k, v in without_providers(properties).items() if k not in left_out}
    return {"client.id": CLIENT_ID} | kept | _login(kept) | NEVER_CREATE


def _login(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the login module with the credentials of OAuth's own settings in it, nothing where there are none.

    These settings came with Kafka 4.1 (KIP-1139); the client in Spark is older, and reads the module's options alone.
    """
    given = {
        option: value for key, option in OAUTH_SETTINGS.items() if (value := properties.get(key, "").strip(BLANKS))
    }
    text = properties.get("sasl.jaas.config", "")
    protocol, mechanism = (properties.get(k, "").strip(BLANKS).upper() for k in ("security.protocol", "sasl.mechanism"))
    if not given or not protocol.startswith("SASL") or mechanism != "OAUTHBEARER":
        return {}
    module = parse_jaas(text, "the client properties")
    return {"sasl.jaas.config": jaas_text(replace(module, options={**module.options, **given}))}
