"""The shared options: what the environment may set, what goes together, and what is refused before anything is read."""

import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from migrate.cli.choices import MovedGroupOptions, PolicyOptions
from migrate.cli.main import cli
from migrate.cli.options import NEVER_FROM_ENVIRONMENT, resolve_flow
from migrate.errors import UsageError
from migrate.mm2.flow import ANY
from migrate.mm2.naming import PolicyKind
from migrate.plan.file import write_plan
from migrate.survey.policies import Rewind, Uncommitted
from tests.builders import make_plan, make_row
from tests.facts import options
from tests.unit.commands import clusters, run

REFERENCE = (Path(__file__).parents[3] / "docs/commands.md").read_text()


def test_the_reference_names_what_the_environment_does_not_set():
    named = re.search(r"those\s+that affect data \(([^)]+)\)", REFERENCE)
    assert named and set(re.findall(r"`(--[a-z-]+)`", named[1])) == NEVER_FROM_ENVIRONMENT
    assert {"--source-unreachable", "--consumers-ran"} <= NEVER_FROM_ENVIRONMENT


def test_an_option_is_taken_from_the_environment_unless_it_chooses_the_rows_that_are_looked_at(tmp_path):
    """`verify` exits 0 over the rows that were chosen, and that opens the gate."""
    for command in ("show", "verify"):
        chosen = {p.name: p.envvar for p in cli.commands[command].params if p.name in ("groups", "only", "limit")}
        assert chosen and not any(chosen.values())
    wanted = tmp_path / "absent.properties"
    shown = run("status", MM2_MIGRATE_MM2_CONFIG=str(wanted), MM2_MIGRATE_SOURCE="A", MM2_MIGRATE_TARGET="B")
    assert shown.exit_code == 2 and str(wanted) in shown.stderr


SIZE = "'--max-fetch': invalid size '{}': use for example 500M, 2G or 1048576."


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("plan", "Where are the clusters?"),
        *((f"plan --mm2-config x.properties{one}", "Which flow?") for one in ("", " --source A", " --target B")),
        ("plan --mm2-config x.properties --source A --target A", "are both 'A'"),
        ("plan --mm2-config x.properties --source A --target B", "x.properties"),
        ("plan {clusters} --accept source-group-stoped", "source-group-stopped"),
        *((f"plan {{clusters}} --spark-conf {pair}", "expected KEY=VALUE") for pair in ("spark.driver.memory", "=2g")),
        *((f"plan --max-fetch {given}", SIZE.format(given)) for given in ("lots", "-5M", "1e9")),
        ("plan {clusters} --replicator any --mm2-config x.properties", "--mm2-config is about MirrorMaker 2"),
        ("plan {clusters} --replicator any --checkpoints-topic c", "--checkpoints-topic is about"),
        ("plan {clusters} --replicator any --offset-syncs-location target", "--offset-syncs-location is about"),
        ("plan {clusters} --replicator any --topic-map m --replication-policy identity", "exclude each other"),
        ("plan {clusters} --replicator any --separator -", "begin with an alias"),
        ("plan {clusters} --replicator any --topic-map absent.csv", "absent.csv"),
        ("plan {clusters} --topic-map m", "--replicator any as well"),
        ("plan {clusters} --replicator any --source-down", "--source-down and --replicator any"),
        ("plan {clusters} --replicator any --by timestamp --no-match", "--by timestamp and --no-match"),
        ("mm2 offsets {clusters} --replicator any", "there is no MM2"),
    ],
)
def test_wrong_use_exits_2_and_says_what_is_wrong(tmp_path, typed, said):
    shown = run(*typed.format(clusters=" ".join(clusters(tmp_path))).split())
    assert shown.exit_code == 2 and said in shown.stderr and "Traceback" not in shown.stderr
    assert shown.stderr.startswith("Usage: ") or len(shown.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("where", ["mm2_config", "connect_url", "strimzi", "source_config", "target_config"])
def test_any_description_of_a_cluster_says_where_it_is_and_is_printed_as_it_would_be_typed(where):
    given = options(source="A", target="B", **{where: Path("x")}, offset_syncs_location="target")
    assert given.says_where and not options(source="A", target="B").says_where
    words = {"--source": "A", "--target": "B", f"--{where.replace('_', '-')}": "x", "--offset-syncs-location": "target"}
    assert dict(zip(given.words()[::2], given.words()[1::2], strict=True)) == words


def test_policies_are_what_a_reviewer_decided():
    policies = PolicyOptions(
        accept=("not-drained:t",), untranslatable=("earliest", "topic-not-replicated=skip"), rewind=Rewind.KEEP,
        max_rereads=7,
    ).policies()  # fmt: skip
    assert (policies.rewind, policies.uncommitted, policies.max_rereads) == (Rewind.KEEP, Uncommitted.IGNORE, 7)
    assert str(policies.untranslatable) == "earliest" and len(policies.untranslatable_by_reason) == 1
    assert len(policies.waivers) == 1


def spans(of=cli):
    for each in of.commands.values():
        if isinstance(each, click.Group):
            yield from spans(each)
        for option in each.params:
            if isinstance(option.type, click.types.FloatParamType) or option.metavar == "SECONDS":
                yield pytest.param(each, option, id=f"{each.name} {option.opts[0]}")


@pytest.mark.parametrize(("command", "option"), [*spans()])
def test_no_command_waits_for_ever_or_for_what_is_no_time(command, option):
    for given in ("nan", "-inf", "1e400", "2000001", "-1", "soon"):
        told = CliRunner().invoke(command, [option.opts[0], given])
        assert told.exit_code == 2 and f"Invalid value for '{option.opts[0]}'" in told.output, told.output


def test_behind_another_replicator_topics_have_their_own_names_or_those_of_a_map_and_nothing_of_mm2s(tmp_path):
    client = tmp_path / "c.properties"
    client.write_text("bootstrap.servers=x:1\n")
    both = {"source": "A", "target": "B", "source_config": client, "target_config": client}
    by_mm2 = resolve_flow(options(**both))
    assert by_mm2.by_mm2 and "replicator" not in by_mm2.runtime_words()
    both |= {"replicator": "any"}
    flow = resolve_flow(options(**both))
    assert flow.replicator is ANY and not flow.by_mm2
    assert flow.policy.target_topic("t") == "t" and flow.policy.kind is PolicyKind.IDENTITY
    assert (flow.checkpoints_topic, flow.offset_syncs_topic, flow.connect_offsets_topics) == ("", "", ())
    assert flow.runtime_words() == {"replicator": "any"}
    names = tmp_path / "names.csv"
    names.write_text("source_topic,target_topic\nt,eu.t\n")
    assert resolve_flow(options(**both, topic_map=names)).policy.target_topic("t") == "eu.t"
    aliased = resolve_flow(options(**both, replication_policy="default", separator="-"))
    assert aliased.policy.target_topic("t") == "A-t"


@pytest.fixture
def given(tmp_path):
    """The option with a file of these lines, or with a plan of these rows."""

    def written(*content, **header):
        path = tmp_path / "names"
        if isinstance(content[0], str):
            path.write_text("\n".join(content))
        else:
            write_plan(make_plan(content, **header), path)
        return MovedGroupOptions(group_map=path)

    return written


def test_a_file_of_names_is_read_backwards_on_the_way_back_unless_it_cannot_be(given):
    options = given("source_group,target_group", "orders,orders-eu")
    back = options.names(failback=True)
    assert options.names().mapped("orders") == "orders-eu" and not options.names().clusters
    assert (back.mapped("orders-eu"), back.mapped("orders")) == ("orders", "orders")
    options = given(r"regex:(.*),\1-eu")
    assert options.names().mapped("a") == "a-eu"
    with pytest.raises(UsageError, match="cannot be read backwards.*name the plan that was applied"):
        options.names(failback=True)
    with pytest.raises(UsageError, match=r"line 3 \(b\): a becomes x too"):
        given("source_group,target_group", "a,x", "b,x").names(failback=True)


def test_a_plan_names_its_groups_between_its_clusters_alone_and_is_read_backwards_the_other_way(given):
    there = given(make_row("orders", target_group="orders-eu"), make_row("plain"), target_cluster_id="b")
    back = there.names(failback=True)
    assert there.names().mapped("orders") == "orders-eu" and there.names().clusters == {"cluster-id-of-A", "b"}
    assert [back.mapped(group) for group in ("orders-eu", "plain")] == ["orders", "plain"]
    assert back.clusters == there.names().clusters
    back = given(make_row("orders-eu", target_group="orders"), failback=True, source_cluster_id="")
    assert back.names().mapped("orders") == "orders-eu" and back.names().clusters == {"cluster-id-of-B"}
    assert back.names(failback=True).mapped("orders-eu") == "orders"


def test_a_plan_that_renames_nothing_and_a_file_that_is_not_there_are_refused(given, tmp_path):
    assert not MovedGroupOptions().names()
    with pytest.raises(UsageError, match="every group of this plan keeps its name"):
        given(make_row("orders")).names()
    with pytest.raises(UsageError, match="--group-map .*none.csv cannot be read"):
        MovedGroupOptions(group_map=tmp_path / "none.csv").names()
