"""`flows plan`: which flows a file has, what is refused of it, and what a run makes of them."""

from contextlib import nullcontext
from pathlib import Path

import pytest
from click.testing import CliRunner

from migrate.cli.flows import read_flows
from migrate.cli.main import cli
from migrate.errors import ClusterError, ConfigError, Refused
from migrate.extras.flows import plan as command
from migrate.extras.flows.plan import flow_parameters, plan_command, planned_options
from migrate.extras.flows.text import MadePlan, made_lines
from migrate.plan.file import read_plan
from migrate.survey.survey import Clusters
from tests.unit.planscene import world

FLOW = "source: A, target: B, source_config: a.properties, target_config: b.properties, settle: 0"


def flows_file(tmp_path: Path, text: str) -> Path:
    for side in "ab":
        (tmp_path / f"{side}.properties").write_text("bootstrap.servers=127.0.0.1:1\n")
    path = tmp_path / "flows.yaml"
    path.write_text(text)
    return path


def flows(tmp_path: Path, text: str) -> list[tuple[str, ...]]:
    """The options of each flow, as they would be typed."""
    known = flow_parameters(plan_command())
    return [planned_options(flow).words(known) for flow in read_flows(flows_file(tmp_path, text))]


def run(tmp_path: Path, text: str, *more: str):
    words = ["flows", "plan", str(flows_file(tmp_path, text)), "--out-dir", str(tmp_path / "plans"), *more]
    return CliRunner().invoke(cli, words)


@pytest.fixture
def clusters(monkeypatch):
    """Every flow's clusters are a world in memory, but of a flow to X, whose target does not answer."""
    asked = []

    def edges(flow, *_):
        asked.append(flow.target.alias)
        if flow.target.alias == "X":
            raise ClusterError("X did not answer.", "Check it.")
        return nullcontext(Clusters(*world()))

    monkeypatch.setattr(command, "session_of_several_plans", lambda *_: nullcontext(edges))
    return asked


@pytest.mark.parametrize(("text", "words"), [
    # As they would be typed; lists repeat them.
    ("flows: [{name: o, source: A, target: B, groups: [a.*, -b], max_rereads: 5, failback: true, no-match: false}]",
     ["--source=A --target=B --group=a.* --group=-b --max-rereads=5 --failback"]),
    # Defaults hold for every flow that does not say otherwise; an empty list takes back what they exclude.
    ("defaults: {settle: 20, policies: {rewind: keep}}\nflows:\n- {name: o}\n- {name: p, rewind: block}\n",
     ["--settle=20 --rewind=keep", "--settle=20 --rewind=block"]),
    ("defaults: {exclude_groups: [a], group: x}\nflows: [{name: o, exclude_groups: [], groups: [b]}]", ["--group=b"]),
    # Files lie beside the file unless their paths say otherwise.
    ("flows: [{name: o, mm2_config: mm2.properties, groups_file: /etc/wave.txt}]",
     ["--mm2-config=HERE/mm2.properties --groups-file=/etc/wave.txt"]),
    # A name of digits is the one that is written there.
    ("flows: [{name: o, groups: [1.10, 12:30, 1_0], exclude_groups: 0042, commits_as_of: 2026-11-21, settle: 1}]",
     ["--group=1.10 --group=12:30 --group=1_0 --exclude-group=0042 --commits-as-of=2026-11-21 --settle=1"]),
])  # fmt: skip
def test_a_flow_of_the_file_says_what_would_be_typed(tmp_path, text, words):
    assert [" ".join(flow).replace(str(tmp_path), "HERE") for flow in flows(tmp_path, text)] == words


def test_a_flow_takes_nothing_from_the_environment(tmp_path, clusters, monkeypatch):
    for name, value in (("UNCOMMITTED", "earliest"), ("GROUP", "nobody"), ("TARGET", "X")):
        monkeypatch.setenv(f"MM2_MIGRATE_{name}", value)
    run(tmp_path, f"flows: [{{name: one, {FLOW}}}]")
    header = read_plan(tmp_path / "plans" / "one.plan").header
    assert "group" not in header.settings and header.settings.get("uncommitted") != "earliest" and clusters == ["B"]


@pytest.mark.parametrize(("text", "words"), [
    ("[]", "has no list of flows"),
    ("flows: []", "has no flow"),
    ("flows: [{name: o}]\nflwos: 1", "'flwos' is neither flows nor defaults"),
    ("flows: [{source: A}]", "flow 1 has no name"),
    ("flows: [{name: ../o}]", "flow 1 has no name that a file can have"),
    ("flows: [{name: o}, {name: O}]", "two flows named o"),
    ("flows: [{name: o, gruops: x}]", "flow o: 'gruops' is not an option of a flow"),
    ("flows: [{name: o, out: x}]", "flow o: 'out' is not an option of a flow"),
    ("flows: [{name: o, source: }]", "source has a value that is neither text nor a number: None"),
    ("flows: [{name: o, source: no}]", "source has a value that is neither text nor a number: False"),
    ("flows: [{name: o, failback: 'yes'}]", "takes true or false"),
    ("flows: [{name: o, groups: [a], group: [b]}]", "flow o has group twice"),
    ("flows: [{name: o, rewind: keep, policies: {rewind: set}}]", "flow o has rewind twice"),
    ("defaults: 3\nflows: [{name: o}]", "defaults is not a mapping"),
    ("flows:\n- name: o\n  name: p\n", "line 3: 'name' is there twice"),
])  # fmt: skip
def test_a_file_that_is_wrong_is_refused_with_its_place(tmp_path, text, words):
    with pytest.raises(ConfigError) as refused:
        flows(tmp_path, text)
    assert words in str(refused.value) and "flows.yaml" in str(refused.value) and refused.value.todo


@pytest.mark.parametrize(("entry", "words"), [
    ("rewind: kep", "flow two: Invalid value for '--rewind'"),
    ("accept: [nonsense]", "flow two: "),
    ("failback: true, source_down: true", "flow two: --failback and --source-down exclude each other"),
])  # fmt: skip
def test_the_options_of_every_flow_are_looked_at_before_any_cluster_is_asked(tmp_path, clusters, entry, words):
    ran = run(tmp_path, f"flows: [{{name: one, {FLOW}}}, {{name: two, {FLOW}, {entry}}}]")
    assert ran.exit_code == 2 and words in ran.stderr and not clusters and not (tmp_path / "plans").exists()


def test_a_plan_that_may_not_be_replaced_keeps_every_flow_from_being_planned(tmp_path, clusters):
    (tmp_path / "plans").mkdir()
    (tmp_path / "plans" / "two.plan").write_text("notes")
    ran = run(tmp_path, f"flows: [{{name: one, {FLOW}}}, {{name: two, {FLOW}}}]")
    assert ran.exit_code == 3 and not clusters


def test_each_flow_has_a_plan_of_its_own_and_a_line(tmp_path, clusters):
    ran = run(tmp_path, f"flows: [{{name: one, {FLOW}, groups: [g]}}, {{name: two, {FLOW}}}]")
    plans = [read_plan(tmp_path / "plans" / f"{name}.plan") for name in ("one", "two")]
    assert plans[0].header.settings["group"] == "g" and "group" not in plans[1].header.settings
    assert all(plan.short_fingerprint in ran.stdout for plan in plans) and clusters == ["B", "B"]


def no_worker(given, resolve=command.resolve_flow):
    if given.connect_url:
        raise ClusterError("X did not answer.", "Start it.")
    return resolve(given)


@pytest.mark.parametrize("lost", [
    FLOW.replace("target: B", "target: X"),
    FLOW.replace("source_config", "connect_url: 'http://127.0.0.1:1', source_config"),
], ids=["its target", "its Connect worker"])  # fmt: skip
def test_a_flow_that_fails_keeps_no_other_from_being_planned_and_the_worst_code_is_the_runs(
    tmp_path, clusters, monkeypatch, lost
):
    monkeypatch.setattr(command, "resolve_flow", no_worker)
    ran = run(tmp_path, f"flows: [{{name: lost, {lost}}}, {{name: good, {FLOW}}}]")
    assert ran.exit_code == 1 and "FAILED: X did not answer." in ran.stdout
    assert read_plan(tmp_path / "plans" / "good.plan").rows and not (tmp_path / "plans" / "lost.plan").exists()


def test_a_flow_that_is_refused_before_it_has_a_plan_failed_and_says_nothing_of_blocks(tmp_path, clusters, monkeypatch):
    def refused(*_):
        raise Refused("Too much would be fetched.", "Allow more.")

    monkeypatch.setattr(command, "made_plan", refused)
    ran = run(tmp_path, f"flows: [{{name: one, {FLOW}}}]")
    assert ran.exit_code == 1 and "FAILED: Too much would be fetched." in ran.stdout


@pytest.mark.parametrize(("text", "words"), [
    ("flows:\n- name: o\n  groups: []\n", "flows.yaml, line 3: flow o: groups is an empty list"),
    ("defaults:\n  policies:\n    topic: []\nflows: [{name: o}]", "line 3: defaults, policies: topics is an empty"),
])  # fmt: skip
def test_a_list_of_no_groups_is_refused_since_it_would_plan_every_group(tmp_path, clusters, text, words):
    ran = run(tmp_path, text)
    assert ran.exit_code == 2 and words in ran.stderr and "s: ['.*'] for every one." in ran.stderr and not clusters


def test_the_file_is_the_one_that_commands_take_a_flow_of_or_one_that_is_named_or_the_missing_one_is(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    ran = CliRunner().invoke(cli, ["flows", "plan"])
    assert ran.exit_code == 2 and "flows.yaml" in ran.stderr
    (tmp_path / "flows.yaml").write_text("flows: [{name: here}]")
    (tmp_path / "other.yaml").write_text("flows: [{name: o}]")
    for words, flow in ((), "here"), (("other.yaml",), "o"):
        ran = CliRunner().invoke(cli, ["flows", "plan", *words])
        assert ran.exit_code == 2 and f"flow {flow}: Where are the clusters?" in ran.stderr


MADE = (
    MadePlan("orders", "READY TO APPLY: 40 offsets of 4 groups", 0, "plans/orders.plan", "a" * 12),
    MadePlan("bills", "BLOCKED: 2 of 9 groups; 7 others can be applied", 3, "p/bills.plan", "b" * 12),
    MadePlan("audit", "FAILED: C did not answer in 30 s. Check bootstrap.servers.", 1),
)  # fmt: skip


@pytest.mark.parametrize("width", [80, 200])
def test_every_flow_has_its_verdict_in_full_and_its_plan_and_one_that_failed_is_counted_and_has_none_to_show(width):
    lines = list(made_lines(MADE, width, colour=False))
    told = " ".join(" ".join(lines).split())
    for each in MADE:
        assert each.flow in told and each.verdict in told and each.path in told and each.fingerprint in told
    assert all(len(line) <= width for line in lines)
    assert "2 plans written, 1 flow failed: no plan." in told
    assert "mm2-migrate show plans/orders.plan p/bills.plan" in told
    assert list(made_lines(MADE[2:], 80, colour=False))[-1] == "0 plans written, 1 flow failed: no plan."
