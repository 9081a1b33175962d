"""--replicator any: what goes with it, what does not, and the flow that comes of it."""

from pathlib import Path

import pytest

from migrate.cli.options import resolve_flow
from migrate.errors import UsageError
from migrate.mm2.flow import ANY
from migrate.mm2.naming import PolicyKind
from tests.facts import options
from tests.unit.commands import run


@pytest.fixture
def both(tmp_path) -> dict[str, object]:
    client = tmp_path / "c.properties"
    client.write_text("bootstrap.servers=x:1\n")
    return {"source": "A", "target": "B", "source_config": client, "target_config": client, "replicator": "any"}


def test_topics_keep_their_names_and_nothing_of_mm2_has_one(both):
    flow = resolve_flow(options(**both))
    assert flow.replicator is ANY and not flow.by_mm2
    assert flow.policy.target_topic("t") == "t" and flow.policy.kind is PolicyKind.IDENTITY
    assert (flow.checkpoints_topic, flow.offset_syncs_topic, flow.connect_offsets_topics) == ("", "", ())
    assert flow.runtime_words() == {"replicator": "any"}


def test_a_map_or_an_alias_in_front_names_them_otherwise(both, tmp_path):
    names = tmp_path / "names.csv"
    names.write_text("source_topic,target_topic\nt,eu.t\n")
    assert resolve_flow(options(**both, topic_map=names)).policy.target_topic("t") == "eu.t"
    aliased = resolve_flow(options(**both, replication_policy="default", separator="-"))
    assert aliased.policy.target_topic("t") == "A-t"


def test_mm2_is_the_replicator_unless_another_is_named(both):
    flow = resolve_flow(options(**(both | {"replicator": None})))
    assert flow.by_mm2 and "replicator" not in flow.runtime_words()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"mm2_config": Path("mm2.properties")}, "--mm2-config is about MirrorMaker 2"),
        ({"checkpoints_topic": "c"}, "--checkpoints-topic is about"),
        ({"offset_syncs_location": "target"}, "--offset-syncs-location is about"),
        ({"topic_map": Path("m"), "replication_policy": "identity"}, "exclude each other"),
        ({"separator": "-"}, "begin with an alias"),
        ({"replicator": None, "topic_map": Path("m")}, "--replicator any as well"),
        ({"topic_map": Path("absent.csv")}, "absent.csv"),
    ],
)
def test_what_does_not_go_together_is_refused(both, given, said):
    with pytest.raises(UsageError, match=said):
        resolve_flow(options(**(both | given)))


def clusters_of(both: dict[str, object]) -> list[str]:
    return [word for name, value in both.items() for word in ("--" + name.replace("_", "-"), str(value))]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["plan", "--source-down"], "--source-down and --replicator any"),
        (["mm2", "offsets"], "there is no MM2"),
        (["plan", "--by", "timestamp", "--no-match"], "--by timestamp and --no-match"),
    ],
)
def test_what_only_mm2_can_answer_and_timestamps_without_records_are_refused(both, words, said):
    shown = run(*words, *clusters_of(both))
    assert shown.exit_code == 2 and said in shown.stderr
