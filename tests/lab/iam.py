"""Brokers that let in who signs as MSK's IAM wants it, in both of its forms, with a key pair of the lab's own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.lab.jars import compiled, kafka_jars

PROGRAM = Path(__file__).with_name("SignedRequests.java")


@dataclass(frozen=True)
class KeyPair:
    """Who signs with it for the region is `principal`. Stands where brokers have a `TokenServer` else."""

    principal: str
    key: str
    secret: str
    region: str
    jvm_flags: tuple[str, ...] = ()

    @property
    def own_classes(self) -> Path:
        return compiled(PROGRAM, kafka_jars())

    @property
    def logins(self) -> dict[str, dict[str, str]]:
        """What a broker is set to, by mechanism."""
        said = " ".join(f'{name}="{getattr(self, name)}"' for name in ("principal", "key", "secret", "region"))
        package = "org.apache.kafka.common.security"
        settings = {"sasl.server.callback.handler.class": PROGRAM.stem, "connections.max.reauth.ms": "3600000"}
        by_token = f'{package}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker"'
        by_request = f"{package}.plain.PlainLoginModule required"
        return {
            "OAUTHBEARER": settings | {"sasl.jaas.config": f"{by_token} {said};"},
            "AWS_MSK_IAM": settings | {"sasl.jaas.config": f"{by_request} {said};"},
        }
