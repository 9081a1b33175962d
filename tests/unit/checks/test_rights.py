"""Rights: what each command needs, what is missing, and that docs/rights.md says the same."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.checks.rights import (
    CLUSTER_NAME,
    COMMANDS,
    RIGHTS,
    ResourceKind,
    Resources,
    Seen,
    grant_text,
    missing,
    needed,
    resources_of,
)
from migrate.mm2.flow import Mm2Home, Mm2Runtime
from migrate.model import Failure, Side
from tests.unit.rightscene import FLOW, REFUSED, granted

RIGHTS_PAGE = Path(__file__).parents[3] / "docs" / "rights.md"


def grants(*asked):
    return [grant_text(right, names) for right, names in missing(*asked).items()]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("side", Side)
def test_with_all_rights_none_is_missing_and_without_any_each_is_named(command, side):
    resources = resources_of(FLOW, side, ["g"], ["t"], reads_offsets=True)
    assert missing(command, side, resources, granted(resources)) == {}
    lacking = missing(command, side, resources, granted(resources, frozenset()))
    wanted = [r for r in needed(command, side) if r.resources in resources]
    assert {right.command for right in needed(command, side)} <= {command}
    assert list(lacking) == wanted
    assert all(str(right.operation) in grant_text(right, names) for right, names in lacking.items())


def test_resources_are_called_what_their_side_calls_them():
    source, target = (resources_of(FLOW, side, ["g"], ["t"]) for side in (Side.SOURCE, Side.TARGET))
    assert (source[Resources.TOPICS], target[Resources.TOPICS]) == (["t"], ["A.t"])
    assert source[Resources.SYNCS] == ["mm2-offset-syncs.B.internal"]
    assert Resources.SYNCS not in target
    assert target[Resources.POSITIONS] == ["mm2-offsets.A.internal"]
    assert source[Resources.CLUSTER] == [CLUSTER_NAME]


def test_on_the_way_back_mm2s_syncs_lie_on_the_side_that_is_written():
    back = FLOW.reversed()
    resources = resources_of(back, Side.TARGET, ["g"], ["A.t"])
    assert resources[Resources.TOPICS] == ["t"]
    assert Resources.SYNCS in resources
    assert grants("plan", Side.TARGET, resources, granted(resources, frozenset({"DESCRIBE"}))) == [
        "READ on topic t",
        "READ on topic mm2-offset-syncs.B.internal",
    ]


def test_what_a_cluster_refuses_to_describe_is_missing():
    resources = resources_of(FLOW, Side.SOURCE, ["g"], ["t"])
    silent = Seen(None, {"g": Failure("GROUP_AUTHORIZATION_FAILED", "no")}, {"t": REFUSED})
    assert grants("apply", Side.SOURCE, resources, silent) == [
        "DESCRIBE on group g",
        "DESCRIBE on topic t",
    ]


def test_what_a_cluster_does_not_report_is_not_visible_and_neither_granted_nor_missing():
    resources = resources_of(FLOW, Side.SOURCE, ["g"], ["t"])
    late = Failure("REQUEST_TIMED_OUT", "no answer", retriable=True)
    silent = Seen(None, {"g": late}, {"t": late})
    assert grants("apply", Side.SOURCE, resources, silent) == []
    assert grants("apply", Side.SOURCE, resources, silent, None) == ["DESCRIBE on group g", "DESCRIBE on topic t"]
    assert "DESCRIBE on the cluster" in grants("plan", Side.SOURCE, resources, silent, None)


def test_where_no_offsets_topic_of_mm2_is_known_no_right_on_it_is_asked_for():
    in_worker = replace(FLOW, runtime=Mm2Runtime(home=Mm2Home.CONNECT))
    assert in_worker.connect_offsets_topics == ()
    assert resources_of(in_worker, Side.TARGET, [], [])[Resources.POSITIONS] == []


def test_the_page_of_rights_lists_exactly_these():
    text = RIGHTS_PAGE.read_text()
    listed = set(re.findall(r"^\| `([^`]+)` \| (source|target) \| ([A-Z_]+) \| ([^|]+?) \|", text, re.MULTILINE))
    wanted = {(r.command, str(r.side), str(r.operation), str(r.resources)) for r in RIGHTS}
    assert listed == wanted


def test_every_kind_of_resource_is_one_that_acls_know():
    assert {resource.kind for resource in Resources} == set(ResourceKind)
