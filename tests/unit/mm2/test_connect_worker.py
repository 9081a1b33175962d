"""A Connect worker's REST: where it is, who may ask it, and what its answers mean."""

from dataclasses import replace

import pytest

from migrate.cli.options import resolve_flow
from migrate.errors import ClusterError, UsageError
from migrate.mm2.connect_worker import LOGIN, connect_worker
from migrate.mm2.connectors import Role
from migrate.model import TopicPartition
from tests.facts import options
from tests.fakeworker import worker
from tests.lab.ipv6 import has_ipv6
from tests.unit.connectscene import connectors, rest


def test_a_worker_tells_the_positions_of_its_connectors():
    def entry(cluster, topic, partition, offset):
        return {"partition": {"cluster": cluster, "topic": topic, "partition": partition}, "offset": {"offset": offset}}

    answers = {
        "/connectors/A-%3EB.x%2Fy/offsets": {"offsets": [entry("A", "t", 0, 41), entry("C", "t", 1, 9)]},
        "/connectors/z/offsets": {"offsets": [entry("A", "t", 0, 40), {"partition": {}, "offset": None}, 5]},
    }
    with worker(answers) as url:
        reader = replace(
            connect_worker(url), connectors=dict.fromkeys(("A->B.x/y", "z"), Role.SOURCE), source_alias="A"
        )
        assert reader.positions() == {TopicPartition("t", 0): 40}
        with pytest.raises(ClusterError, match="older than Kafka 3.5.*--connect-offsets-topic"):
            replace(connect_worker(url), connectors={"gone": Role.SOURCE}, source_alias="A").positions()


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6: nobody can listen on ::1")
def test_a_worker_with_an_ipv6_address_is_asked_there():
    with worker(rest(connectors({})), host="::1") as url:
        assert url.startswith("http://[::1]:")
        assert connect_worker(url).described().connectors


def test_a_login_comes_from_the_environment_and_is_asked_for_warned_of_over_an_unencrypted_line_and_not_shown(
    monkeypatch, capsys
):
    monkeypatch.delenv(LOGIN, raising=False)
    with worker(rest(connectors({})), login="Basic dTpodW50ZXIy") as url:
        with pytest.raises(ClusterError, match=LOGIN):
            resolve_flow(options(connect_url=url))
        assert capsys.readouterr().err == ""
        monkeypatch.setenv(LOGIN, "u:hunter2")
        resolve_flow(options(connect_url=url))
        assert "hunter2" not in repr(connect_worker(url))
    told = capsys.readouterr().err
    assert "warning" in told and LOGIN in told and url in told and "https://" in told and "hunter2" not in told


@pytest.mark.parametrize(
    "url", ["connect:8083", "ftp://x", "http://", "http://x:port", "http://u:p@x", "http://x/?a=b"]
)
def test_what_is_no_address_of_a_worker_is_refused(url):
    with pytest.raises(UsageError, match="--connect-url"):
        connect_worker(url)


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ({}, "HTTP 404"),
        ({"/": 409}, "rebalancing"),
        ({"/": {}, "/connectors?expand=info": {}}, "not a Kafka Connect worker"),
        ({"/": b"<html>"}, "not a Kafka Connect worker"),
        (rest([]), "not a Kafka Connect worker"),
    ],
)
def test_an_answer_that_is_no_workers_is_one_paragraph(answers, words):
    with worker(answers) as url, pytest.raises(ClusterError, match=words):
        connect_worker(url).described()


def test_a_worker_that_does_not_answer_is_told_with_the_way_around_it():
    with worker({}) as url:
        pass
    with pytest.raises(ClusterError, match=r"does not answer: .*--source-config"):
        connect_worker(url).described()
