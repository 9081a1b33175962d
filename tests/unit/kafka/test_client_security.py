"""Who we are and whom we trust, in librdkafka's words: logins, trust and key stores, and what is refused by name."""

import shutil
import subprocess

import pytest

from migrate.kafka import client_config
from migrate.kafka.client_config import client_settings
from migrate.mm2.flow import Cluster
from migrate.model import Side
from tests.unit.clientscene import OAUTH, PASSWORD, PLAIN, TLS, accepted, mapped, refusal


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """A certificate with its key: PEM apart and together."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is needed to make a certificate")
    folder = tmp_path_factory.mktemp("stores")
    cert, key, both = (folder / name for name in ("cert.pem", "key.pem", "both.pem"))
    make = f"openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=a -keyout {key} -out {cert}"
    subprocess.run(make.split(), check=True, capture_output=True, timeout=60)
    both.write_text(key.read_text() + cert.read_text())
    return {"cert": cert, "key": key, "both": both}


def test_user_and_password_come_from_the_login_module():
    config = mapped(PLAIN)
    assert (config["sasl.username"], config["sasl.password"]) == ("u", PASSWORD) and accepted(PLAIN)
    jaas = PLAIN["sasl.jaas.config"].replace("plain.Plain", "scram.Scram")
    scram = PLAIN | {"sasl.mechanism": "scram-sha-512", "sasl.jaas.config": jaas}
    assert mapped(scram)["sasl.mechanism"] == "SCRAM-SHA-512" and accepted(scram)


def test_oauth_client_credentials_become_oidc():
    expected = {"method": "oidc", "client.id": "id", "client.secret": PASSWORD,
                "extensions": "logicalCluster=lkc,pool=p"}  # fmt: skip
    assert mapped(OAUTH).items() >= {f"sasl.oauthbearer.{name}": value for name, value in expected.items()}.items()
    assert accepted(OAUTH)


def test_oauth_credentials_are_encoded_where_the_server_wants_them_so_and_never_printed():
    """`sasl.oauthbearer.header.urlencode`: librdkafka has no such setting, and sends what it is given."""
    bare = OAUTH | {
        "sasl.oauthbearer.client.credentials.client.id": "me@corp",
        "sasl.oauthbearer.client.credentials.client.secret": "s+cret%2",
    }
    assert mapped(bare)["sasl.oauthbearer.client.secret"] == "s+cret%2"
    bare |= {"sasl.oauthbearer.header.urlencode": "true"}
    assert mapped(bare)["sasl.oauthbearer.client.id"] == "me%40corp"
    settings = client_settings(Cluster(Side.SOURCE, "A", bare))
    assert settings.config["sasl.oauthbearer.client.secret"] == "s%2Bcret%252" in settings.secrets
    assert accepted(PLAIN | {"sasl.oauthbearer.header.urlencode": "true"})


def test_pem_files_serve_as_trust_and_key_store(stores):
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(stores["cert"])}
    own = {"ssl.keystore.type": "pem", "ssl.keystore.location": str(stores["both"])}
    properties = TLS | trust | own | {"ssl.endpoint.identification.algorithm": ""}
    config = mapped(properties)
    assert config["ssl.ca.location"] == str(stores["cert"])
    assert config["ssl.key.location"] == config["ssl.certificate.location"] == str(stores["both"])
    assert config["ssl.endpoint.identification.algorithm"] == "none"
    assert accepted(properties)


@pytest.mark.parametrize("separator", ["\n", " ", "\r\n", ""])
def test_inline_pem_is_taken_in_one_line_or_many(stores, separator):
    cert, key = (separator.join(stores[name].read_text().splitlines()) for name in ("cert", "key"))
    both = {"ssl.truststore.type": "PEM", "ssl.keystore.type": "PEM", "ssl.truststore.certificates": cert}
    assert accepted(TLS | both | {"ssl.keystore.certificate.chain": cert, "ssl.keystore.key": key})


@pytest.mark.parametrize(
    ("change", "names", "advice"),
    [
        ({"sasl.mechanism": "GSSAPI"}, "sasl.mechanism", "SCRAM-SHA-512"),
        ({"sasl.mechanism": "DIGEST-MD5"}, "is DIGEST-MD5", "SCRAM-SHA-512"),
        ({"sasl.mechanism": f"a {PASSWORD}"}, "names a mechanism", "SCRAM-SHA-512"),
        ({"sasl.mechanism": ""}, "sasl.mechanism", "GSSAPI (Kerberos)"),
        ({"sasl.client.callback.handler.class": "a.B"}, "sasl.client.callback.handler.class", "without it"),
        ({"sasl.login.callback.handler.class": "a.B"}, "sasl.login.callback.handler.class", "OAuthBearer"),
        ({"sasl.login.class": "a.B"}, "sasl.login.class", "without it"),
        ({"sasl.jaas.config": ""}, "sasl.jaas.config", "Add it"),
        ({"sasl.jaas.config": f'x.Krb5LoginModule required p="{PASSWORD}";'}, "PlainLoginModule", "agree"),
        ({"sasl.jaas.config": f'PlainLoginModule required password="{PASSWORD}";'}, "username", "Add username"),
        ({"sasl.jaas.config": "PlainLoginModule required username=u;"}, "password", "Add password"),
        ({"sasl.jaas.config": f"PlainLoginModule required username=u password=1{PASSWORD};"}, "(password)", "quotes"),
    ],
)  # fmt: skip
def test_a_login_that_cannot_be_used_is_refused_by_name_with_what_to_do(change, names, advice):
    text = refusal(PLAIN | change)
    assert names in text and advice in text


def kerberos(options):
    jaas = {"sasl.jaas.config": f"com.sun.security.auth.module.Krb5LoginModule required {options};"}
    return PLAIN | jaas | {"sasl.mechanism": "GSSAPI", "sasl.kerberos.service.name": "kafka"}


def test_kerberos_is_refused_by_a_wheel_with_the_ways_to_have_it_and_mapped_where_librdkafka_has_it(monkeypatch):
    text = refusal(kerberos("useTicketCache=true"))
    for word in ("sasl.mechanism", "GSSAPI (Kerberos)", "wheels of PyPI", "conda-forge", "--no-binary", "libsasl2"):
        assert word in text
    monkeypatch.setattr(client_config, "has_kerberos", lambda: True)
    keytab = mapped(kerberos(f'useKeyTab=true keyTab="{__file__}" principal="u@REALM"'))
    assert keytab["sasl.mechanism"] == "GSSAPI" and keytab["sasl.kerberos.service.name"] == "kafka"
    assert keytab["sasl.kerberos.keytab"] == __file__ and keytab["sasl.kerberos.principal"] == "u@REALM"
    cache = mapped(kerberos("useTicketCache=true serviceName=kafka") | {"sasl.kerberos.service.name": ""})
    assert cache["sasl.kerberos.service.name"] == "kafka"
    assert cache["sasl.kerberos.min.time.before.relogin"] == "0" and "sasl.kerberos.keytab" not in cache
    assert "principal" in refusal(kerberos(f'useKeyTab=true keyTab="{__file__}"'))
    assert "no such file" in refusal(kerberos('useKeyTab=true keyTab="/no/such" principal="u"'))
    assert "service.name" in refusal(kerberos("useTicketCache=true") | {"sasl.kerberos.service.name": ""})
    assert "Krb5LoginModule" in refusal(PLAIN | {"sasl.mechanism": ""})


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"sasl.oauthbearer.token.endpoint.url": "file:///token"}, "sasl.oauthbearer.token.endpoint.url"),
        ({"sasl.oauthbearer.jwt.retriever.class": "o.a.k.JwtBearerJwtRetriever"}, "jwt.retriever.class"),
        ({"sasl.login.callback.handler.class": "com.azure.Handler"}, "sasl.login.callback.handler.class"),
        ({"sasl.jaas.config": "a.OAuthBearerLoginModule required clientId=a;"}, "clientSecret"),
        ({"sasl.jaas.config": f'OAuthBearerLoginModule required clientId=a clientSecret="{PASSWORD}" '
          'ssl.truststore.location="/x.jks";'}, "no such file"),
        ({"sasl.jaas.config": f'OAuthBearerLoginModule required clientId=a clientSecret="{PASSWORD}" '
          'ssl.keystore.location="/x.jks";'}, "other than a trust store"),
        ({"sasl.oauthbearer.assertion.file": "/x"}, "sasl.oauthbearer.assertion.file"),
    ],
)  # fmt: skip
def test_other_ways_of_oauth_are_refused_by_name(change, names):
    assert names in refusal(OAUTH | change)


@pytest.mark.parametrize("store", ["truststore", "keystore"])
@pytest.mark.parametrize("kind", ["BCFKS", "Windows-ROOT"])
def test_stores_of_other_types_are_refused_with_the_command_that_converts_them(store, kind):
    of = f"ssl.{store}"
    text = refusal(TLS | {f"{of}.location": "/x/kafka.store", f"{of}.password": PASSWORD, f"{of}.type": kind})
    for words in (f"{of}.type", "keytool", "/x/kafka.store", f"set {of}.type=PEM"):
        assert words in text


def test_half_a_key_pair_and_a_java_factory_are_refused():
    assert "ssl.keystore.key" in refusal(TLS | {"ssl.keystore.key": PASSWORD})
    assert "ssl.engine.factory.class" in refusal(TLS | {"ssl.engine.factory.class": "a.B"})
    assert "neither https nor empty" in refusal(TLS | {"ssl.endpoint.identification.algorithm": "LDAPS"})
