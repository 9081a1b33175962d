"""`plan`: what it refuses before it reads, what it writes, and its choices as the plan's header has them."""

from contextlib import contextmanager, nullcontext

import pytest

from migrate.cli import plan as command
from migrate.cli.choices import MatchingOptions, MovedGroupOptions, PolicyOptions
from migrate.cli.options import ReachedClusters
from migrate.errors import Refused, UsageError
from migrate.mm2.config_file import client_flow
from migrate.plan.file import read_plan
from migrate.survey.policies import CommitsFrom
from migrate.survey.survey import Clusters
from tests.fakes import FakeClock, NoProgress
from tests.unit.planscene import world

PROPERTIES = {"bootstrap.servers": "x:1"}
UNDECIDED = PolicyOptions()
FROM_TOPIC = CommitsFrom.CONSUMER_OFFSETS


@pytest.fixture
def flows(monkeypatch):
    """Plans are made of a world in memory; the flows that its clusters were asked for by."""
    source, target, mirror = world()
    asked = []
    clusters = Clusters(source, target, mirror)
    monkeypatch.setattr(command, "plan_session", lambda flow, *_: asked.append(flow) or nullcontext(clusters))
    monkeypatch.setattr(command, "SystemClock", FakeClock)
    return asked


def made(out, policies=UNDECIDED, groups=(), no_match=True, by="records", max_fetch=None, **options):
    matching = MatchingOptions(no_match=no_match, by=by, match_limit=100, max_fetch=max_fetch)
    asked = command.PlanOptions(
        out=out, clusters=ReachedClusters(), groups=MovedGroupOptions(groups=groups), policies=policies,
        matching=matching, **options,
    )  # fmt: skip
    return command.make_plan(asked, client_flow(PROPERTIES, PROPERTIES, "A", "B"), NoProgress())


def test_ctrl_c_while_spark_ends_leaves_the_plan(flows, tmp_path, monkeypatch):
    """Ending it may take seconds: the first plan keeps the classes that it has loaded."""

    @contextmanager
    def slow_to_end(flow, *_):
        source, target, mirror = world()
        yield Clusters(source, target, mirror)
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "plan_session", slow_to_end)
    with pytest.raises(KeyboardInterrupt):
        made(tmp_path / "c.plan")
    assert read_plan(tmp_path / "c.plan").rows


def settings_of(out, **options):
    """The settings of the plan that was made, which is the one in the file."""
    plan = made(out, **options)
    assert plan.rows and read_plan(out).fingerprint == plan.fingerprint
    return dict(plan.header.settings)


def test_where_commits_come_from_and_as_of_when_is_in_the_header_unless_coordinators_are_asked(flows, tmp_path):
    assert "commits-from" not in settings_of(tmp_path / "c.plan")
    assert settings_of(tmp_path / "d.plan", commits_from=FROM_TOPIC)["commits-from"] == "consumer-offsets"
    earlier = settings_of(tmp_path / "e.plan", commits_as_of="2023-11-14T22:00:00+01:00")
    assert earlier["commits-from"] == "consumer-offsets"
    assert earlier["commits-as-of"] == "2023-11-14T21:00:00.000Z"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"commits_as_of": "2026-11-23T22:00:00Z"}, "lies in the future"),
        ({"commits_as_of": "yesterday"}, "is not a time"),
        ({"commits_as_of": "2023-11-14T22:00:00"}, "is not a time"),
        ({"commits_as_of": "2023-11-14T21:00:00Z", "source_down": True}, "exclude each other"),
        ({"failback": True, "source_down": True}, "exclude each other"),
        ({"commits_from": FROM_TOPIC, "source_down": True}, "exclude each other: the topic is on the source"),
    ],
)
def test_what_cannot_be_planned_is_refused_before_any_cluster_is_asked(flows, tmp_path, options, words):
    with pytest.raises(UsageError, match=words):
        made(tmp_path / "c.plan", **options)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(Refused):
        made(tmp_path / "notes.txt")
    assert not flows and (tmp_path / "notes.txt").read_text() == "mine"


def test_choices_are_in_the_header_by_the_names_of_their_options_and_those_not_made_are_not(flows, tmp_path):
    policies = PolicyOptions(untranslatable=("topic-not-replicated=skip",), max_rereads=7)
    chosen = {"policies": policies, "groups": ("g", "h{1, 2}"), "require_signatures": 2}
    assert settings_of(tmp_path / "c.plan", **chosen) == {
        "group": "g 'h{1, 2}'", "rewind": "block", "uncommitted": "ignore",
        "untranslatable": "block, topic-not-replicated=skip", "max-rereads": "7", "settle": "15",
        "require-signatures": "2", "no-match": "yes",
    }  # fmt: skip


def test_the_limits_of_comparing_and_what_else_rows_are_placed_by_are_settings_only_where_they_count(flows, tmp_path):
    def limits(**options):
        settings = settings_of(tmp_path / "c.plan", no_match=False, **options)
        return {name: settings[name] for name in ("no-match", "match-limit", "max-fetch", "by") if name in settings}

    assert limits() == {"match-limit": "100"}
    assert limits(max_fetch=5) == {"match-limit": "100", "max-fetch": "5"}
    assert limits(max_fetch=5, source_down=True) == {}
    assert limits(by="timestamp")["by"] == "timestamp"
