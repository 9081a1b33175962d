"""A lab with TLS, logins and ACLs, a scene on it, and the product's clients of it with their secrets in files."""

import base64
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

from migrate.checks.rights import ResourceKind, Resources, needed, resources_of
from migrate.cli.options import ClusterOptions, resolve_flow
from migrate.model import Side
from migrate.survey.offsets_topic import READER_GROUP_PREFIX
from tests.integration.cli import CommandLine
from tests.integration.scene import Scene
from tests.lab.lab import Lab
from tests.lab.security import MODULES, Grant, SecureCluster
from tests.lab.tokens import TokenServer

USER = "migrate"
# Each is looked for in everything that the product writes and says.
PASSWORD, STORE_PASSWORD, KEY_PASSWORD = "correct-horse-battery", "staple-of-stores", "staple-of-keys"
WRONG_PASSWORD = "tr0ub4dor-and-three"
SECRETS = (PASSWORD, STORE_PASSWORD, KEY_PASSWORD, WRONG_PASSWORD, "PRIVATE KEY")
PROVIDERS = "org.apache.kafka.common.config.provider"


@dataclass(frozen=True)
class JaasLogin:
    """How a mechanism is written in a Java client's configuration; `{tokens}` is the lab's token endpoint."""

    module: str
    name: str = "username"
    secret: str = "password"
    more: tuple[tuple[str, str], ...] = ()


LOGINS = {
    "SCRAM-SHA-512": JaasLogin("scram.ScramLoginModule"),
    "PLAIN": JaasLogin("plain.PlainLoginModule"),
    "OAUTHBEARER": JaasLogin(
        "oauthbearer.OAuthBearerLoginModule",
        "clientId",
        "clientSecret",
        (
            ("sasl.login.callback.handler.class", f"{MODULES}.oauthbearer.OAuthBearerLoginCallbackHandler"),
            ("sasl.oauthbearer.token.endpoint.url", "{tokens}"),
        ),
    ),
}


@dataclass(frozen=True)
class SecureScene:
    """Two secure clusters and MM2, one topic of two partitions, and groups that stand in the middle of it.

    `secrets` is the folder of passwords and stores; what the product writes goes elsewhere.
    """

    lab: Lab
    scene: Scene
    secrets: Path
    tokens: TokenServer

    @property
    def pool(self) -> str:
        return self.scene.topic("pool")

    @property
    def source(self) -> SecureCluster:
        return cast(SecureCluster, self.lab.source)

    @property
    def target(self) -> SecureCluster:
        return cast(SecureCluster, self.lab.target)

    @property
    def names(self) -> tuple[str, ...]:
        """The words that name the clusters of the flow."""
        return ("--source", self.lab.options.source_alias, "--target", self.lab.options.target_alias)

    def cluster(self, side: Side) -> SecureCluster:
        return self.source if side is Side.SOURCE else self.target

    def grants(self, command: str, side: Side, groups: Iterable[str]) -> set[Grant]:
        """What the product says that a command needs on one side, for these groups."""
        options = self.lab.options
        given = ClusterOptions(
            mm2_config=self.lab.mm2_properties, source=options.source_alias, target=options.target_alias
        )
        names = dict(resources_of(resolve_flow(given), side, groups, [self.pool], "consumer-offsets" in command))
        names[Resources.READER] = [f"{READER_GROUP_PREFIX}*"]
        return {
            (
                str(right.operation),
                str(right.resources.kind),
                name if right.resources.kind is not ResourceKind.CLUSTER else "",
            )
            for right in needed(command, side)
            for name in names.get(right.resources, ())
        }

    def allow(self, command: str, *groups: str) -> None:
        """Give the product's user the rights that docs/rights.md lists for a command, and no other."""
        for side in Side:
            self.cluster(side).grant(USER, self.grants(command, side, groups))

    def sasl(self, folder: Path, mechanism: str = "SCRAM-SHA-512", secret: str = "password") -> CommandLine:
        """The product with MM2's own file: a login over TLS, its secret by reference, by its key in a file."""
        lines = dict(line.split(" = ", 1) for line in self.lab.mm2_properties.read_text().splitlines() if " = " in line)
        login = LOGINS[mechanism]
        for alias, cluster in zip(lines["clusters"].split(", "), (self.source, self.target), strict=True):
            lines |= {
                f"{alias}.bootstrap.servers": cluster.sasl_bootstrap,
                f"{alias}.security.protocol": "SASL_SSL",
                f"{alias}.sasl.mechanism": mechanism,
                f"{alias}.sasl.jaas.config": f'{MODULES}.{login.module} required {login.name}="{USER}" '
                f'{login.secret}="${{file:{self.secrets}/kafka.properties:{secret}}}";',
                f"{alias}.ssl.truststore.location": str(self.secrets / "trust.p12"),
                f"{alias}.ssl.truststore.type": "PKCS12",
                f"{alias}.ssl.truststore.password": f"${{dir:{self.secrets}/files:store-password}}",
            }
            lines |= {f"{alias}.{key}": value.format(tokens=self.tokens.token_url) for key, value in login.more}
        lines |= {
            "config.providers": "file, dir",
            "config.providers.file.class": f"{PROVIDERS}.FileConfigProvider",
            "config.providers.dir.class": f"{PROVIDERS}.DirectoryConfigProvider",
        }
        path = folder / f"{mechanism}-{secret}.properties"
        path.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
        return CommandLine(folder, ("--mm2-config", str(path), *self.names))

    def by_token_command(self, folder: Path) -> CommandLine:
        """The product with a command that prints tokens, and keeps a list of them, `printed`, beside the secrets."""
        script, printed = self.secrets / "token.py", self.secrets / "printed"
        login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        script.write_text(f"""import json, sys, time, urllib.request
request = urllib.request.Request({self.tokens.token_url!r}, b"", {{"Authorization": "Basic {login}"}})
try:
    answer = json.load(urllib.request.urlopen(request, timeout=10))
except OSError:
    sys.exit("nobody is logged in")
with open({str(printed)!r}, "a") as file:
    print(answer["access_token"], file=file)
ends = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + answer["expires_in"]))
status = {{"token": answer["access_token"], "expirationTimestamp": ends}}
print(json.dumps({{"kind": "ExecCredential", "status": status}}))
""")
        by_files = self.by_files(folder, dict.fromkeys(Side, ""))
        words = [word for side in Side for word in (f"--{side}-token-command", f"{sys.executable} {script}")]
        return by_files.against(*by_files.clusters, *words)

    def client_properties(self, side: Side) -> dict[str, str]:
        """Where a client of one side that logs in finds its brokers, and whom it trusts."""
        return {
            "bootstrap.servers": self.cluster(side).sasl_bootstrap,
            "security.protocol": "SASL_SSL",
            "ssl.truststore.location": str(self.secrets / "trust.jks"),
            "ssl.truststore.password": STORE_PASSWORD,
        }

    def by_files(self, folder: Path, logins: Mapping[Side, str]) -> CommandLine:
        """The product with a client file for each side, which these lines of a login end."""
        words = [*self.names]
        for side, login in logins.items():
            file = folder / f"{side}.properties"
            file.write_text("".join(f"{k}={v}\n" for k, v in self.client_properties(side).items()) + login)
            words += [f"--{side}-config", str(file)]
        return CommandLine(folder, tuple(words))

    def tls(self, folder: Path) -> CommandLine:
        """The product with client files: certificates, from a JKS store on the source and PEM on the target."""
        source, target = self.secrets / "source.properties", self.secrets / "target.properties"
        trust = f"ssl.truststore.location={self.secrets / 'trust.jks'}\nssl.truststore.password={STORE_PASSWORD}\n"
        source.write_text(
            f"bootstrap.servers={self.source.tls_bootstrap}\nsecurity.protocol=SSL\n{trust}"
            f"ssl.keystore.location={self.secrets / 'client.jks'}\nssl.keystore.password={STORE_PASSWORD}\n"
            f"ssl.key.password={KEY_PASSWORD}\n"
        )
        target.write_text(
            f"bootstrap.servers={self.target.tls_bootstrap}\nsecurity.protocol=SSL\n"
            f"ssl.truststore.type=PEM\nssl.truststore.location={self.lab.authority.ca}\n"
            f"ssl.keystore.type=PEM\nssl.keystore.location={self.secrets / 'client.pem'}\n"
        )
        return CommandLine(folder, ("--source-config", str(source), "--target-config", str(target), *self.names))


@contextmanager
def granted_scene(
    folders: pytest.TempPathFactory, groups: Iterable[str], commands: Iterable[str], logins: Any = None, **lab: Any
) -> Iterator[SecureScene]:
    """Yield a scene whose user may do what these commands need, and no more.

    Brokers take the tokens of the scene's server, or `logins`: what else a lab's brokers check.
    """
    tokens = TokenServer({USER: PASSWORD}).start()
    try:
        with Lab(folders.mktemp("secure"), users={USER: PASSWORD}, tokens=logins or tokens, **lab) as made:
            scene = secure_scene(made, groups, folders.mktemp("secrets") / "here", tokens)
            for side in Side:
                wanted = {g for command in commands for g in scene.grants(command, side, scene.scene.commits)}
                scene.cluster(side).grant(USER, wanted)
            yield scene
    finally:
        tokens.stop()


def secure_scene(lab: Lab, groups: Iterable[str], secrets: Path, tokens: TokenServer) -> SecureScene:
    """Write the scene's records and commits, and the product's secrets."""
    scene = Scene(lab, "secure", seed=1)
    pool = scene.create("pool", 2)
    scene.write_synced_early([(pool, 0), (pool, 1)], 400)
    scene.wait_replicated()
    for name in groups:
        scene.commit({scene.group(name): {(pool, 0): 100, (pool, 1): 150}})
    lab.mirror.wait_checkpoints([scene.group(name) for name in groups])
    write_secrets(lab, secrets)
    return SecureScene(lab, scene, secrets, tokens)


def write_secrets(lab: Lab, folder: Path) -> None:
    """Passwords as a file and as a folder; the client's key and the lab's root in stores of every kind."""
    assert lab.authority is not None
    (folder / "files").mkdir(parents=True)
    (folder / "files" / "store-password").write_text(STORE_PASSWORD + "\n")
    (folder / "kafka.properties").write_text(f"password={PASSWORD}\nwrong={WRONG_PASSWORD}\n")
    root = x509.load_pem_x509_certificate(lab.authority.ca.read_bytes())
    sealed = BestAvailableEncryption(STORE_PASSWORD.encode())
    trusted = pkcs12.serialize_java_truststore([pkcs12.PKCS12Certificate(root, b"root")], sealed)
    (folder / "trust.p12").write_bytes(trusted)
    keytool(folder, "-importcert", "-noprompt", "-alias", "root", "-file", str(lab.authority.ca),
            "-keystore", "trust.jks", "-storetype", "JKS", "-storepass", STORE_PASSWORD)  # fmt: skip
    signed = lab.authority.sign(USER)
    content = pkcs12.serialize_key_and_certificates(
        USER.encode(), signed.key, signed.certificate, signed.above, BestAvailableEncryption(STORE_PASSWORD.encode())
    )
    (folder / "client.p12").write_bytes(content)
    keytool(folder, "-importkeystore", "-srckeystore", "client.p12", "-srcstorepass", STORE_PASSWORD,
            "-destkeystore", "client.jks", "-deststoretype", "JKS", "-deststorepass", STORE_PASSWORD,
            "-srcalias", USER, "-destkeypass", KEY_PASSWORD)  # fmt: skip
    # Not encrypted: Java 17 has no PBES2, which is what OpenSSL and cryptography encrypt PEM keys with.
    (folder / "client.pem").write_text(signed.key_pem() + signed.chain_pem())


def keytool(folder: Path, *words: str) -> None:
    done = subprocess.run(["keytool", *words], cwd=folder, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def command_lines() -> Iterator[bytes]:
    """The command line of every process of this machine that we may see, with all its words."""
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield entry.read_bytes()
        except OSError:
            continue


def found_in(secrets: Iterable[str], *folders: Path, text: str = "") -> list[str]:
    """Where any secret stands, in the text or in any file of the folders; a secret is not told."""
    places = []
    words = [secret.encode() for secret in secrets]
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and any(word in path.read_bytes() for word in words):
                places.append(str(path))
    if any(secret in text for secret in secrets):
        places.append("the output")
    return places


def said(*runs: Any) -> str:
    return "\n".join(map(str, runs))
