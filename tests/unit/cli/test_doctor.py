"""`doctor`: a line for each examination, whose fault hides no other, and exit code 1 if one failed."""

from contextlib import nullcontext
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from migrate.checks.rights import Examined, Health, Seen
from migrate.cli import doctor
from migrate.cli.choices import MovedGroupOptions
from migrate.cli.console import Terminal
from migrate.errors import ClusterError, MigrateError, UsageError
from migrate.kafka.msk_iam import MskIam
from migrate.model import Failure, LogRange, Side, TopicPartition
from migrate.session.clusters import Endpoint
from migrate.session.options import SparkOptions
from tests.facts import options as cluster_options
from tests.fakes import FakeCluster, FakeGroupFacts, NoProgress
from tests.unit.clientscene import MSK
from tests.unit.planscene import CHECKPOINTS, SYNCS, world

ALL = frozenset({"DESCRIBE", "DESCRIBE_CONFIGS", "READ", "ALTER", "DELETE"})
SCREEN = Terminal(columns=lambda: 400)


class FakeRights(FakeCluster):
    """A cluster that grants us everything."""

    def rights(self, groups, topics):
        return Seen(ALL, dict.fromkeys(groups, ALL), dict.fromkeys(topics, ALL))


def side_of(sides, java):
    return sides[Side(java.name.split()[0])]


def by_java(topics):
    """Kafka's Java client, asked which topics a cluster has."""
    return SimpleNamespace(hosted_topics=lambda: topics)


@pytest.fixture
def clusters(monkeypatch):
    """Two clusters with all that MM2 leaves behind; Java and Spark are there."""
    source, target, _ = world()
    source.states, target.states = {}, {}
    for cluster in (source, target):
        cluster.__class__ = FakeRights
    sides = {Side.SOURCE: source, Side.TARGET: target}
    monkeypatch.setattr(doctor, "ConfluentAdmin", lambda settings, _: sides[settings.side])
    source.told = FakeGroupFacts()
    monkeypatch.setattr(Endpoint, "admin", lambda of: sides[of.cluster.side])
    monkeypatch.setattr(doctor, "starting_spark", lambda *_: nullcontext(MagicMock()))
    monkeypatch.setattr(doctor, "refuse_lacking", lambda _: ())
    monkeypatch.setattr(doctor, "KafkaJava", lambda _, java, __: by_java(frozenset(side_of(sides, java).topics())))
    for name in ("_java", "_jars"):
        monkeypatch.setattr(doctor, name, lambda *_, n=name: iter([Examined(Health.OK, n, "there")]))
    return sides


@pytest.fixture
def properties(tmp_path):
    path = tmp_path / "client.properties"
    path.write_text("bootstrap.servers=127.0.0.1:1\nssl.key.password=x\n")
    return path


def run(**options):
    lines, code = doctor.examine(doctor.DoctorOptions(**options), NoProgress(), SCREEN)
    return "\n".join(lines), code


def examined(properties, replicator=None, **options):
    both = {"source_config": properties, "target_config": properties}
    return run(clusters=cluster_options(source="A", target="B", replicator=replicator, **both), **options)


def test_where_all_is_well_every_examination_says_so(clusters, properties):
    said, code = examined(properties)
    assert code == 0 and "FAIL" not in said and said.endswith("All is well."), said
    for part in ("source A: cluster id-a", "target B, by Kafka's Java client: reached", "rights for apply on target B",
                 "rights for failback on source A: all there", "rights for failback on target B: all there",
                 "MM2's checkpoints topic: " + CHECKPOINTS, "MM2's offset-syncs topic: " + SYNCS):  # fmt: skip
        assert part in said


def test_rights_on_the_target_are_those_on_the_groups_names_there(clusters, properties, tmp_path, monkeypatch):
    (tmp_path / "names.csv").write_text("source_group,target_group\ng,g-eu\n")
    asked = {}

    def rights(self, groups, topics):
        asked[self.alias] = sorted(groups)
        return Seen(ALL, dict.fromkeys(groups, ALL), dict.fromkeys(topics, ALL))

    monkeypatch.setattr(FakeRights, "rights", rights)
    said, code = examined(properties, groups=MovedGroupOptions(group_map=tmp_path / "names.csv"))
    assert code == 0 and asked == {"A": ["g", "h"], "B": ["g-eu", "h"]}, said


def test_sparks_executors_elsewhere_are_named_or_fail(clusters, properties, monkeypatch):
    monkeypatch.setattr(doctor, "refuse_lacking", lambda _: ("h1", "h2"))
    said, code = examined(properties)
    assert code == 0 and "ok    Spark's executors: a Python with confluent-kafka on h1, h2" in said

    lacking = MigrateError("Spark's executors lack what reads records: /usr/python on h2.", "Name another.")
    monkeypatch.setattr(doctor, "refuse_lacking", raising(lacking))
    said, code = examined(properties)
    assert code == 1 and "FAIL  Spark's executors" in said and "/usr/python on h2" in said and "> Name another." in said


@pytest.mark.parametrize(
    "wrong", [{"spark": SparkOptions(spark_conf=("oops",))}, {"groups": MovedGroupOptions(groups=("(",))}]
)
def test_wrong_use_is_no_finding(clusters, wrong):
    with pytest.raises(UsageError):
        run(**wrong)


def test_without_clusters_java_is_examined_and_a_source_that_is_down_is_not_asked(clusters, properties):
    said, code = run()
    assert code == 0 and said.startswith("ok    _java: there\n") and "clusters: not asked" in said
    said, code = examined(properties, source_down=True)
    assert code == 0 and "source A" not in said


def raising(error):
    """A function that raises, whatever it is asked."""

    def fails(*_, **__):
        raise error

    return fails


def test_a_fault_is_a_line_of_its_own_and_the_next_examination_is_made(clusters, properties, monkeypatch):
    monkeypatch.setattr(doctor, "_java", raising(MigrateError("There is no Java.", "Install one.")))
    said, code = examined(properties)
    assert code == 1 and "FAIL  Java: There is no Java." in said and "> Install one." in said
    assert "target B: cluster id-b" in said and "by Kafka's Java client" not in said
    assert said.splitlines()[-1].startswith("1 of ")


def test_a_cluster_that_does_not_answer_hides_nothing_of_the_other(clusters, properties, monkeypatch):
    def silent(settings, _):
        if settings.side is Side.SOURCE:
            raise ClusterError("source A (x:1) cannot be reached.")
        return clusters[settings.side]

    monkeypatch.setattr(doctor, "ConfluentAdmin", silent)
    said, code = examined(properties)
    assert code == 1 and "FAIL  source A: source A (x:1) cannot be reached." in said
    assert "rights for apply on target B" in said and "MM2's offset-syncs topic" not in said
    assert "Connect's own topics" not in said


def test_mm2s_topics_fail_where_they_are_missing_unless_it_is_another_replicator_and_are_empty_with_a_warning(
    clusters, properties
):
    clusters[Side.TARGET].ranges[TopicPartition(CHECKPOINTS, 0)] = LogRange(0, 0)
    del clusters[Side.SOURCE].ranges[TopicPartition(SYNCS, 0)]
    said, code = examined(properties)
    assert code == 1 and f"FAIL  MM2's offset-syncs topic: A shows us no topic {SYNCS}" in said
    assert "warn  MM2's checkpoints topic" in said and "It is empty." in said
    said, code = examined(properties, replicator="any")
    assert code == 0 and "ok    MM2's topics: not asked: another replicator" in said
    assert CHECKPOINTS not in said and "own positions" not in said


def test_a_topic_that_a_setting_lets_mm2_not_write_is_no_failure(clusters, properties, tmp_path):
    del clusters[Side.TARGET].ranges[TopicPartition(CHECKPOINTS, 0)]
    mm2 = tmp_path / "mm2.properties"
    mm2.write_text(
        "clusters=A,B\nA.bootstrap.servers=127.0.0.1:1\nB.bootstrap.servers=127.0.0.1:1\nA->B.enabled=true\n"
        "emit.checkpoints.enabled=false\n"
    )
    said, code = run(clusters=cluster_options(source="A", target="B", mm2_config=mm2))
    assert code == 0 and f"warn  MM2's checkpoints topic: B shows us no topic {CHECKPOINTS}: emit.checkpoints" in said
    # A plan blocks where a topic was named and is missing.
    named = cluster_options(source="A", target="B", mm2_config=mm2, checkpoints_topic=CHECKPOINTS)
    said, code = run(clusters=named)
    assert code == 1 and f"FAIL  MM2's checkpoints topic: B shows us no topic {CHECKPOINTS}" in said


def test_javas_client_tells_refusals_from_silence_and_names_hidden_topics(clusters, properties, monkeypatch):
    for code, health, why in (
        ("CLUSTER_AUTHORIZATION_FAILED", "ok  ", "without DESCRIBE on the cluster"),
        ("REQUEST_TIMED_OUT", "FAIL", "REQUEST_TIMED_OUT: no answer"),
    ):
        monkeypatch.setattr(doctor, "KafkaJava", lambda *_, of=code: by_java(Failure(of, "no answer")))
        shown, _ = examined(properties)
        (line,) = [line for line in shown.splitlines() if "source A, by Kafka's Java client" in line]
        assert line.startswith(health) and why in line
    monkeypatch.setattr(
        doctor, "KafkaJava", lambda _, java, __: by_java(frozenset({*side_of(clusters, java).topics(), "secret"}))
    )
    said, code = examined(properties)
    assert code == 0 and "warn  topics of source A: 1 topic that it has and does not show us: secret" in said


@pytest.fixture
def msk(tmp_path, monkeypatch):
    """Properties of an MSK's clients, with keys in the environment and Amazon's jar in the cache."""
    pytest.importorskip("botocore")
    monkeypatch.setattr(doctor, "msk_jars", lambda conf, fetch: [tmp_path / "msk.jar"])
    monkeypatch.setattr(MskIam, "signer", lambda of: "arn:aws:iam::1:user/u")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    path = tmp_path / "msk.properties"
    path.write_text("\n".join(f"{name}={value}" for name, value in MSK.items()))
    return path


def test_whose_keys_sign_and_for_which_region_is_said_beside_amazons_jar(clusters, msk, monkeypatch):
    said, code = examined(msk)
    assert code == 0 and "ok    Amazon's jar: software.amazon.msk:aws-msk-iam-auth" in said, said
    assert "ok    target B, by AWS: arn:aws:iam::1:user/u signs for the region eu-west-1" in said
    monkeypatch.setattr(MskIam, "signer", lambda of: Failure("NO_ANSWER", "no way out"))
    said, code = examined(msk)
    assert code == 0 and "warn  target B, by AWS: whose keys sign" in said and "no way out" in said


def test_another_region_is_a_fault_and_without_amazons_jar_no_java_client_starts(clusters, msk, monkeypatch):
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    said, code = examined(msk)
    assert code == 1 and "names say eu-west-1, and AWS_REGION, by which Amazon's jar signs, says us-east-1" in said
    missing = MigrateError("Amazon's library could not be fetched.", "Name the jars.")
    monkeypatch.setattr(doctor, "msk_jars", raising(missing))
    said, code = examined(msk)
    assert code == 1 and "FAIL  Amazon's jar: Amazon's library could not be fetched." in said
    assert "by Kafka's Java client" not in said
