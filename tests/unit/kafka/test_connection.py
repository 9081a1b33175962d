"""Clients are destroyed in a thread that nobody waits for: `rd_kafka_destroy` may wait for ever."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from migrate.errors import ClusterError
from migrate.kafka import connection as module
from migrate.kafka.connection import DESTROYER, Connection
from migrate.kafka.errors import timed_out
from migrate.kafka.settings import ClientSettings
from migrate.model import Failure, Side
from migrate.token_command import TokenCommand
from tests.mockcluster import MockCluster

SECONDS = 0.3
WAIT_SECONDS = 30.0
NOWHERE = "127.0.0.1:1"


@pytest.fixture(scope="module")
def bootstrap() -> str:
    return MockCluster(1).bootstrap


@pytest.fixture
def destroyers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], str]]:
    """Return the name of the thread that destroys the next client."""
    names: SimpleQueue[str] = SimpleQueue()

    class Watched(AdminClient):
        def __del__(self) -> None:
            names.put(threading.current_thread().name)

    monkeypatch.setattr(module, "AdminClient", Watched)
    yield lambda: names.get(timeout=WAIT_SECONDS)
    assert names.empty(), "a client that no test was told of"


def to(bootstrap: str, seconds: float = WAIT_SECONDS) -> Connection:
    return Connection(ClientSettings(Side.TARGET, "B", "target B", {"bootstrap.servers": bootstrap}), seconds)


def misses_a_deadline(connection: Connection, ask: Callable[[], Any]) -> Any:
    """What becomes of a question that is not answered within `SECONDS`, of a client that has reached its cluster."""
    connection.client()
    connection.deadline_seconds = SECONDS
    try:
        return ask()
    finally:
        connection.deadline_seconds = WAIT_SECONDS


def test_a_client_that_failed_in_any_way_is_destroyed_where_nobody_waits(bootstrap, destroyers):
    connection = to(bootstrap)
    unanswered = {"one": timed_out(SECONDS)}
    assert misses_a_deadline(connection, lambda: connection.gather(["one"], lambda *_: Future(), 5)) == unanswered
    assert destroyers() == DESTROYER
    assert misses_a_deadline(connection, lambda: connection.collect(lambda _: {"one": Future()})) == unanswered
    assert destroyers() == DESTROYER

    def refuse(client: AdminClient, key: str) -> "Future[Any]":
        raise ValueError("no such request")

    assert isinstance(connection.gather(["one"], refuse, 5)["one"], Failure)
    connection.drop()
    assert destroyers() == DESTROYER
    with pytest.raises(ClusterError):
        to(NOWHERE, SECONDS).metadata()
    assert destroyers() == DESTROYER


def test_a_connection_that_is_let_go_takes_its_client_along_at_once(bootstrap, destroyers):
    connection = to(bootstrap)
    assert connection.metadata().brokers
    # No collection of garbage is needed: the client does not refer to its connection.
    del connection
    assert destroyers() == DESTROYER


def test_what_librdkafka_says_of_a_cluster_shows_no_secret():
    told = "Connection refused"  # what it says of this cluster: now a password as well
    for config, secrets in (({}, (told,)), ({"sasl.password": told}, ())):
        settings = {"bootstrap.servers": NOWHERE} | config
        connection = Connection(ClientSettings(Side.TARGET, "B", "target B", settings, frozenset(secrets)), 2.0)
        with pytest.raises(ClusterError, match="cannot be reached") as found:
            connection.metadata()
        assert told not in str(found.value)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A call that is answered at once, and which clients were asked; each of them is old when the next call comes."""
    monkeypatch.setattr(module, "FRESH_SECONDS", 0.0)
    used: list[int] = []

    def answered(client: AdminClient) -> "dict[str, Future[Any]]":
        used.append(id(client))
        future: Future[Any] = Future()
        future.set_result("well")
        return {"one": future}

    return answered, used


def test_a_client_is_not_kept_for_long_and_never_dropped_under_another_call(bootstrap, destroyers, asked):
    answered, used = asked
    connection = to(bootstrap)

    def asking_meanwhile(client: AdminClient) -> "dict[str, Future[Any]]":
        connection.collect(answered)
        return answered(client)

    assert connection.collect(asking_meanwhile) == {"one": "well"}
    with connection.in_use():
        connection.collect(answered)
    assert len(set(used)) == 1
    # What it knew of coordinators goes with it.
    connection.collect(answered)
    assert len(set(used)) == 2 and destroyers() == DESTROYER
    connection.drop()
    assert destroyers() == DESTROYER


def test_one_client_that_never_ends_does_not_keep_later_ones_alive(bootstrap, destroyers, asked, monkeypatch):
    answered, used = asked
    ended = threading.Event()

    class NeverEnds(list[Any]):
        def clear(self) -> None:
            ended.wait(WAIT_SECONDS)

    monkeypatch.setattr(module, "DESTROYING_SECONDS", 0.1)
    connection = to(bootstrap)
    connection.collect(answered)
    module._dropped.put(NeverEnds())
    gone = to(bootstrap)
    gone.client()
    gone.drop()
    assert destroyers() == DESTROYER
    # But no new one takes the place of one that is only old.
    connection.collect(answered)
    assert used[0] == used[1]
    ended.set()
    connection.drop()
    assert destroyers() == DESTROYER


def test_an_old_client_is_kept_where_no_new_one_reaches_the_cluster(bootstrap, destroyers, asked):
    answered, used = asked
    connection = to(bootstrap)
    connection.collect(answered)
    # The broker that bootstrap.servers names is gone; the client that is there may know others.
    connection._config = {"bootstrap.servers": NOWHERE}
    connection.deadline_seconds = SECONDS
    assert connection.collect(answered) == {"one": "well"}
    assert destroyers() == DESTROYER, "the one that reached nothing"
    assert used[0] == used[1]
    connection.drop()
    assert destroyers() == DESTROYER


@pytest.mark.parametrize(
    ("config", "todo"),
    [
        ({"sasl.mechanism": "PLAIN"}, "Check the user, the password"),
        ({"sasl.mechanism": "GSSAPI"}, "klist shows the tickets"),
        ({"oauth_cb": TokenCommand("--target-token-command", ("tell",))}, "token which --target-token-command gets"),
    ],
)
def test_who_is_refused_is_told_what_to_check_of_that_login(config: dict[str, Any], todo: str) -> None:
    connection = Connection(ClientSettings(Side.TARGET, "B", "target B", config), WAIT_SECONDS)
    refused = connection._unreachable("_AUTHENTICATION", "no entry")
    assert "target B cannot be reached: authentication failed: no entry." in str(refused) and todo in refused.todo
