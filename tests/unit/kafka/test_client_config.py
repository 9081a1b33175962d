"""Java client properties for librdkafka, Spark and Java: mapped, ignored or refused by name, never told."""

import shutil
import subprocess
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from migrate.errors import ConfigError
from migrate.kafka.client_config import CLIENT_ID, client_settings, librdkafka_config
from migrate.mm2.flow import Cluster
from migrate.model import Side
from migrate.spark.java_settings import java_settings

PASSWORD = "hunter2"
BROKERS = {"bootstrap.servers": "127.0.0.1:1"}
PLAIN = BROKERS | {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": f'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" '
    f'password="{PASSWORD}";',
}
OAUTH = BROKERS | {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.token.endpoint.url": "https://127.0.0.1:1/token",
    "sasl.login.callback.handler.class": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
    "sasl.jaas.config": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
    f"clientId='id' clientSecret='{PASSWORD}' scope='s' extension_logicalCluster='lkc' extension_pool='p';",
}
TLS = BROKERS | {"security.protocol": "SSL"}


def mapped(properties):
    return dict(librdkafka_config(properties, "a.properties"))


def refusal(properties):
    with pytest.raises(ConfigError) as caught:
        librdkafka_config(properties, "a.properties")
    text = str(caught.value)
    assert "a.properties" in text
    assert PASSWORD not in text
    assert caught.value.todo
    return text


def accepted(properties):
    AdminClient(mapped(properties))
    return True


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """A certificate with its key: PEM apart, PEM together, and PKCS12 with a password."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is needed to make a certificate")
    folder = tmp_path_factory.mktemp("stores")
    cert, key, both, p12 = (folder / name for name in ("cert.pem", "key.pem", "both.pem", "client.p12"))
    make = f"openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=a -keyout {key} -out {cert}"
    pack = f"openssl pkcs12 -export -inkey {key} -in {cert} -out {p12} -passout pass:{PASSWORD}"
    for command in (make, pack):
        subprocess.run(command.split(), check=True, capture_output=True, timeout=60)
    both.write_text(key.read_text() + cert.read_text())
    return {"cert": cert, "key": key, "both": both, "p12": p12}


def test_a_plain_client_gets_a_name_creates_no_topic_and_keeps_quiet(capfd):
    config = mapped(BROKERS)
    assert config["client.id"] == CLIENT_ID
    assert config["allow.auto.create.topics"] == "false"
    assert accepted(BROKERS | {"security.protocol": "plaintext", "isolation.level": "read_committed"})
    assert accepted({"bootstrap.servers": "[::1]:1,127.0.0.1:1"})
    assert capfd.readouterr() == ("", "")


def test_a_client_id_of_the_users_own_stays_and_auto_creation_cannot_be_asked_for():
    config = mapped(BROKERS | {"client.id": "mine", "allow.auto.create.topics": "true"})
    assert (config["client.id"], config["allow.auto.create.topics"]) == ("mine", "false")


def test_user_and_password_come_from_the_login_module():
    config = mapped(PLAIN)
    assert config["sasl.username"] == "u"
    assert config["sasl.password"] == PASSWORD
    assert accepted(PLAIN)
    scram = PLAIN | {
        "sasl.mechanism": "scram-sha-512",
        "sasl.jaas.config": PLAIN["sasl.jaas.config"].replace("plain.Plain", "scram.Scram"),
    }
    assert mapped(scram)["sasl.mechanism"] == "SCRAM-SHA-512"
    assert accepted(scram)


def test_oauth_client_credentials_become_oidc():
    config = mapped(OAUTH)
    assert config["sasl.oauthbearer.method"] == "oidc"
    assert config["sasl.oauthbearer.client.id"] == "id"
    assert config["sasl.oauthbearer.client.secret"] == PASSWORD
    assert config["sasl.oauthbearer.extensions"] == "logicalCluster=lkc,pool=p"
    assert accepted(OAUTH)


def test_oauth_credentials_may_stand_in_settings_of_their_own():
    bare = OAUTH | {
        "sasl.jaas.config": "a.OAuthBearerLoginModule required;",
        "sasl.oauthbearer.client.credentials.client.id": "id2",
        "sasl.oauthbearer.client.credentials.client.secret": "s2",
        "sasl.oauthbearer.scope": "scope2",
    }
    config = mapped(bare)
    assert config["sasl.oauthbearer.client.id"] == "id2"
    assert config["sasl.oauthbearer.scope"] == "scope2"
    assert accepted(bare)


def test_pem_files_serve_as_trust_and_key_store(stores):
    properties = TLS | {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(stores["cert"]),
        "ssl.keystore.type": "pem",
        "ssl.keystore.location": str(stores["both"]),
        "ssl.endpoint.identification.algorithm": "",
    }
    config = mapped(properties)
    assert config["ssl.ca.location"] == str(stores["cert"])
    assert config["ssl.key.location"] == config["ssl.certificate.location"] == str(stores["both"])
    assert config["ssl.endpoint.identification.algorithm"] == "none"
    assert accepted(properties)


@pytest.mark.parametrize("separator", ["\n", " ", "\r\n", ""])
def test_inline_pem_is_taken_in_one_line_or_many(stores, separator):
    cert, key = (separator.join(stores[name].read_text().splitlines()) for name in ("cert", "key"))
    properties = TLS | {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": cert,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": cert,
        "ssl.keystore.key": key,
    }
    assert accepted(properties)


def test_a_pkcs12_key_store_is_taken_with_its_password(stores):
    properties = TLS | {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(stores["p12"]),
        "ssl.keystore.password": PASSWORD,
    }
    assert accepted(properties)
    assert accepted(properties | {"ssl.key.password": PASSWORD})
    assert "ssl.key.password" in refusal(properties | {"ssl.key.password": "other"})


@pytest.mark.parametrize(
    ("change", "names", "advice"),
    [
        ({"sasl.mechanism": "GSSAPI"}, "sasl.mechanism", "SCRAM-SHA-512"),
        ({"sasl.mechanism": "AWS_MSK_IAM"}, "sasl.mechanism", "SCRAM-SHA-512"),
        ({"sasl.mechanism": ""}, "sasl.mechanism", "GSSAPI (Kerberos)"),
        ({"sasl.client.callback.handler.class": "a.B"}, "sasl.client.callback.handler.class", "without it"),
        ({"sasl.login.callback.handler.class": "a.B"}, "sasl.login.callback.handler.class", "OAuthBearer"),
        ({"sasl.login.class": "a.B"}, "sasl.login.class", "without it"),
        ({"sasl.jaas.config": ""}, "sasl.jaas.config", "Add it"),
        ({"sasl.jaas.config": f'x.Krb5LoginModule required p="{PASSWORD}";'}, "PlainLoginModule", "agree"),
        ({"sasl.jaas.config": f'PlainLoginModule required password="{PASSWORD}";'}, "username", "Add username"),
        ({"sasl.jaas.config": "PlainLoginModule required username=u;"}, "password", "Add password"),
        ({"sasl.jaas.config": f"PlainLoginModule required username=u password=1{PASSWORD};"}, "(password)", "quotes"),
        ({"security.protocol": "TLS"}, "security.protocol", "SASL_SSL"),
        ({"sasl.username": "u"}, "sasl.username", "Java clients"),
        ({"boostrap.servers": "x"}, "boostrap.servers", "spelling"),
        ({"request.timeout.ms": "30s"}, "request.timeout.ms", "leave"),
        ({"bootstrap.servers": " "}, "bootstrap.servers", "HOST:PORT"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_by_name_with_what_to_do(change, names, advice):
    text = refusal(PLAIN | change)
    assert names in text
    assert advice in text


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
@pytest.mark.parametrize("kind", ["BCFKS", "JCEKS", "Windows-ROOT"])
def test_stores_of_other_types_are_refused_with_the_command_that_converts_them(store, kind):
    properties = TLS | {
        f"ssl.{store}.location": "/x/kafka.store",
        f"ssl.{store}.password": PASSWORD,
        f"ssl.{store}.type": kind,
    }
    text = refusal(properties)
    assert f"ssl.{store}.type" in text
    assert "keytool" in text
    assert "/x/kafka.store" in text
    assert f"set ssl.{store}.type=PEM" in text


def test_a_store_that_is_not_there_is_named():
    text = refusal(TLS | {"ssl.truststore.type": "PEM", "ssl.truststore.location": "/none/ca.pem"})
    assert "ssl.truststore.location" in text
    assert "/none/ca.pem" in text


def test_half_a_key_pair_and_a_java_factory_are_refused():
    assert "ssl.keystore.key" in refusal(TLS | {"ssl.keystore.key": PASSWORD})
    assert "ssl.engine.factory.class" in refusal(TLS | {"ssl.engine.factory.class": "a.B"})
    assert "neither https nor empty" in refusal(TLS | {"ssl.endpoint.identification.algorithm": "LDAPS"})


def test_what_only_java_clients_have_is_left_out():
    properties = BROKERS | {
        "key.deserializer": "a.B",
        "enable.auto.commit": "false",
        "group.id": "g",
        "ssl.truststore.location": "/not/used/without/tls.jks",
        "sasl.mechanism": "GSSAPI",
        "config.providers": "file",
        "config.providers.file.class": "a.B",
    }
    assert librdkafka_config(properties, "f") == librdkafka_config(BROKERS, "f")


def test_a_reference_that_stands_for_nothing_is_refused_only_where_the_setting_is_used():
    reference = {
        "config.providers": "env",
        "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
        "sasl.jaas.config": "${env:MM2_MIGRATE_NO_SUCH_VARIABLE}",
    }
    assert mapped(BROKERS | reference)["bootstrap.servers"] == "127.0.0.1:1"
    assert "client.rack" in refusal(PLAIN | reference | {"client.rack": "${env:MM2_MIGRATE_NO_SUCH_VARIABLE}"})
    assert "MM2_MIGRATE_NO_SUCH_VARIABLE" in refusal(PLAIN | reference)


NUMBERS = st.integers(-(2**40), 2**40).map(str)
NUMERIC = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(
        ("request.timeout.ms", "connections.max.idle.ms", "metadata.max.age.ms", "reconnect.backoff.ms",
         "reconnect.backoff.max.ms", "retry.backoff.ms", "retry.backoff.max.ms", "send.buffer.bytes",
         "receive.buffer.bytes", "socket.connection.setup.timeout.ms"),
        NUMBERS,
    ),
)  # fmt: skip
WORDS = st.fixed_dictionaries(
    {},
    optional={
        "client.id": st.just("mine"),
        "client.rack": st.just("r1"),
        "client.dns.lookup": st.sampled_from(["default", "use_all_dns_ips"]),
        "isolation.level": st.just("read_committed"),
        "acks": st.just("all"),
        "ssl.endpoint.identification.algorithm": st.sampled_from(["", "https", "HTTPS"]),
        "ssl.enabled.protocols": st.just("TLSv1.3"),
    },
)
SECURITY = st.sampled_from([BROKERS, PLAIN, OAUTH, TLS])


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(SECURITY, st.booleans(), NUMERIC, WORDS)
def test_whatever_is_mapped_librdkafka_accepts_in_silence(capfd, security, tls, numbers, words):
    properties = security | numbers | words
    if tls and security is not BROKERS:
        properties["security.protocol"] = properties["security.protocol"].replace("PLAINTEXT", "SSL")
    assert accepted(properties)
    assert capfd.readouterr() == ("", "")


def test_a_mapped_configuration_does_not_show_itself():
    cluster = Cluster(Side.SOURCE, "A", PLAIN)
    assert PASSWORD in client_settings(cluster).config.values() and PASSWORD in client_settings(cluster).secrets
    assert PASSWORD not in repr((cluster, client_settings(cluster), java_settings(cluster)))


def test_paths_are_the_only_values_in_messages(tmp_path):
    missing = Path(tmp_path) / "none.pem"
    text = refusal(
        TLS | {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(missing), "ssl.key.password": PASSWORD}
    )
    assert str(missing) in text
