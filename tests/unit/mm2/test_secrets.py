"""Which values of a client's properties are secret, JAAS as Kafka reads it, and that no text shows one."""

import subprocess
import sys
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.errors import ConfigError
from migrate.mm2.jaas import FLAGS, LoginModule, jaas_text, parse_jaas
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


@pytest.mark.parametrize(("key", "value", "is_secret"), [
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
])  # fmt: skip
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


# Each of `p`, but for the first two.
READ = [
    ("M Required a=b;", {"a": "b"}),
    ('M required p="x"q="y" p=z;', {"p": "z", "q": "y"}),
    ("M required p='a\"b';", 'a"b'),
    (r'M required p="a\"b\\c\n\101\u0041";', 'a"b\\c\nAu0041'),
    (r'M required p="\400\18\9";', " 0\x0189"),
    (r'M required p="\a\b\f\r\t\v";', "\x07\x08\x0c\r\t\x0b"),
    ('M required p = "x" ;', "x"),
    ("M required p=a-b.c_d$1;", "a-b.c_d$1"),
    ("M required p=_x;", "_x"),
    ("M required p=€;", "€"),
    ('M required p="x" // c\n;', "x"),
    ('M required /* c\n */ p="x";', "x"),
    ('M required p="a//b/*c*/;d";', "a//b/*c*/;d"),
    ('\'M\' "required" "p"="";', ""),
]
REFUSED = [
    "M required p=12345secret;",
    "M required p=-secret;",
    "M required p=a+secret;",
    "M required password=.secret;",
    'M required password="secret"',
    'M required password="secret;',
    'M required password="x\nsecret";',
    "M required password secret;",
    "M required password=;secret",
    "M required 1=secret;",
    "M required",
    "",
    "M secret p=x;",
    'M required p="secret"; N required;',
    "; M required secret=secret;",
    "M required p=\u0085secret;",
]


@pytest.mark.parametrize(("text", "read"), READ)
def test_what_kafka_reads_is_read_alike(text, read):
    assert parse_jaas(text, "f") == LoginModule("M", "required", read if isinstance(read, dict) else {"p": read})


@given(
    st.sampled_from(FLAGS),
    st.dictionaries(st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_.]{0,8}", fullmatch=True), st.text(), max_size=4),
)
def test_quoted_values_come_back_whole(flag, options):
    def quoted(value):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
        return f'"{escaped}"'

    text = f"a.M {flag} {' '.join(f'{k}={quoted(v)}' for k, v in options.items())};"
    module = LoginModule("a.M", flag, options)
    assert parse_jaas(text, "f") == module == parse_jaas(jaas_text(module), "f")


@given(st.text())
def test_any_text_is_read_or_refused_as_a_setting_at_fault(text):
    with suppress(ConfigError):
        parse_jaas(text, "f")


@pytest.mark.parametrize("text", REFUSED)
def test_what_kafka_refuses_is_refused_without_telling_a_value(text):
    with pytest.raises(ConfigError, match=r"^sasl\.jaas\.config in a\.properties ") as caught:
        parse_jaas(text, "a.properties")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(("option", "told"), [("password", r"option 2 \(password\)"), ("hunter2", r"option 2\. ")])
def test_an_error_says_which_option_by_count_and_by_name_only_where_the_name_is_well_known(option, told):
    with pytest.raises(ConfigError, match=told):
        parse_jaas(f'M required username="u" {option}=123;', "f")
