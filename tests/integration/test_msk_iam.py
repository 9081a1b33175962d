"""Amazon MSK's IAM, on brokers that check AWS's signatures with a key of the lab: both clients log in, or say why."""

import re
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from migrate.model import Side
from migrate.spark.jars import cache_folder, connector_jars, msk_jars
from tests.integration.cli import CommandLine
from tests.integration.securescene import USER, SecureScene, found_in, granted_scene
from tests.integration.standalone import on, started_standalone
from tests.lab.iam import KeyPair
from tests.lab.sts import ACCOUNT, Sts

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not find_spec("aws_msk_iam_sasl_signer"), reason="the extra msk-iam is not installed"),
]

BASE, BASE_SECRET = "AKIDBASE", "je7MtGbClwBF"
PAIR = KeyPair(USER, "AKIDLAB", "wJalrXUtnFEMI/K7MDENG", "eu-west-1")
GROUPS = ("iam",)
READING = "plan --commits-from consumer-offsets"
COMMANDS = ("plan", "apply", "verify", "verify --records", "rollback", "status", READING)
MSK = "software.amazon.msk.auth.iam"
OAUTH = f"""sasl.mechanism=OAUTHBEARER
sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;
sasl.login.callback.handler.class={MSK}.IAMOAuthBearerLoginCallbackHandler
"""
# Without awsStsRegion, with which Amazon's jar asks AWS's own addresses, whatever the environment says.
BY_ROLE = OAUTH.replace("required;", f'required awsRoleArn="arn:aws:iam::{ACCOUNT}:role/night";')
TOKEN = """import json
from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
token, ends_ms = MSKAuthTokenProvider.generate_auth_token_from_profile("eu-west-1", "night")
print(json.dumps({"token": token, "expires": ends_ms / 1000}))
"""
IAM = f"""sasl.mechanism=AWS_MSK_IAM
sasl.jaas.config={MSK}.IAMLoginModule required;
sasl.client.callback.handler.class={MSK}.IAMClientCallbackHandler
"""


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureScene]:
    with granted_scene(tmp_path_factory, GROUPS, COMMANDS, PAIR) as scene:
        yield scene


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache in which Amazon's jar is, once it was fetched: no Spark of another test is to find it."""
    connector, jars = connector_jars()[0].parent, cache_folder() / "lab-msk"
    jars.mkdir(exist_ok=True)
    if not (jars / connector.name).exists():
        (jars / connector.name).symlink_to(connector)
    cache = tmp_path_factory.mktemp("cache")
    (cache / "mm2-migrate").mkdir()
    (cache / "mm2-migrate" / "spark-kafka").symlink_to(jars)
    return cache


@pytest.fixture(autouse=True)
def sts(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sts]:
    """AWS, with the keys that the brokers know in the environment; its role `night` has these too."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    keys = {PAIR.key: PAIR.secret, BASE: BASE_SECRET, "AKIDOLD": "expired"}
    with Sts(keys, role=(PAIR.key, PAIR.secret)) as sts:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", sts.url)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", PAIR.key)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", PAIR.secret)
        monkeypatch.setenv("AWS_REGION", PAIR.region)
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        yield sts


def commands(secure: SecureScene, folder: Path, login: str) -> CommandLine:
    return secure.by_files(folder, dict.fromkeys(Side, login))


def examined(commands: CommandLine, code: int) -> str:
    """What `doctor` says of the clusters, each finding with what to do in one line."""
    # Where a login fails it is all waiting; where it goes well Java loads Amazon's code first.
    ran = commands.run("doctor", *commands.clusters, "--request-timeout", "8" if code else "120").expect(code)
    return " ".join(ran.stdout.replace("\n        ", " ").split())


@pytest.mark.parametrize("login", [OAUTH, IAM], ids=["OAUTHBEARER", "AWS_MSK_IAM"])
def test_a_cutover_by_signed_requests(secure: SecureScene, tmp_path: Path, login: str) -> None:
    by_iam = commands(secure, tmp_path, login)
    said = examined(by_iam, 0)
    assert "ok Amazon's jar: software.amazon.msk:aws-msk-iam-auth" in said
    assert f"source A, by AWS: arn:aws:iam::{ACCOUNT}:user/{PAIR.key} signs for the region eu-west-1" in said
    by_iam.plan("cutover.plan", "--group", f".*{secure.scene.suffix}").expect(0)
    rows = by_iam.document("cutover.plan")["rows"]
    assert len(rows) == 2 and {row["grade"] for row in rows} == {"exact"}
    ran = by_iam.execute("cutover.plan").expect(0)
    by_iam.verify("cutover.plan", "--records").expect(0)
    by_iam.undo("cutover.plan").expect(0)
    mine = "--topic", secure.scene.topic("pool")
    audited = by_iam.run("audit", "run", *by_iam.clusters, *mine, "--state", "audit").expect(0)
    form = "--format", "jsonl", "--out", "commits.jsonl"
    exported = by_iam.run("groups", "export", *by_iam.clusters, *mine, *form).expect(0)
    assert len((tmp_path / "commits.jsonl").read_text().splitlines()) == 2
    said = "".join(each.stdout + each.stderr for each in (ran, audited, exported))
    assert not found_in((PAIR.secret,), tmp_path, text=said)


def test_a_role_is_taken_by_both_clients(
    secure: SecureScene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sts: Sts
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", BASE)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", BASE_SECRET)
    by_role = commands(secure, tmp_path, BY_ROLE)
    examined(by_role, 0)
    by_role.plan("cutover.plan", "--group", f".*{secure.scene.suffix}").expect(0)
    assert "AssumeRole" in sts.asked
    alone = examined(commands(secure, tmp_path, OAUTH), 1)
    assert f"user/{BASE} signs for the region eu-west-1" in alone and "authentication failed" in alone


@pytest.mark.parametrize(
    ("name", "value", "cause"),
    [
        ("AWS_SECRET_ACCESS_KEY", "wrong", "by AWS: AWS refuses the credentials to log in to MSK with: .*"
         "SignatureDoesNotMatch.* > Check the keys"),
        ("AWS_ACCESS_KEY_ID", "AKIDOLD", "ExpiredToken.* log in anew if they have expired"),
        ("AWS_REGION", "us-east-1", "signed for the AWS region us-east-1; mm2-migrate doctor says with whose keys"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_login_is_named(
    secure: SecureScene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, cause: str
) -> None:
    monkeypatch.setenv(name, value)
    by_oauth = commands(secure, tmp_path, OAUTH)
    assert re.search(cause, said := examined(by_oauth, 1)), said
    ran = by_oauth.plan("cutover.plan", "--request-timeout", "8").expect(1)
    assert "authentication failed" in " ".join(ran.complaint().split()), str(ran)
    assert not (tmp_path / "cutover.plan").exists()


def test_a_clock_that_is_off_is_named(secure: SecureScene, tmp_path: Path, sts: Sts) -> None:
    sts.clock = 3600
    said = examined(commands(secure, tmp_path, OAUTH), 1)
    assert "this machine's clock is 60 minutes behind AWS's. > Set the clock of this machine." in said


def test_executors_of_a_spark_cluster_log_in_by_a_profile(
    secure: SecureScene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = tmp_path / "credentials"
    profile.write_text(f"[night]\naws_access_key_id={PAIR.key}\naws_secret_access_key={PAIR.secret}\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(profile))
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    # Under such a name Spark reads.
    reader = {("DESCRIBE", "GROUP", "mm2-migrate-*")}
    wanted = {grant for command in COMMANDS for grant in secure.grants(command, Side.SOURCE, secure.scene.commits)}
    secure.source.grant(USER, wanted | reader)
    jars, script = msk_jars({}, fetch=True), tmp_path / "printed_token.py"
    script.write_text(TOKEN)
    signed = commands(secure, tmp_path, OAUTH.replace("required;", 'required awsProfileName="night";'))
    by_command = [word for side in Side for word in (f"--{side}-token-command", f"{sys.executable} {script}")]
    printed = signed.against(*signed.clusters, *by_command, "--spark-conf", f"spark.jars={','.join(map(str, jars))}")
    with started_standalone(tmp_path) as cluster:
        for name, each in {"signed": signed, "printed": printed}.items():
            options = (*READING.split()[1:], "--group", f".*{secure.scene.suffix}", *on(cluster, Path(sys.executable)))
            each.plan(f"{name}.plan", *options).expect(0)
            rows = each.document(f"{name}.plan")["rows"]
            assert len(rows) == 2 and {row["grade"] for row in rows} == {"exact"}
