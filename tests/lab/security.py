"""Clusters that let nobody in without TLS and a login, and nobody do what no ACL allows.

Beside its plain listener, where the lab itself (and its MM2) is the super user, a secure cluster has one for SASL over
TLS and one for client certificates. `Cluster.create_topic` and the like go on working; the product is given
`sasl_bootstrap` or `tls_bootstrap`.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.lab.certificates import Authority
from tests.lab.cluster import Broker, Cluster
from tests.lab.iam import KeyPair
from tests.lab.kerberos import Realm
from tests.lab.ports import HOST, free_ports
from tests.lab.tokens import TokenServer
from tests.lab.waiting import wait_until

CALL_SECONDS = 30.0
SCRAM = (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
MODULES = "org.apache.kafka.common.security"
Grant = tuple[str, str, str]
"""An operation ("READ"), a kind of resource ("TOPIC") and its name."""


class SecureCluster(Cluster):
    """A cluster with a plain listener for the lab, and two secure ones where ACLs count.

    `users` are names and passwords: of SCRAM (both kinds) after `add_users`, and of PLAIN. With `tokens` the SASL
    listener takes those of that server, too, or what is signed with that key pair, or logins of that Kerberos realm.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        version: str,
        authority: Authority,
        users: Mapping[str, str],
        overrides: Mapping[str, str] | None = None,
        tokens: TokenServer | KeyPair | Realm | None = None,
    ) -> None:
        if tokens is not None:
            self.jvm_flags, self.own_classes = tokens.jvm_flags, tokens.own_classes
        super().__init__(name, folder, version, 1, overrides)
        self._tokens = tokens
        self.users = dict(users)
        self._authority = authority
        self._broker_store = authority.pem(f"broker-{name}")
        self._secure_ports: tuple[int, int] = (0, 0)

    @property
    def sasl_bootstrap(self) -> str:
        return f"{HOST}:{self._secure_ports[0]}"

    @property
    def tls_bootstrap(self) -> str:
        return f"{HOST}:{self._secure_ports[1]}"

    def pick_ports(self) -> None:
        self.brokers[0].controller_port, self.brokers[0].port, *secure = free_ports(4)
        self._secure_ports = (secure[0], secure[1])

    def settings(self, broker: Broker) -> dict[str, str]:
        settings = super().settings(broker)
        plain = " ".join(f'user_{name}="{password}"' for name, password in self.users.items())
        secure = f",SASL_SSL://{self.sasl_bootstrap},SSL://{self.tls_bootstrap}"
        return (
            {
                f"listener.name.sasl_ssl.{mechanism.lower()}.{key}": value
                for mechanism, login in self._logins().items()
                for key, value in login.items()
            }
            | settings
            | {
                "listeners": settings["listeners"] + secure,
                "advertised.listeners": settings["advertised.listeners"] + secure,
                "listener.security.protocol.map": settings["listener.security.protocol.map"]
                + ",SASL_SSL:SASL_SSL,SSL:SSL",
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(self._broker_store),
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(self._authority.ca),
                "listener.name.ssl.ssl.client.auth": "required",
                "ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/,DEFAULT",
                "sasl.enabled.mechanisms": ",".join(("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", *self._logins())),
                "listener.name.sasl_ssl.plain.sasl.jaas.config": f"{MODULES}.plain.PlainLoginModule required {plain};",
                "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required;",
                "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required;",
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": "User:ANONYMOUS",
                # A client that is turned away may try again at once.
                "connection.failed.authentication.delay.ms": "0",
            }
        )

    def restart_with(self, ends_in: datetime.timedelta) -> None:
        """Restart the broker with a certificate that ends then: below zero, one that has ended."""
        self._authority.pem(f"broker-{self.name}", ends_in)
        self.brokers[0].kill()
        self.brokers[0].start()

    def _logins(self) -> Mapping[str, Mapping[str, str]]:
        return self._tokens.logins if self._tokens else {}

    def add_users(self) -> None:
        """Let every user in by SCRAM, too; call it once the cluster is up."""
        admin = self.admin()
        # A user cannot be altered twice in one request.
        for mechanism in SCRAM:
            wanted: list[Any] = [
                UserScramCredentialUpsertion(name, ScramCredentialInfo(mechanism, 4096), password.encode())
                for name, password in self.users.items()
            ]
            for done in admin.alter_user_scram_credentials(wanted).values():
                done.result(CALL_SECONDS)

    def grant(self, user: str, grants: Iterable[Grant]) -> None:
        """Give a user exactly these rights: what he had before is taken away."""
        principal = f"User:{user}"
        admin = self.admin()
        anything: Any = None
        everything = AclBindingFilter(
            ResourceType.ANY, anything, ResourcePatternType.ANY, principal, anything,
            AclOperation.ANY, AclPermissionType.ANY,
        )  # fmt: skip
        admin.delete_acls([everything])[everything].result(CALL_SECONDS)
        wanted = {binding(principal, *grant) for grant in grants}
        if wanted:
            for made in admin.create_acls(list(wanted)).values():
                made.result(CALL_SECONDS)
        wait_until(
            lambda: len(admin.describe_acls(everything).result(CALL_SECONDS)) == len(wanted),
            CALL_SECONDS,
            f"the rights of {user} on cluster {self.name}",
        )


def binding(principal: str, operation: str, kind: str, name: str) -> AclBinding:
    """Return an ACL, on all names that begin so where `name` ends with a star; a cluster's is always kafka-cluster."""
    resource = ResourceType.BROKER if kind == "CLUSTER" else ResourceType[kind]
    named = "kafka-cluster" if kind == "CLUSTER" else name.removesuffix("*")
    pattern = ResourcePatternType.PREFIXED if name.endswith("*") else ResourcePatternType.LITERAL
    return AclBinding(resource, named, pattern, principal, "*", AclOperation[operation], AclPermissionType.ALLOW)
