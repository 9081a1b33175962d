"""MM2's own commands, for the way it runs and its version: to stop it, and to reset its positions."""

import json
import shlex

import pytest

from migrate.mm2.commands import resetting, stopping
from migrate.model import TopicPartition
from migrate.show.explain import site_of
from tests.builders import make_header


def site(version="", home="connect", **more):
    flow = {"mm2_runs": home, "mm2_version": version, "target_bootstrap": "b:1"} | more
    return site_of(make_header(flow=flow))


ORDERS = TopicPartition("orders", 3)
URL = "http://connect:8083"
CONNECT = {"mm2_connect_url": URL, "mm2_source_connectors": "A->B.src", "mm2_checkpoint_connectors": "chk"}


def commands(lines):
    return [shlex.split(line) for line in lines if line.startswith("    ")]


def verbs(site):
    return [words[-1].rpartition("/")[2] for words in commands(stopping(site))]


@pytest.mark.parametrize("version", ["3.6.0", "7.6.1-ccs"])
def test_a_worker_is_stopped_and_reset_by_rest_where_its_version_has_it(version):
    at = site(version, **CONNECT)
    urls = [words[-1] for words in commands(stopping(at))]
    assert urls == [f"{URL}/connectors/A-%3EB.src/stop", f"{URL}/connectors/chk/stop"]
    patch, delete = commands(resetting(at, ORDERS))
    body = json.loads(patch[patch.index("-d") + 1])
    assert body == {"offsets": [{"partition": {"cluster": "A", "topic": "orders", "partition": 3}, "offset": None}]}
    assert delete[delete.index("-X") + 1] == "DELETE"


@pytest.mark.parametrize(("version", "verb"), [("3.4.1", "pause"), ("3.5.2", "stop")])
def test_an_older_worker_is_paused_and_reset_by_a_null_in_its_topic(version, verb):
    at = site(version, mm2_offsets_topic="connect-offsets", **CONNECT)
    assert verbs(at) == [verb, verb]
    words, restart = commands(resetting(at, ORDERS))
    assert words[words.index("--topic") + 1] == "connect-offsets"
    assert words[2] == '["A->B.src",{"cluster":"A","partition":3,"topic":"orders"}]'
    # A task that was only paused goes on from the position that it has in memory.
    assert restart[-1] == f"{URL}/connectors/A-%3EB.src/restart?includeTasks=true"


@pytest.mark.parametrize(("version", "kafka"), [
    ("7.4.1-ccs", (3, 4)),
    ("5.5.12-ce", (2, 5)),
    ("8.1.0-ce", (4, 1)),
    ("4.3.1", (4, 3)),
    ("4.0.0-SNAPSHOT", (4, 0)),
    ("3.9.0-rc3", (3, 9)),
    ("6.3.0-ccs", None),
    ("4.1.4-ccs", None),
    ("7.4.1", None),
    ("3.6.0-amzn-1", None),
])  # fmt: skip
def test_a_vendors_version_is_not_taken_for_kafkas(version, kafka):
    assert site(version, **CONNECT).version == kafka


def test_of_an_unknown_version_both_ways_are_printed_with_the_versions_that_they_need():
    named = "Which Kafka 7.4.1-vendor is, is not known here"
    for version, unknown in (("", "Kafka's version is not known"), ("7.4.1-vendor", named)):
        at = site(version, mm2_offsets_topic="connect-offsets", **CONNECT)
        assert verbs(at) == ["stop", "stop", "pause", "pause"]
        text = " ".join(stopping(at))
        assert f"{unknown}; from 3.5 on there is stop" in text
        assert "Where the worker answers HTTP 404 to that, it is Kafka before 3.5, which has pause:" in text
        patch, delete, produce, restart = commands(resetting(at, ORDERS))
        assert "PATCH" in patch and "DELETE" in delete and "kafka-console-producer.sh" in produce and "POST" in restart
        text = " ".join(resetting(at, ORDERS))
        assert text.startswith(f"{unknown}. Kafka from 3.6 on:") and "Kafka before 3.6:" in text
        strimzi = [words[0] for words in commands(resetting(site(version, "strimzi"), ORDERS))]
        assert strimzi == ["kubectl", "printf"]


@pytest.mark.parametrize("home", ["connect", "strimzi", "dedicated", ""])
@pytest.mark.parametrize(("location", "failback", "on"), [("target", False, "B"), ("source", True, "A")])
def test_who_resets_mm2_is_warned_to_leave_its_offset_syncs_alone(home, location, failback, on):
    flow = {"mm2_runs": home, "offset_syncs_topic": "mm2-offset-syncs.B.internal", "offset_syncs_location": location}
    aliases = {"source_alias": "B", "target_alias": "A"} if failback else {}
    header = make_header(flow={k: v for k, v in flow.items() if v}, failback=failback, **aliases)
    text = " ".join(resetting(site_of(header), ORDERS))
    assert f"mm2-offset-syncs.B.internal on {on} must stay" in text and "resets nothing" in text


def test_an_mm2_by_itself_gets_a_signal_and_the_very_bytes_of_its_key():
    at = site("", "dedicated", mm2_offsets_topic="mm2-offsets.A.internal")
    assert [words[0] for words in commands(stopping(at))] == ["pgrep", "kill"]
    (words,) = commands(resetting(at, ORDERS))
    assert words[2] == '["MirrorSourceConnector",{"cluster":"A","partition":3,"topic":"orders"}]'
    assert words[words.index("--bootstrap-server") + 1] == "b:1" and "--property" in words
    (newer,) = commands(resetting(site("4.2.0", "dedicated"), ORDERS))
    assert "--reader-property" in newer and "--property" not in newer
    # On a failback MM2's source is what the plan writes.
    back = make_header(
        source_alias="B", target_alias="A", failback=True, flow={"mm2_runs": "dedicated", "source_bootstrap": "b:1"}
    )
    (words,) = commands(resetting(site_of(back), ORDERS))
    assert '"cluster":"A"' in words[2] and words[words.index("--bootstrap-server") + 1] == "b:1"


def test_strimzi_gets_kubectl_with_namespace_and_connector():
    at = site("4.0.0", "strimzi", mm2_strimzi_resource="kafka/mm2", mm2_source_connectors="A->B.MirrorSourceConnector")
    (edit,) = commands(stopping(at))
    assert edit == ["kubectl", "-n", "kafka", "edit", "kafkamirrormaker2", "mm2"]
    (annotate,) = commands(resetting(at, ORDERS))
    connector = "strimzi.io/mirrormaker-connector=A->B.MirrorSourceConnector"
    assert annotate[-2:] == ["strimzi.io/connector-offsets=reset", connector]
