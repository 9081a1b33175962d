"""--flow: where the clusters are, from a flows.yaml in this folder. Which flow is said first: nothing in silence."""

import pytest

from migrate.cli import doctor, flows
from migrate.cli.options import ClusterOptions, ReachedClusters
from migrate.cli.plan import PlanOptions, plan
from migrate.errors import ClusterError, UsageError
from tests.unit.commands import run

FILE = """
defaults: {mm2_config: mm2.properties, source: onprem, settle: 20}
flows:
- {name: eu, target: cloud-eu, groups: [orders-.*], policies: {rewind: keep}}
- {name: us, target: cloud-us, connect_url: 'http://us:8083', separator: '-'}
"""
ONE = "flows: [{name: eu, mm2_config: mm2.properties, source: onprem, target: cloud-eu}]"
SAID = "Flow eu of flows.yaml: onprem -> cloud-eu."


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """What the commands were to resolve; no cluster is asked. The working folder has the file."""
    given: list[ClusterOptions] = []

    def resolve(options):
        given.append(options)
        raise ClusterError("No cluster is asked here.")

    monkeypatch.setattr(flows, "resolve_flow", resolve)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flows.yaml").write_text(FILE)
    return given


def kept(tmp_path, text):
    (tmp_path / "flows.yaml").write_text(text)


PLAN_COMMANDS = ("apply", "rollback", "verify")
TEXT = [
    ("plan",), ("status",), *((command, "c.plan") for command in PLAN_COMMANDS),
    ("mm2", "offsets"),
]  # fmt: skip
DATA = [
    ("status", "--format", "json"), ("verify", "c.plan", "--format", "json"), ("mm2", "offsets", "--format", "json"),
]  # fmt: skip


@pytest.mark.parametrize("words", [*TEXT, *DATA], ids=" ".join)
def test_every_command_takes_its_clusters_from_a_flow_and_says_first_which_it_is(asked, words):
    ran = run(*words, "--flow", "eu")
    (given,) = asked
    assert (str(given.mm2_config), given.source, given.target) == ("mm2.properties", "onprem", "cloud-eu")
    shown, silent = (ran.stderr, ran.stdout) if words in DATA else (ran.stdout, "")
    assert shown.startswith(SAID) and not silent, ran.output
    assert ran.exit_code == 1


def test_doctor_takes_them_too_and_so_do_the_commands_that_a_report_offers(asked, monkeypatch, plan_file, tmp_path):
    examined = []
    monkeypatch.setattr(doctor, "examine", lambda options, *_: examined.append(options.clusters) or ([], 0))
    assert run("doctor", "--flow", "eu").stdout.startswith(SAID) and examined[0].target == "cloud-eu"
    ran = run("report", str(plan_file), "--flow", "eu", "--out", "r.html")
    assert ran.stdout.startswith(SAID) and "--flow eu" in (tmp_path / "r.html").read_text()
    assert run("report", str(plan_file), "--flow", "asia").exit_code == 2


def test_only_where_the_clusters_are_is_read_and_the_rest_is_named(asked):
    ran = run("plan", "--flow", "eu")
    assert "Not read here: groups, policies, settle." in ran.stdout
    (given,) = asked
    assert given.words() == ("--mm2-config", "mm2.properties", "--source", "onprem", "--target", "cloud-eu")


def test_what_is_typed_wins_over_the_flow_and_that_is_said(asked):
    ran = run("status", "--flow", "us", "--target", "cloud-asia", "--mm2-config", "other.properties")
    (given,) = asked
    assert (str(given.mm2_config), given.connect_url) == ("other.properties", None), "how MM2 is set up is said once"
    assert (given.target, given.separator) == ("cloud-asia", "-")
    assert ClusterOptions(flow="eu", target="cloud-asia").words() == ("--flow", "eu", "--target", "cloud-asia")
    assert "onprem -> cloud-asia. Typed beside it: --mm2-config, --target." in ran.stdout


def test_a_flow_wins_over_the_environment_of_which_nothing_is_mixed_in(asked):
    run("status", "--flow", "eu", MM2_MIGRATE_TARGET="cloud-us", MM2_MIGRATE_SEPARATOR="_")
    (given,) = asked
    assert (given.target, given.separator) == ("cloud-eu", None)


def test_no_environment_chooses_a_flow(asked):
    ran = run("status", MM2_MIGRATE_FLOW="us")
    assert ran.exit_code == 2 and "Which flow? flows.yaml" in ran.stderr and not asked


@pytest.mark.parametrize("environment", [{}, {"MM2_MIGRATE_TARGET": "cloud-us"}], ids=["typed", "environment"])
def test_a_file_that_lies_there_is_not_read_where_something_says_where_the_clusters_are(asked, tmp_path, environment):
    kept(tmp_path, "no: flows")
    ran = run("status", *([] if environment else ["--target", "cloud-us"]), **environment)
    (given,) = asked
    assert given.words() == ("--target", "cloud-us") and "flows.yaml" not in ran.output


def test_the_only_flow_needs_no_name_where_nothing_else_is_given(asked, tmp_path):
    kept(tmp_path, ONE)
    assert run("status").stdout.startswith(SAID) and asked[0].target == "cloud-eu"
    assert run("apply", "c.plan", "--execute", "--request-timeout", "9").stdout.startswith(SAID)
    assert asked[1].request_timeout == 9.0


def test_several_flows_and_no_name_and_a_name_that_none_has_list_those_that_there_are(asked):
    several, unknown = run("apply", "c.plan"), run("apply", "c.plan", "--flow", "asia")
    assert several.exit_code == unknown.exit_code == 2 and not asked
    assert "Which flow? flows.yaml in this folder has 2: eu, us. Name one with --flow NAME" in several.stderr
    assert "--flow asia: flows.yaml has no flow of that name. It has eu, us." in unknown.stderr


def test_without_a_file_a_name_is_wrong_use_and_nothing_at_all_asks_where_the_clusters_are(asked, tmp_path):
    (tmp_path / "flows.yaml").unlink()
    named = run("status", "--flow", "eu")
    assert named.exit_code == 2 and "--flow eu: there is no flows.yaml in this folder." in named.stderr and not asked
    run("status")
    assert asked[0].words() == ()


@pytest.mark.parametrize(("text", "words"), [
    ("flows: [{name: eu, target: [a, b]}]", "flow eu: target takes one value, and has 2"),
    ("flows: [{name: eu, replicator: mm3}]", "flow eu: Invalid value for '--replicator'"),
    ("flows: 1", "has no list of flows"),
])  # fmt: skip
def test_a_file_that_is_wrong_is_refused_with_its_place(asked, tmp_path, text, words):
    kept(tmp_path, text)
    ran = run("status", "--flow", "eu")
    assert ran.exit_code == 2 and words in ran.stderr and "flows.yaml" in ran.stderr and not asked


def test_python_calls_a_command_with_what_is_typed_elsewhere_and_gets_its_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="--flow eu: there is no flows.yaml"):
        plan(PlanOptions(clusters=ReachedClusters(flow="eu")))
