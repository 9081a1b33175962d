"""Java client properties, as people have them, turned into what librdkafka takes: its own names, by a fixed table.

What has no counterpart is refused by name, because a setting left out in silence may be the one that keeps a connection
safe. Values never reach a message.
"""

import re
from collections.abc import Mapping

from migrate.errors import ConfigError
from migrate.kafka.client_security import Settings, map_sasl, map_tls
from migrate.kafka.settings import ClientSettings
from migrate.mm2.flow import CLIENT_ID, NEVER_CREATE, Cluster
from migrate.mm2.java_properties import PROVIDERS
from migrate.mm2.secrets import secret_values

_QUIET = {"log_level": "0", "log.connection.close": "false"}
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_DNS_LOOKUPS = ("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only")

_SAME = ("bootstrap.servers", "client.id", "client.rack")
# Java's name -> librdkafka's, with the least and greatest value that it takes; others become the nearer end.
_NUMBERS = {
    "request.timeout.ms": ("socket.timeout.ms", 10, 300_000),
    "connections.max.idle.ms": ("connections.max.idle.ms", 0, 2**31 - 1),
    "metadata.max.age.ms": ("metadata.max.age.ms", 1, 86_400_000),
    "reconnect.backoff.ms": ("reconnect.backoff.ms", 0, 3_600_000),
    "reconnect.backoff.max.ms": ("reconnect.backoff.max.ms", 0, 3_600_000),
    "retry.backoff.ms": ("retry.backoff.ms", 1, 300_000),
    "retry.backoff.max.ms": ("retry.backoff.max.ms", 1, 300_000),
    "socket.connection.setup.timeout.ms": ("socket.connection.setup.timeout.ms", 1000, 2**31 - 1),
    "receive.buffer.bytes": ("socket.receive.buffer.bytes", 0, 100_000_000),
    "send.buffer.bytes": ("socket.send.buffer.bytes", 0, 100_000_000),
}
# Settings of Java clients that change nothing about whom we talk to and how safely.
_JAVA_ONLY_TEXT = """
    acks allow.auto.create.topics auto.commit.interval.ms auto.include.jmx.reporter auto.offset.reset
    batch.size bootstrap.controllers buffer.memory check.crcs compression.type config.providers
    default.api.timeout.ms delivery.timeout.ms enable.auto.commit enable.idempotence enable.metrics.push
    exclude.internal.topics fetch.max.bytes fetch.max.wait.ms fetch.min.bytes group.id group.instance.id
    group.protocol group.remote.assignor heartbeat.interval.ms interceptor.classes isolation.level
    key.deserializer key.serializer linger.ms max.block.ms max.in.flight.requests.per.connection
    max.partition.fetch.bytes max.poll.interval.ms max.poll.records max.request.size metadata.max.idle.ms
    metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy metric.reporters
    metrics.num.samples metrics.recording.level metrics.sample.window.ms partition.assignment.strategy
    partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms partitioner.class
    partitioner.ignore.keys retries security.providers session.timeout.ms
    socket.connection.setup.timeout.max.ms transaction.timeout.ms transaction.two.phase.commit.enable
    transactional.id value.deserializer value.serializer sasl.login.connect.timeout.ms
    sasl.login.read.timeout.ms sasl.login.retry.backoff.ms sasl.login.retry.backoff.max.ms
    sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds
    sasl.login.refresh.window.factor sasl.login.refresh.window.jitter sasl.kerberos.kinit.cmd
    sasl.kerberos.min.time.before.relogin sasl.kerberos.service.name sasl.kerberos.ticket.renew.jitter
    sasl.kerberos.ticket.renew.window.factor sasl.oauthbearer.clock.skew.seconds
    sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer sasl.oauthbearer.header.urlencode
    sasl.oauthbearer.jwks.endpoint.refresh.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.ms
    sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms sasl.oauthbearer.jwks.endpoint.url
    sasl.oauthbearer.scope.claim.name ssl.cipher.suites ssl.enabled.protocols ssl.keymanager.algorithm
    ssl.protocol ssl.provider ssl.secure.random.implementation ssl.trustmanager.algorithm
"""
_JAVA_ONLY = frozenset(_JAVA_ONLY_TEXT.split())


def librdkafka_config(properties: Mapping[str, str], origin: str) -> dict[str, str]:
    """Map Java client properties to librdkafka's.

    `origin` names the file, for errors. Raises `ConfigError` naming the setting that cannot be mapped, and what
    to do instead. Settings of TLS or SASL are ignored where `security.protocol` does not use these.
    """
    settings = Settings(properties, origin)
    protocol = (settings.take("security.protocol") or "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise settings.refusal("security.protocol", "is none that Kafka has", f"Use {', '.join(_PROTOCOLS)}.")
    settings.config["security.protocol"] = protocol
    _map_connection(settings)
    if protocol.startswith("SASL"):
        map_sasl(settings)
    if protocol.endswith("SSL"):
        map_tls(settings)
    _refuse_unknown(settings, protocol)
    return {"client.id": CLIENT_ID} | settings.config | NEVER_CREATE | _QUIET


def client_settings(cluster: Cluster) -> ClientSettings:
    """Return what every client of librdkafka to this cluster is made with; raises as `librdkafka_config` does."""
    config = librdkafka_config(cluster.properties, cluster.origin or f"{cluster.side} {cluster.alias}")
    secrets = secret_values(cluster.properties)
    if sent := config.get("sasl.oauthbearer.client.secret"):
        secrets |= {sent}  # it may be encoded
    return ClientSettings(cluster.side, cluster.alias, cluster.name, config, secrets)


def _map_connection(settings: Settings) -> None:
    for key in _SAME:
        if value := settings.take(key):
            settings.config[key] = value
    if "bootstrap.servers" not in settings.config:
        raise ConfigError(f"{settings.origin} has no bootstrap.servers.", "Add bootstrap.servers=HOST:PORT.")
    for key, (name, least, most) in _NUMBERS.items():
        if value := settings.take(key):
            if not re.fullmatch(r"[+-]?[0-9]{1,19}", value):
                raise settings.refusal(key, "is not a whole number", "Give one, or leave the setting out.")
            settings.config[name] = str(min(max(int(value), least), most))
    first, longest = (settings.config.get(f"reconnect.backoff.{name}") for name in ("ms", "max.ms"))
    if first or longest:
        # librdkafka fails where the first wait is longer than the longest.
        settings.config["reconnect.backoff.max.ms"] = str(max(int(first or 100), int(longest or 10_000)))
    if (lookup := settings.take("client.dns.lookup").lower()) in _DNS_LOOKUPS:
        settings.config["client.dns.lookup"] = lookup


def _refuse_unknown(settings: Settings, protocol: str) -> None:
    """Raise `ConfigError` for a setting that was not mapped and may have a meaning."""
    for key in sorted(settings.properties.keys() - settings.taken):
        unused = (key.startswith("ssl.") and not protocol.endswith("SSL")) or (
            key.startswith("sasl.") and not protocol.startswith("SASL")
        )
        if not (unused or key in _JAVA_ONLY or key.startswith(f"{PROVIDERS}.")):
            raise settings.refusal(
                key,
                "is not a setting of Kafka's Java clients that this version can use",
                "Check its spelling (in the words of Java clients, not of librdkafka), or leave it out.",
            )
