"""Amazon MSK's IAM, on brokers that check AWS's signatures with a key of the lab: both clients log in, or say why."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from migrate.model import Side
from tests.integration.cli import CommandLine
from tests.integration.securescene import PASSWORD, STORE_PASSWORD, USER, SecureScene, found_in, secure_scene
from tests.lab.fixtures import own_clusters_only
from tests.lab.iam import KeyPair, iam_jar
from tests.lab.lab import Lab
from tests.lab.tokens import TokenServer

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not find_spec("aws_msk_iam_sasl_signer"), reason="the extra msk-iam is not installed"),
]

PAIR = KeyPair(USER, "AKIDLAB", "wJalrXUtnFEMI/K7MDENG", "eu-west-1")
GROUPS = ("iam",)
COMMANDS = ("plan", "apply", "verify", "verify --records", "rollback", "status")
MSK = "software.amazon.msk.auth.iam"
OAUTH = f"""sasl.mechanism=OAUTHBEARER
sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;
sasl.login.callback.handler.class={MSK}.IAMOAuthBearerLoginCallbackHandler
"""
IAM = f"""sasl.mechanism=AWS_MSK_IAM
sasl.jaas.config={MSK}.IAMLoginModule required;
sasl.client.callback.handler.class={MSK}.IAMClientCallbackHandler
"""


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureScene]:
    own_clusters_only()
    unused = TokenServer({}).start()
    try:
        with Lab(tmp_path_factory.mktemp("iam"), users={USER: PASSWORD}, tokens=PAIR) as lab:
            scene = secure_scene(lab, GROUPS, tmp_path_factory.mktemp("secrets") / "here", unused)
            for side in Side:
                wanted = {g for command in COMMANDS for g in scene.grants(command, side, scene.scene.commits)}
                scene.cluster(side).grant(USER, wanted)
            yield scene
    finally:
        unused.stop()


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", PAIR.key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", PAIR.secret)
    monkeypatch.setenv("AWS_REGION", PAIR.region)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def commands(secure: SecureScene, folder: Path, login: str) -> CommandLine:
    options = secure.lab.options
    words = ["--source", options.source_alias, "--target", options.target_alias]
    for side in Side:
        file = folder / f"{side}.properties"
        file.write_text(
            f"bootstrap.servers={secure.cluster(side).sasl_bootstrap}\nsecurity.protocol=SASL_SSL\n{login}"
            f"ssl.truststore.location={secure.secrets / 'trust.jks'}\nssl.truststore.password={STORE_PASSWORD}\n"
        )
        words += [f"--{side}-config", str(file)]
    return CommandLine(folder, tuple(words))


def test_a_cutover_by_signed_requests(secure: SecureScene, tmp_path: Path) -> None:
    by_oauth, chosen = commands(secure, tmp_path, OAUTH), ("--group", f".*{secure.scene.suffix}")
    jar = ("--spark-conf", f"spark.jars={iam_jar()}")
    ran = by_oauth.plan("cutover.plan", *chosen, *jar).expect(0)
    rows = by_oauth.document("cutover.plan")["rows"]
    assert len(rows) == 2 and {row["grade"] for row in rows} == {"exact"}
    # What needs no JVM goes by AWS_MSK_IAM too, which the lab's brokers do not have: librdkafka signs for OAUTHBEARER.
    (tmp_path / "iam").mkdir()
    by_iam = by_oauth.against(*commands(secure, tmp_path / "iam", IAM).clusters)
    ran = by_iam.execute("cutover.plan").expect(0)
    by_iam.verify("cutover.plan", "--records").expect(0)
    by_oauth.undo("cutover.plan").expect(0)
    assert not found_in((PAIR.secret,), tmp_path, text=ran.stdout + ran.stderr)


@pytest.mark.parametrize(("name", "value"), [("AWS_SECRET_ACCESS_KEY", "wrong"), ("AWS_REGION", "us-east-1")])
def test_a_wrong_key_or_region_is_told_in_one_paragraph(
    secure: SecureScene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    ran = commands(secure, tmp_path, OAUTH).plan("cutover.plan", "--request-timeout", "8").expect(1)
    assert "authentication failed" in " ".join(ran.complaint().split()), str(ran)
    assert not (tmp_path / "cutover.plan").exists()
