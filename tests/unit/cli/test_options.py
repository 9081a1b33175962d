"""The shared options: what the environment may set, what goes together, and what is refused before anything is read."""

import re
from pathlib import Path

import pytest

from migrate.cli.choices import PolicyOptions
from migrate.cli.main import cli
from migrate.cli.options import NEVER_FROM_ENVIRONMENT
from migrate.survey.policies import Rewind, Uncommitted
from tests.facts import options as cluster_options
from tests.unit.commands import clusters, run

REFERENCE = (Path(__file__).parents[3] / "docs/commands.md").read_text()


def test_the_reference_names_what_the_environment_does_not_set():
    named = re.search(r"those\s+that affect data \(([^)]+)\)", REFERENCE)
    assert named and set(re.findall(r"`(--[a-z-]+)`", named[1])) == NEVER_FROM_ENVIRONMENT
    assert {"--source-unreachable", "--consumers-ran"} <= NEVER_FROM_ENVIRONMENT


@pytest.mark.parametrize("command", ["show", "verify"])
def test_no_environment_chooses_the_rows_that_are_looked_at(command):
    """`verify` exits 0 over the rows that were chosen, and that opens the gate."""
    chosen = {p.name: p.envvar for p in cli.commands[command].params if p.name in ("groups", "only", "limit")}
    assert chosen and not any(chosen.values())


def test_an_option_that_does_not_affect_data_is_taken_from_the_environment(tmp_path):
    wanted = tmp_path / "absent.properties"
    shown = run("status", MM2_MIGRATE_MM2_CONFIG=str(wanted), MM2_MIGRATE_SOURCE="A", MM2_MIGRATE_TARGET="B")
    assert shown.exit_code == 2 and str(wanted) in shown.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["plan"], "Where are the clusters?"),
        (["plan", "--mm2-config", "x.properties"], "Which flow?"),
        (["plan", "--mm2-config", "x.properties", "--source", "A", "--target", "A"], "are both 'A'"),
        (["plan", "--mm2-config", "x.properties", "--source", "A", "--target", "B"], "x.properties"),
    ],
)
def test_wrong_use_exits_2_with_one_paragraph(words, said):
    shown = run(*words)
    assert shown.exit_code == 2
    assert said in shown.stderr and "Traceback" not in shown.stderr
    assert len(shown.stderr.strip().splitlines()) == 1


def test_a_misspelt_waiver_is_refused_before_anything_is_read(tmp_path):
    shown = run("plan", *clusters(tmp_path), "--accept", "source-group-stoped")
    assert shown.exit_code == 2 and "source-group-stopped" in shown.stderr


@pytest.mark.parametrize("given", ["lots", "-5M", "1e9"])
def test_a_budget_that_is_no_number_of_bytes_is_refused_with_examples(given):
    shown = run("plan", "--max-fetch", given)
    assert shown.exit_code == 2
    assert f"'--max-fetch': invalid size '{given}': use for example 500M, 2G or 1048576." in shown.stderr


def test_the_cluster_options_are_printed_as_they_would_be_typed_without_those_that_were_not_given():
    given = cluster_options(mm2_config=Path("mm2.properties"), source="A", target="B", offset_syncs_location="target")
    assert given.words() == (
        "--mm2-config", "mm2.properties", "--source", "A", "--target", "B", "--offset-syncs-location", "target",
    )  # fmt: skip


@pytest.mark.parametrize("where", ["mm2_config", "connect_url", "strimzi", "source_config", "target_config"])
def test_any_description_of_a_cluster_says_where_it_is_and_an_alias_alone_does_not(where):
    assert cluster_options(**{where: Path("x")}).says_where
    assert not cluster_options(source="A", target="B").says_where


def test_policies_are_what_a_reviewer_decided():
    policies = PolicyOptions(
        accept=("not-drained:t",), untranslatable=("earliest", "topic-not-replicated=skip"), rewind=Rewind.KEEP,
        max_rereads=7,
    ).policies()  # fmt: skip
    assert (policies.rewind, policies.uncommitted, policies.max_rereads) == (Rewind.KEEP, Uncommitted.IGNORE, 7)
    assert str(policies.untranslatable) == "earliest" and len(policies.untranslatable_by_reason) == 1
    assert len(policies.waivers) == 1
