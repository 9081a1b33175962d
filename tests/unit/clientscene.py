"""Properties of Java clients, and what librdkafka makes of them."""

import pytest
from confluent_kafka.admin import AdminClient

from migrate.errors import ConfigError
from migrate.kafka.client_config import librdkafka_config

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
MSK = {
    "bootstrap.servers": "b-1.lab.abc123.c2.kafka.eu-west-1.amazonaws.com:9098", "security.protocol": "SASL_SSL",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.jaas.config": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;",
    "sasl.login.callback.handler.class": "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler",
}  # fmt: skip


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
