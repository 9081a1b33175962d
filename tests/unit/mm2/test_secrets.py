"""Which values of a client's properties are secret, that no text shows one, and no memory on a disk."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.mm2.secrets import is_spark_secret, redact, secret_values


def test_secrets_are_hidden_in_every_form_but_the_users_name_is_not():
    escaped = r'x.PlainLoginModule required username="u" password="a\"b";'
    properties = {
        "bootstrap.servers": "h:1",
        "sasl.jaas.config": escaped,
        "ssl.keystore.password": "store-pass ",
        "ssl.keystore.key": "-----BEGIN",
        "sasl.oauthbearer.client.credentials.client.secret": "cs",
        "sasl.oauthbearer.token.endpoint.url": "https://t",
        "ssl.key.password": "",
    }
    secrets = secret_values(properties)
    assert {'a"b', r"a\"b", escaped, "store-pass", "-----BEGIN", "cs"} == secrets
    text = f'{escaped}: login of u with a"b at h:1 failed, store-pass is wrong'
    assert redact(text, secrets) == "[hidden]: login of u with [hidden] at h:1 failed, [hidden] is wrong"
    # The quoted parts of a broken login, too.
    assert "hunter2" in secret_values({"sasl.jaas.config": "M required username='u' password='hunter2'"})


@given(st.text("ABC\"'\\ \n", min_size=1).filter(str.strip), st.text("012"), st.text("012"))
def test_no_text_shows_a_password(password, before, after):
    quoted = password.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    secrets = secret_values({"sasl.jaas.config": f'M required password="{quoted}";'})
    assert {password, quoted} <= secrets
    assert redact(before + password + after, secrets) == f"{before}[hidden]{after}"


@pytest.mark.parametrize(
    ("key", "value", "is_secret"),
    [
        ("spark.hadoop.fs.azure.sas.box.account.blob.core.windows.net", "sv=2024", True),
        ("spark.hadoop.fs.azure.account.key.account.dfs.core.windows.net", "abc", True),
        ("spark.driver.extraJavaOptions", "-Xmx2g -Djavax.net.ssl.trustStorePassword=abc", True),
        ("spark.jars.repositories", "https://user:abc@repo.example.com/maven", True),
        ("spark.driver.extraJavaOptions", "-Daws.secretKey=abc", True),
        ("spark.driver.extraJavaOptions", "-Dspark.hadoop.fs.s3a.secret.key=abc", True),
        ("spark.hadoop.fs.azure.sas.expiry.period", "90d", False),
        ("spark.eventLog.dir", "abfss://logs@account.dfs.core.windows.net/spark", False),
        ("spark.driver.extraJavaOptions", "-Djavax.net.ssl.trustStore=/etc/trust.jks", False),
        ("spark.jars.repositories", "https://repo.example.com:8443/maven", False),
        ("spark.hadoop.fs.s3a.endpoint", "http://127.0.0.1:9000", False),
    ],
)
def test_a_setting_of_sparks_is_secret_by_its_name_or_by_what_is_inside_it(key, value, is_secret):
    assert is_spark_secret(key, value) is is_secret


FORBID = """
import resource, sys
from migrate.mm2.secrets import forbid_core_dumps
if len(sys.argv) > 1:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
forbid_core_dumps()
print(*resource.getrlimit(resource.RLIMIT_CORE))
"""


@pytest.mark.parametrize(("before", "allowed"), [([], ("1 1", "0 0")), (["none"], ("0 0", "1 1"))])
def test_a_process_that_forbade_core_dumps_writes_none_and_no_hard_limit_of_0_stops_it(before, allowed):
    done = subprocess.run([sys.executable, "-c", FORBID, *before], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() in allowed and not done.stderr
