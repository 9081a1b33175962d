"""Tokens that a command of the user's prints: when it is run, what it must print, and whom the endpoint answers."""

import base64
import json
import pickle
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest

from migrate import token_command
from migrate.errors import ClusterError
from migrate.kafka.client_config import client_settings
from migrate.kafka.settings import ready
from migrate.mm2.flow import Cluster
from migrate.model import Side
from migrate.spark.java_settings import ENDPOINT, java_settings
from migrate.token_command import TokenCommand, token_endpoint
from tests.unit.clientscene import BROKERS, OAUTH, PASSWORD, PLAIN, refusal

JWT = "head.claims.signature"


@pytest.fixture(autouse=True)
def _no_tokens_of_others(monkeypatch):
    monkeypatch.setattr(token_command, "_held", {})


@pytest.fixture
def clock(monkeypatch):
    """Seconds that have passed, in a list of one."""
    passed, real = [0.0], time.time
    monkeypatch.setattr(token_command.time, "time", lambda: real() + passed[0])
    return passed


def python(code, *arguments):
    return TokenCommand("--source-token-command", (sys.executable, "-c", code, *arguments))


def printing(text):
    return python("import sys; print(sys.argv[1])", text)


def counting(folder, life=600):
    """A command whose tokens are numbered, until there is a file `broken` in the folder."""
    return python(
        "import json, os, sys, time\n"
        "folder, life = sys.argv[1], float(sys.argv[2])\n"
        "if os.path.exists(folder + '/broken'): sys.exit(3)\n"
        "n = len(os.listdir(folder)); open(f'{folder}/{n}', 'w').close()\n"
        "print(json.dumps({'token': f'a.b.{n}', 'expires': time.time() + life}))",
        str(folder), str(life),
    )  # fmt: skip


@pytest.mark.parametrize(
    "printed",
    [
        {"kind": "ExecCredential", "status": {"token": JWT, "expirationTimestamp": "2100-01-01T00:00:00Z"}},
        {"kind": "ExecCredential", "status": {"token": JWT, "expirationTimestamp": "2100-01-01T01:00:00+01:00"}},
        {"token": JWT, "expires": 4102444800},
        {"token": JWT, "expires": "4102444800"},
    ],
)
def test_what_plugins_of_kubectl_print_is_taken_and_a_token_and_when_it_ends_are_enough(printed):
    assert printing(json.dumps(printed))("") == (JWT, 4102444800.0)


NO_TOKEN = "does not print a token and when it ends"


@pytest.mark.parametrize(
    ("printed", "why"),
    [
        (PASSWORD, NO_TOKEN),
        (f'["{PASSWORD}"]', NO_TOKEN),
        (json.dumps({"token": PASSWORD}), NO_TOKEN),
        (json.dumps({"token": PASSWORD, "expires": "2100-01-01T00:00:00"}), NO_TOKEN),
        (json.dumps({"token": PASSWORD, "expires": 4102444800000}), NO_TOKEN),
        (json.dumps({"token": PASSWORD, "expires": float("nan")}), "has ended"),
        (json.dumps({"token": PASSWORD, "expires": 1}), "has ended"),
        (json.dumps({"token": f"{PASSWORD} {PASSWORD}", "expires": 4102444800}), "a token that is none"),
        (json.dumps({"token": {"a": PASSWORD}, "expires": 4102444800}), "a token that is none"),
    ],
)
def test_what_is_no_token_is_said_and_never_shown(printed, why):
    with pytest.raises(ClusterError) as caught:
        printing(printed).token()
    text = str(caught.value)
    assert why in text and "--source-token-command" in text and sys.executable in text
    assert PASSWORD not in text and caught.value.todo


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (python("import sys; print(sys.argv[1]); sys.exit(7)", PASSWORD), "ended with status 7"),
        (TokenCommand("--target-token-command", ("/no/such/program", PASSWORD)), "No such file"),
        (TokenCommand("--target-token-command", ("a\0b", PASSWORD)), "cannot be run"),
    ],
)  # fmt: skip
def test_a_command_that_fails_is_named_without_its_arguments(command, why):
    with pytest.raises(ClusterError) as caught:
        command.token()
    assert why in str(caught.value) and PASSWORD not in str(caught.value) + repr(command)


def test_a_command_that_does_not_end_is_ended(monkeypatch):
    monkeypatch.setattr(token_command, "LIMIT_SECONDS", 0.2)
    with pytest.raises(ClusterError, match="has not ended"):
        python("import time; time.sleep(600)").token()


def test_a_command_is_run_again_when_half_of_a_tokens_life_is_over_and_a_token_that_lives_serves_on_while_it_fails(
    tmp_path, clock
):
    command = counting(tmp_path)
    assert [command("")[0] for _ in range(3)] == ["a.b.0"] * 3
    clock[0] = 310
    assert command("")[0] == "a.b.1" == pickle.loads(pickle.dumps(command))("")[0]
    (tmp_path / "broken").touch()
    clock[0] = 590
    assert command("")[0] == "a.b.1"
    clock[0] = 610
    with pytest.raises(ClusterError, match="status 3"):
        command.token()


def test_many_who_ask_at_once_run_it_once(tmp_path):
    command = counting(tmp_path)
    threads = [threading.Thread(target=command.token) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(list(tmp_path.iterdir())) == 1


def asked(endpoint, secret):
    login = base64.b64encode(f"{token_command.ENDPOINT_CLIENT}:{secret}".encode()).decode()
    request = urllib.request.Request(
        endpoint.url, b"grant_type=client_credentials", {"Authorization": f"Basic {login}"}
    )
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as answer:
        return json.load(answer)


def test_the_endpoint_answers_whoever_has_its_secret_and_nobody_else(tmp_path):
    endpoint = token_endpoint(counting(tmp_path))
    assert token_endpoint(counting(tmp_path)) == endpoint and endpoint.secret not in repr(endpoint)
    with pytest.raises(urllib.error.HTTPError, match="401"):
        asked(endpoint, "guessed")
    assert not list(tmp_path.iterdir())
    assert asked(endpoint, endpoint.secret)["access_token"] == "a.b.0"


def test_without_a_token_the_endpoint_says_why_and_no_client_is_made(tmp_path):
    (tmp_path / "broken").touch()
    endpoint = token_endpoint(counting(tmp_path))
    with pytest.raises(urllib.error.HTTPError, match="400") as caught:
        asked(endpoint, endpoint.secret)
    assert "status 3" in json.load(caught.value)["error_description"]
    with pytest.raises(ClusterError, match="status 3"):
        ready(client_settings(cluster(PLAIN, counting(tmp_path))).config)


def cluster(properties, command):
    return Cluster(Side.SOURCE, "A", properties, "a.properties", command)


@pytest.mark.parametrize("properties", [PLAIN, OAUTH, BROKERS | {"security.protocol": "SASL_PLAINTEXT"}])
def test_both_clients_log_in_by_the_command_whatever_the_file_says_of_a_login(tmp_path, properties):
    command = counting(tmp_path)
    settings = client_settings(cluster(properties, command))
    config = ready(settings.config)
    assert config["sasl.mechanism"] == "OAUTHBEARER" and config["oauth_cb"]("")[0] == "a.b.0"
    java = java_settings(cluster(properties, command))
    assert java.admin[ENDPOINT] == token_endpoint(command).url == java.source[f"kafka.{ENDPOINT}"]
    assert token_endpoint(command).secret in java.secrets
    told = {*config.values(), *java.admin.values()}
    assert not any("a.b.0" in str(value) or PASSWORD in str(value) for value in told)


def test_a_handler_of_the_users_own_logs_java_in_by_itself(tmp_path):
    own = OAUTH | {"sasl.login.callback.handler.class": "com.example.Handler"}
    command = printing(json.dumps({"token": "opaque", "expires": 4102444800}))
    assert java_settings(cluster(own, command)).admin == java_settings(cluster(own, None)).admin
    assert client_settings(cluster(own, command)).config["oauth_cb"]("")[0] == "opaque"
    with pytest.raises(ClusterError, match="no JWT.*sasl.login.callback.handler.class"):
        java_settings(cluster(OAUTH, command))


def test_a_protocol_without_logins_is_refused():
    with pytest.raises(Exception, match="security.protocol .* is SSL.*omit --source-token-command"):
        client_settings(cluster(BROKERS | {"security.protocol": "SSL"}, printing("")))
    assert "librdkafka" in refusal(PLAIN | {"security.protocol": "SASL_SSL", "ssl.ca.location": "/x"})
