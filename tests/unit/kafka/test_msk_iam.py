"""Logging in to Amazon MSK by IAM: who signs what, and what is refused."""

import base64
import importlib.util
import pickle
from urllib.parse import parse_qs, urlsplit

import pytest

from migrate import token_command
from migrate.errors import ClusterError
from migrate.kafka import client_config
from migrate.kafka.settings import ready
from migrate.mm2.flow import Cluster
from migrate.model import Failure, Side
from migrate.spark.java_settings import java_settings
from tests.lab.sts import ACCOUNT, Sts
from tests.unit.clientscene import MSK, accepted, mapped, refusal

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("botocore") is None, reason="the extra msk-iam is not installed"
)
KEY, SECRET = "AKIDLAB", "wJalrXUtnFEMI/K7MDENG"
IAM = {
    "bootstrap.servers": MSK["bootstrap.servers"], "security.protocol": "SASL_SSL", "sasl.mechanism": "AWS_MSK_IAM",
    "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
    "sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _no_account_of_this_machine(monkeypatch, tmp_path):
    monkeypatch.setattr(token_command, "_held", {})
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    here = {
        "AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": str(tmp_path / "config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"), "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
    }  # fmt: skip
    for name, value in here.items():
        monkeypatch.setenv(name, value)


def asked_by(token):
    """The access key and the region of a token, which Amazon's own library has signed."""
    url = urlsplit(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode())
    key, _, region, service, _ = parse_qs(url.query)["X-Amz-Credential"][0].split("/")
    assert (service, url.hostname) == ("kafka-cluster", f"kafka.{region}.amazonaws.com")
    return key, region


@pytest.mark.parametrize("properties", [IAM, MSK])
def test_both_forms_sign_with_the_keys_of_the_environment_for_the_region_of_the_brokers(properties):
    assert accepted(properties)
    config = ready(mapped(properties))
    assert config["sasl.mechanism"] == "OAUTHBEARER"
    token, ends = pickle.loads(pickle.dumps(config["oauth_cb"]))("")
    assert asked_by(token) == (KEY, "eu-west-1")
    assert 0 < ends - token_command.time.time() <= 900
    assert not any(secret in str(config) for secret in (KEY, SECRET, token))


def with_options(**options):
    words = " ".join(f'{name}="{value}"' for name, value in options.items())
    return IAM | {"sasl.jaas.config": f"software.amazon.msk.auth.iam.IAMLoginModule required {words};"}


def test_a_profile_signs_with_its_keys(tmp_path):
    (tmp_path / "credentials").write_text("[night]\naws_access_key_id=AKIDNIGHT\naws_secret_access_key=other\n")
    for more in ({}, {"awsRoleArn": "arn:aws:iam::1:role/r"}):
        token, _ = mapped(with_options(awsProfileName="night", **more))["oauth_cb"]("")
        assert asked_by(token) == ("AKIDNIGHT", "eu-west-1")
    with pytest.raises(ClusterError, match="day"):
        ready(mapped(with_options(awsProfileName="day")))


def test_names_that_tell_no_region_take_the_environments(monkeypatch):
    elsewhere = IAM | {"bootstrap.servers": "kafka.example.com:9098"}
    assert "AWS_REGION" in refusal(elsewhere)
    monkeypatch.setenv("AWS_REGION", "us-gov-west-1")
    token, _ = mapped(elsewhere)["oauth_cb"]("")
    assert asked_by(token) == (KEY, "us-gov-west-1")


def test_no_credentials_are_told_with_what_to_do(monkeypatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(ClusterError, match="no AWS credentials.*aws sso login"):
        ready(mapped(IAM))


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"sasl.client.callback.handler.class": "a.B"}, "Set it to software.amazon.msk.auth.iam.IAMClientCallback"),
        ({"sasl.jaas.config": "a.PlainLoginModule required;"}, "IAMLoginModule"),
        ({"sasl.jaas.config": "a.IAMLoginModule required awsRoleExternalId=x;"}, "awsRoleExternalId"),
        (MSK | {"sasl.mechanism": "PLAIN", "sasl.client.callback.handler.class": ""}, "OAUTHBEARER"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(change, names):
    assert names in refusal(IAM | change)


def test_without_the_signer_the_extra_is_named_and_java_has_the_properties_as_they_are(monkeypatch):
    monkeypatch.setattr(client_config, "find_spec", lambda name: None)
    assert "mm2-migrate[msk-iam]" in refusal(IAM)
    assert java_settings(Cluster(Side.SOURCE, "A", IAM)).admin.items() >= IAM.items()


SIGNERS = {KEY: SECRET, "AKIDOLD": "expired"}


def asking(sts, monkeypatch, **options):
    """The login of a cluster, whose keys and roles AWS is asked about at `sts`."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", sts.url)
    return mapped(with_options(**options))["oauth_cb"]


def test_aws_names_whose_keys_sign_and_a_role_signs_with_keys_of_its_own(monkeypatch):
    with Sts(SIGNERS, role=("AKIDROLE", "lent")) as sts:
        assert asking(sts, monkeypatch).signer() == f"arn:aws:iam::{ACCOUNT}:user/{KEY}"
        by_role = asking(sts, monkeypatch, awsRoleArn=f"arn:aws:iam::{ACCOUNT}:role/night", awsStsRegion="us-east-1")
        assert by_role.signer().endswith("user/AKIDROLE")
        assert asked_by(by_role("")[0]) == ("AKIDROLE", "eu-west-1")
        login = asking(sts, monkeypatch)
    assert isinstance(login.signer(), Failure), "an STS out of reach says nothing of the keys"


@pytest.mark.parametrize(
    ("variable", "value", "clock", "says"),
    [
        ("AWS_ACCESS_KEY_ID", "AKIDOLD", 0, "ExpiredToken.*log in anew"),
        ("AWS_ACCESS_KEY_ID", "AKIDNONE", 0, "InvalidClientTokenId.*Check the keys"),
        ("AWS_SECRET_ACCESS_KEY", "wrong", 0, "SignatureDoesNotMatch.*Check the keys"),
        ("AWS_REGION", "eu-west-1", 3600, "expired.*clock is 60 minutes behind AWS's. Set the clock"),
        ("AWS_REGION", "eu-west-1", -900, "not yet current.*clock is 15 minutes ahead of AWS's. Set the clock"),
    ],
)
@pytest.mark.parametrize("role", [{}, {"awsRoleArn": "arn:aws:iam::1:role/night"}])
def test_refused_keys_are_told_in_the_words_of_aws_and_a_wrong_clock(monkeypatch, variable, value, clock, says, role):
    monkeypatch.setenv(variable, value)
    with Sts(SIGNERS, role=("AKIDROLE", "lent"), clock=clock) as sts:
        with pytest.raises(ClusterError, match=says) as caught:
            asking(sts, monkeypatch, **role).signer()
        assert SECRET not in str(caught.value)
