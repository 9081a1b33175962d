"""Java's stores, as keytool of JDK 17 writes them (tests/golden/stores), read into PEM."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.errors import ConfigError
from migrate.kafka.key_stores import Store, UnreadableStore, read_store
from tests.unit.clientscene import TLS, mapped

STORES = Path(__file__).parents[2] / "golden" / "stores"
# One certificate and its key: client.jks and client.p12 hold both, trust.jks and trust.p12 the certificate.
PASSWORD, KEY_PASSWORD = "hunter2-store", "hunter2-key"
CERTIFICATE, KEY = (STORES / "client.pem").read_text(), (STORES / "client.key.pem").read_text()


def content(name: str) -> bytes:
    return (STORES / name).read_bytes()


def words(text: str) -> list[str]:
    return text.split()


@pytest.mark.parametrize("kind", ["jks", "p12"])
def test_a_key_with_its_chain_and_trusted_certificates_come_out_as_they_went_in(kind):
    store = read_store(content(f"client.{kind}"), PASSWORD, KEY_PASSWORD if kind == "jks" else "")
    assert [words(pair.key) for pair in store.keys] == [words(KEY)]
    assert [words(one) for one in store.keys[0].chain] == [words(CERTIFICATE)]
    assert "PRIVATE" not in repr(store)
    trust = read_store(content(f"trust.{kind}"), PASSWORD)
    assert [words(one) for one in trust.trusted] == [words(CERTIFICATE)] and trust.keys == ()


@pytest.mark.parametrize(
    ("name", "password", "key_password", "why"),
    [
        ("client.jks", "wrong", KEY_PASSWORD, "the password is wrong, or the file is damaged"),
        ("client.jks", PASSWORD, "", "the password of its key is wrong"),
        ("client.p12", "wrong", "", "the password is wrong, or the file is damaged"),
        ("trust.p12", "", "", "the password is wrong, or the file is damaged"),
        ("client.pem", "", "", "it is PEM text"),
    ],
)
def test_what_does_not_open_says_why_and_no_secret(name, password, key_password, why):
    with pytest.raises(UnreadableStore, match=why) as caught:
        read_store(content(name), password, key_password)
    assert "hunter2" not in str(caught.value)


@given(st.sampled_from(["client.jks", "trust.jks", "client.p12", "trust.p12"]), st.data())
def test_a_damaged_store_is_an_error_of_its_own_and_nothing_else(name, data):
    whole = content(name)
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    place = data.draw(st.integers(0, len(whole) - 1))
    flipped = bytearray(whole)
    flipped[place] ^= data.draw(st.integers(1, 255))
    for spoilt in (cut, bytes(flipped)):
        for password in (PASSWORD, ""):
            try:
                assert isinstance(read_store(spoilt, password, KEY_PASSWORD), Store)
            except UnreadableStore as error:
                assert "hunter2" not in str(error)


def config(location="trust.jks", **given_settings):
    """What librdkafka gets of a trust store; settings by name, `_` for a dot."""
    store = {"ssl.truststore.location": str(STORES / location), "ssl.truststore.password": PASSWORD}
    return mapped(TLS | store | {key.replace("_", "."): value for key, value in given_settings.items()})


@pytest.mark.parametrize("kind", ["", "JKS", "PKCS12", "jks"])
@pytest.mark.parametrize("location", ["trust.jks", "trust.p12"])
def test_the_file_tells_which_store_it_is_whatever_the_type_says(location, kind):
    assert words(config(location, ssl_truststore_type=kind)["ssl.ca.pem"]) == words(CERTIFICATE)


# The last has the ciphers of Java before 11.0.12 (`-Dkeystore.pkcs12.legacy`), which OpenSSL 3 leaves out.
@pytest.mark.parametrize("name", ["client.jks", "client.p12", "legacy.p12"])
def test_a_key_store_becomes_pem_in_memory_whatever_its_type_and_ciphers(name):
    key_password = {"ssl_key_password": KEY_PASSWORD} if name == "client.jks" else {}
    found = config(ssl_keystore_location=str(STORES / name), ssl_keystore_password=PASSWORD, **key_password)
    assert (words(found["ssl.key.pem"]), words(found["ssl.certificate.pem"])) == (words(KEY), words(CERTIFICATE))
    assert not {"ssl.keystore.location", "ssl.keystore.password", "ssl.key.password"} & found.keys()


def test_a_key_store_without_a_key_and_a_wrong_password_are_named_with_the_setting_and_not_shown():
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.location in a\.properties holds no private keys"):
        config(ssl_keystore_location=str(STORES / "trust.jks"), ssl_keystore_password=PASSWORD)
    with pytest.raises(ConfigError, match=r"ssl\.truststore\.location.*ssl\.truststore\.password") as caught:
        config(ssl_truststore_password="battery-staple")
    assert "battery" not in str(caught.value)
