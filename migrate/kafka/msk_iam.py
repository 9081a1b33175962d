"""Logging in to Amazon MSK by IAM: librdkafka takes OAUTHBEARER tokens that Amazon's own library signs.

Whatever runs a client signs with the credentials that it finds there, as Java's library does: environment, profile,
role of the machine. They are looked up anew for every token, and are in no setting of ours.
"""

import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from migrate.errors import ClusterError
from migrate.model import Failure
from migrate.text import many
from migrate.token_command import Token, TokenSource

# What the login module of Java's library takes; the others have no say in who logs in.
OPTIONS = ("awsProfileName", "awsRoleArn", "awsRoleSessionName", "awsStsRegion")
IGNORED = ("awsDebugCreds", "awsMaxRetries", "awsMaxBackOffTimeMs")
_REGION = re.compile(r"\.([a-z]{2}(?:-[a-z]+)+-\d)\.amazonaws\.com(?:\.cn)?:")
_SECONDS = 900
# AWS refuses a request that is dated further than this from its own clock.
_CLOCK_SECONDS = 300
# An answer that only explains another is not waited for any longer.
_ASKING = {"connect_timeout": 5, "read_timeout": 5, "retries": {"total_max_attempts": 1}}


@dataclass(frozen=True, slots=True)
class MskIam(TokenSource):
    """Who logs in where, by the words of Java's library; "" for what was not said."""

    region: str
    profile: str
    role: str
    role_session: str
    sts_region: str

    @property
    def advice(self) -> str:
        """What to do where brokers refuse such a login: they do not say why."""
        return (
            f"The request to connect was signed for the AWS region {self.region}; mm2-migrate doctor says with whose "
            "keys. Check both, and that a policy of theirs allows kafka-cluster:Connect on this cluster."
        )

    def signer(self) -> str | Failure:
        """Return the ARN of whose keys sign, by AWS's word (STS); a `Failure` where AWS cannot be asked from here.

        Raises `ClusterError` with AWS's reason where it does not know the keys, or takes them no more.
        """
        with _aws_errors():
            from botocore.config import Config
            from botocore.exceptions import ClientError, ConnectionError, HTTPClientError

            session, (key, secret, token) = self._keys()
            asked = session.create_client(
                "sts", self.sts_region or self.region, aws_access_key_id=key, aws_secret_access_key=secret,
                aws_session_token=token, config=Config(**_ASKING),
            )  # fmt: skip
            try:
                return str(asked.get_caller_identity()["Arn"])
            except (ConnectionError, HTTPClientError) as error:
                return Failure("NO_ANSWER", _one_line(error))
            except ClientError as error:
                raise _refused(error) from None

    def _keys(self) -> tuple[Any, tuple[str, str, str | None]]:
        """Return botocore's session, and the access key, secret and session token that sign."""
        import botocore.session
        from botocore.exceptions import ClientError

        session = botocore.session.Session(profile=self.profile or None)
        found = session.get_credentials()
        if found is None:
            raise ClusterError(
                "There are no AWS credentials to log in to MSK with.",
                "Set AWS_PROFILE, or awsProfileName in sasl.jaas.config, or log in (aws sso login).",
            )
        # Amazon's jar takes no role where a profile is named, and both clients are to be one principal.
        if self.profile or not self.role:
            keys = found.get_frozen_credentials()
            return session, (keys.access_key, keys.secret_key, keys.token)
        sts = session.create_client("sts", region_name=self.sts_region or self.region)
        name = self.role_session or "mm2-migrate"
        try:
            taken = sts.assume_role(RoleArn=self.role, RoleSessionName=name)["Credentials"]
        except ClientError as error:
            raise _refused(error) from None
        return session, (taken["AccessKeyId"], taken["SecretAccessKey"], taken["SessionToken"])

    def made(self) -> Token:
        """Return a token of fifteen minutes; raises `ClusterError` where none can be signed."""
        with _aws_errors():
            from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
            from botocore.credentials import CredentialProvider, Credentials

            class Given(CredentialProvider):  # type: ignore[misc]  # botocore has no types
                def load(self) -> Credentials:
                    return Credentials(*keys)

            _, keys = self._keys()
            text, ends_ms = MSKAuthTokenProvider.generate_auth_token_from_credentials_provider(self.region, Given())
            return Token(text, ends_ms / 1000 - _SECONDS, ends_ms / 1000)


@contextmanager
def _aws_errors() -> Iterator[None]:
    """Raise what botocore raises inside as `ClusterError`, and that it is missing."""
    try:
        import aws_msk_iam_sasl_signer  # noqa: F401
        from botocore.exceptions import BotoCoreError
    except ImportError as error:
        raise ClusterError(
            f"MSK's IAM needs aws-msk-iam-sasl-signer-python: {error}.",
            "Install it for all that logs in, Spark's executors too: pip install aws-msk-iam-sasl-signer-python.",
        ) from None
    try:
        yield
    except (BotoCoreError, ValueError) as error:
        raise ClusterError(
            f"AWS gives no credentials to log in to MSK with: {_one_line(error)}.",
            "Check the profile, the role, and that you are logged in (aws sts get-caller-identity).",
        ) from None


def _refused(error: Any) -> ClusterError:
    """Return the error of a request that AWS refused; AWS's answer is dated, by a clock that is right."""
    said = f"AWS refuses the credentials to log in to MSK with: {_one_line(error)}"
    answered = error.response["ResponseMetadata"].get("HTTPHeaders", {}).get("date")
    ahead = time.time() - parsedate_to_datetime(answered).timestamp() if answered else 0
    if abs(ahead) < _CLOCK_SECONDS:
        return ClusterError(f"{said}.", "Check the keys, the profile and the role; log in anew if they have expired.")
    off = f"{many(round(abs(ahead) / 60), 'minute')} {'ahead of' if ahead > 0 else 'behind'}"
    return ClusterError(f"{said}; this machine's clock is {off} AWS's.", "Set the clock of this machine.")


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()).rstrip(".")


def msk_iam(brokers: str, options: Mapping[str, str]) -> MskIam | None:
    """Return the login with the options of the module; None if no name of a broker and no variable tells the region."""
    found = _REGION.search(brokers + ":")
    region = found[1] if found else os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    return MskIam(region, *(options.get(option, "") for option in OPTIONS)) if region else None
