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


TEXT = ("plan", "status", "apply c.plan", "rollback c.plan", "verify c.plan", "mm2 offsets")
DATA = tuple(f"{words} --format json" for words in ("status", "verify c.plan", "mm2 offsets"))


@pytest.mark.parametrize("words", [*TEXT, *DATA])
def test_every_command_takes_its_clusters_from_a_flow_and_says_first_which_it_is(asked, words):
    ran = run(*words.split(), "--flow", "eu")
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


def test_of_a_flow_only_where_the_clusters_are_is_read_and_what_is_typed_wins_and_both_is_said(asked):
    ran = run("plan", "--flow", "eu")
    assert "Not read here: groups, policies, settle." in ran.stdout
    assert asked.pop().words() == ("--mm2-config", "mm2.properties", "--source", "onprem", "--target", "cloud-eu")
    ran = run("status", "--flow", "us", "--target", "cloud-asia", "--mm2-config", "other.properties")
    (given,) = asked
    assert (str(given.mm2_config), given.connect_url) == ("other.properties", None), "how MM2 is set up is said once"
    assert (given.target, given.separator) == ("cloud-asia", "-")
    assert ClusterOptions(flow="eu", target="cloud-asia").words() == ("--flow", "eu", "--target", "cloud-asia")
    assert "onprem -> cloud-asia. Typed beside it: --mm2-config, --target." in ran.stdout


def test_no_environment_chooses_a_flow_and_of_it_nothing_is_mixed_into_one(asked):
    ran = run("status", MM2_MIGRATE_FLOW="us")
    assert ran.exit_code == 2 and "Which flow? flows.yaml" in ran.stderr and not asked
    run("status", "--flow", "eu", MM2_MIGRATE_TARGET="cloud-us", MM2_MIGRATE_SEPARATOR="_")
    (given,) = asked
    assert (given.target, given.separator) == ("cloud-eu", None)


@pytest.mark.parametrize("environment", [{}, {"MM2_MIGRATE_TARGET": "cloud-us"}], ids=["typed", "environment"])
def test_a_file_that_lies_there_is_not_read_where_something_says_where_the_clusters_are(asked, tmp_path, environment):
    (tmp_path / "flows.yaml").write_text("no: flows")
    ran = run("status", *([] if environment else ["--target", "cloud-us"]), **environment)
    (given,) = asked
    assert given.words() == ("--target", "cloud-us") and "flows.yaml" not in ran.output


def test_the_only_flow_needs_no_name_where_nothing_else_is_given(asked, tmp_path):
    (tmp_path / "flows.yaml").write_text(ONE)
    assert run("status").stdout.startswith(SAID) and asked[0].target == "cloud-eu"
    assert run("apply", "c.plan", "--execute", "--request-timeout", "9").stdout.startswith(SAID)
    assert asked[1].request_timeout == 9.0


def test_without_a_file_and_a_name_nothing_is_said_of_flows_and_python_gets_a_commands_error(asked, tmp_path):
    (tmp_path / "flows.yaml").unlink()
    run("status")
    assert asked[0].words() == ()
    # Python calls a command with what is typed elsewhere, and gets its error.
    with pytest.raises(UsageError, match="--flow eu: there is no flows.yaml"):
        plan(PlanOptions(clusters=ReachedClusters(flow="eu")))


@pytest.mark.parametrize(("text", "typed", "said"), [
    (FILE, "apply c.plan", "Which flow? flows.yaml in this folder has 2: eu, us. Name one with --flow NAME"),
    (FILE, "apply c.plan --flow asia", "--flow asia: flows.yaml has no flow of that name. It has eu, us."),
    ("", "status --flow eu", "--flow eu: there is no flows.yaml in this folder."),
    ("flows: [{name: eu, target: [a, b]}]", "status --flow eu", "flow eu: target takes one value, and has 2"),
    ("flows: [{name: eu, replicator: mm3}]", "status --flow eu", "flow eu: Invalid value for '--replicator'"),
    ("flows: 1", "status --flow eu", "has no list of flows"),
])  # fmt: skip
def test_a_name_that_no_flow_has_and_a_file_that_is_wrong_are_refused_with_their_place(
    asked, tmp_path, text, typed, said
):
    (tmp_path / "flows.yaml").unlink()
    if text:
        (tmp_path / "flows.yaml").write_text(text)
    ran = run(*typed.split())
    assert ran.exit_code == 2 and said in ran.stderr and "flows.yaml" in ran.stderr and not asked
