"""The way back from a mandate, where a write of it never got an answer: the target is asked first."""

from contextlib import contextmanager

import pytest

import migrate.extras.follow.rollback as rollback_module
from migrate.apply.journal import Journal
from migrate.errors import ClusterError
from migrate.extras.follow.rollback import undo_of_mandate
from migrate.model import Failure
from migrate.session.options import SessionOptions
from tests.extras.follow.followscene import T0, FollowScene
from tests.fakes import Crash, FakeApplyEdges, NoProgress, Script


@pytest.fixture
def scene(tmp_path, monkeypatch, request):
    scene = FollowScene(tmp_path, changes={"group": ("g",), "group_map": getattr(request, "param", ())})
    scene.asked = []

    @contextmanager
    def edges(flow, progress, needs_java, options):
        scene.asked.append(needs_java)
        yield FakeApplyEdges(scene.target)

    monkeypatch.setattr(rollback_module, "apply_session", edges)
    scene.look()
    return scene


def undone(scene):
    scene.die()
    journal = Journal(scene.journal.path, scene.plan.fingerprint, scene.clock.now_ms)
    session = SessionOptions(1.0)
    return undo_of_mandate(scene.plan, journal.read(), (), scene.flow, NoProgress(), session, "refuse")


def killed_amid_a_write(scene):
    scene.source.commit("g", "t", 0, 70)
    scene.target.crash_after = 1
    with pytest.raises(Crash):
        scene.look()


def test_without_a_doubt_nobody_is_asked(scene):
    assert {r.target_partition: r.target_prior for r in undone(scene).rows}[T0] == 55 and scene.asked == []


def test_of_a_write_in_doubt_what_stands_there_is_taken_back_and_java_is_not_needed_without_metadata(scene):
    killed_amid_a_write(scene)
    assert {r.target_partition: r.target_prior for r in undone(scene).rows}[T0] == 70 and scene.asked == [False]


@pytest.mark.parametrize("scene", [(("g", "g-eu", False),)], indirect=True)
def test_of_a_renamed_group_the_new_name_is_asked(scene):
    scene.target.commit("g", "A.t", 0, 7)
    scene.source.commit("g", "t", 0, 70)

    def die():
        raise Crash

    scene.target.when("alter", die)
    with pytest.raises(Crash):
        scene.look()
    rows = undone(scene).rows
    assert {r.target_partition: (r.target_group, r.target_prior) for r in rows}[T0] == ("g-eu", 55)


def test_a_target_that_does_not_tell_is_an_error_and_no_guess(scene):
    killed_amid_a_write(scene)
    scene.target.script("commits", "g", Script(Failure("GROUP_AUTHORIZATION_FAILED", "no")))
    with pytest.raises(ClusterError, match="could not be read"):
        undone(scene)
