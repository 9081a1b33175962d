"""Brokers that let in who signs as MSK's IAM wants it, with a key pair of the lab's own; and Amazon's jar for Java."""

from __future__ import annotations

import os
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from tests.lab.jars import MAVEN_CENTRAL, cache_folder, compiled, kafka_jars, locked

VERSION = "2.3.5"
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
    def broker_settings(self) -> dict[str, str]:
        module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
        said = " ".join(f'{name}="{getattr(self, name)}"' for name in ("principal", "key", "secret", "region"))
        return {
            "sasl.jaas.config": f'{module} required unsecuredLoginStringClaim_sub="broker" {said};',
            "sasl.server.callback.handler.class": PROGRAM.stem,
            "connections.max.reauth.ms": "3600000",
        }


def iam_jar() -> Path:
    """Amazon's client library with all that it needs; fetched on first use."""
    jar = cache_folder() / "lab-msk" / f"aws-msk-iam-auth-{VERSION}-all.jar"
    if not jar.exists():
        jar.parent.mkdir(parents=True, exist_ok=True)
        repository = os.environ.get("MM2_MIGRATE_MAVEN_REPOSITORY", MAVEN_CENTRAL).rstrip("/")
        with locked(jar.with_suffix(".lock")):
            fresh = jar.with_suffix(".fresh")
            urllib.request.urlretrieve(f"{repository}/software/amazon/msk/aws-msk-iam-auth/{VERSION}/{jar.name}", fresh)
            fresh.replace(jar)
    return jar
