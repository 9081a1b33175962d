"""Logging in to Amazon MSK by IAM: librdkafka takes OAUTHBEARER tokens that Amazon's own library signs.

Whatever runs a client signs with the credentials that it finds there, as Java's library does: environment, profile,
role of the machine. They are looked up anew for every token, and are in no setting of ours.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from migrate.errors import ClusterError
from migrate.token_command import Token, TokenSource

# What the login module of Java's library takes; the others have no say in who logs in.
OPTIONS = ("awsProfileName", "awsRoleArn", "awsRoleSessionName", "awsStsRegion")
IGNORED = ("awsDebugCreds", "awsMaxRetries", "awsMaxBackOffTimeMs")
_REGION = re.compile(r"\.([a-z]{2}(?:-[a-z]+)+-\d)\.amazonaws\.com(?:\.cn)?:")
_SECONDS = 900


@dataclass(frozen=True, slots=True)
class MskIam(TokenSource):
    """Who logs in where, by the words of Java's library; "" for what was not said."""

    region: str
    profile: str
    role: str
    role_session: str
    sts_region: str

    def made(self) -> Token:
        """Return a token of fifteen minutes; raises `ClusterError` where none can be signed."""
        try:
            import botocore.session
            from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
            from botocore.credentials import CredentialProvider, Credentials
            from botocore.exceptions import BotoCoreError, ClientError
        except ImportError as error:
            raise ClusterError(
                f"MSK's IAM needs aws-msk-iam-sasl-signer-python: {error}.",
                "Install it for all that logs in, Spark's executors too: pip install aws-msk-iam-sasl-signer-python.",
            ) from None

        class Given(CredentialProvider):  # type: ignore[misc]  # botocore has no types
            def load(self) -> Credentials:
                return Credentials(*credentials)

        try:
            session = botocore.session.Session(profile=self.profile or None)
            found = session.get_credentials()
            if found is None:
                raise ClusterError(
                    "There are no AWS credentials to log in to MSK with.",
                    "Set AWS_PROFILE, or awsProfileName in sasl.jaas.config, or log in (aws sso login).",
                )
            credentials = tuple(found.get_frozen_credentials())
            if self.role:
                sts = session.create_client("sts", region_name=self.sts_region or self.region)
                name = self.role_session or "mm2-migrate"
                taken = sts.assume_role(RoleArn=self.role, RoleSessionName=name)["Credentials"]
                credentials = (taken["AccessKeyId"], taken["SecretAccessKey"], taken["SessionToken"])
            text, ends_ms = MSKAuthTokenProvider.generate_auth_token_from_credentials_provider(self.region, Given())
        except (BotoCoreError, ClientError, ValueError) as error:
            raise ClusterError(
                f"AWS gives no credentials to log in to MSK with: {' '.join(str(error).split()).rstrip('.')}.",
                "Check the profile, the role, and that you are logged in (aws sts get-caller-identity).",
            ) from None
        return Token(text, ends_ms / 1000 - _SECONDS, ends_ms / 1000)


def msk_iam(brokers: str, options: Mapping[str, str]) -> MskIam | None:
    """Return the login with the options of the module; None if no name of a broker and no variable tells the region."""
    found = _REGION.search(brokers + ":")
    region = found[1] if found else os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    return MskIam(region, *(options.get(option, "") for option in OPTIONS)) if region else None
