"""The way back from what was written under a mandate: each place to its first state, and only where ours stands."""

import pytest

from migrate.errors import ClusterError
from migrate.model import Decision
from migrate.plan.plan import RESTORE_MOVED
from migrate.show.apply import apply_lines
from migrate.show.next_steps import Typed
from tests.extras.follow.followscene import DENIED, T0, T1, FollowScene


@pytest.fixture
def scene(tmp_path, request):
    """A mandate for g."""
    return FollowScene(tmp_path, changes={"group": ("g",), "group_map": getattr(request, "param", ())})


def test_it_goes_from_our_last_write_to_what_stood_there_first_or_to_nothing_and_without_a_doubt_asks_nobody(scene):
    scene.target.commit("g", "A.t", 0, 5)
    scene.look()
    scene.source.commit("g", "t", 0, 70)
    scene.look()
    undo = scene.undo()
    assert [(r.target_partition, r.decision, r.target_prior, r.target_offset, r.reason) for r in undo.rows] == [
        (T0, Decision.SET, 70, 5, "was-there"), (T1, Decision.REMOVE, 60, None, "was-absent"),
    ]  # fmt: skip
    assert (undo.rows[0].source_topic, undo.header.kind) == ("t", "undo")
    assert undo.header.undoes == scene.plan.fingerprint and scene.asked == []


@pytest.mark.parametrize("metadata", ["", "m"])
def test_of_a_write_in_doubt_what_stands_there_is_taken_back_and_only_metadata_needs_java(scene, metadata):
    scene.target.commit("g", "A.t", 1, 3, metadata)
    scene.look()
    scene.kill_amid_a_write()
    assert {r.target_partition: r.target_prior for r in scene.undo().rows}[T0] == 70
    assert scene.asked == [bool(metadata)]


@pytest.mark.parametrize("scene", [(("g", "g-eu", False),)], indirect=True)
def test_of_a_renamed_group_the_new_name_is_asked(scene):
    scene.target.commit("g", "A.t", 0, 7)
    scene.look()
    scene.kill_amid_a_write(is_made=False)
    rows = scene.undo().rows
    assert {r.target_partition: (r.target_group, r.target_prior) for r in rows}[T0] == ("g-eu", 55)


def test_a_target_that_does_not_tell_is_an_error_and_no_guess(scene):
    scene.look()
    scene.kill_amid_a_write()
    scene.target.script("commits", "g", DENIED)
    with pytest.raises(ClusterError, match="could not be read"):
        scene.undo()


def test_an_offset_that_moved_since_is_said_to_be_set_by_follow_and_moved_by_nobody_in_particular(scene):
    def told(moved):
        result = scene.rollback(moved=moved, execute=False)
        text = "\n".join(apply_lines(result, Typed("rollback", "mandate.plan", ()), "f" * 64, 1000, False))
        assert "apply set" not in text and "since the apply" not in text and "a consumer ran" not in text
        return text

    scene.look()
    scene.target.commit("g", "A.t", 0, 75)
    refused = told("refuse")
    assert "expected 55 (what follow set), seen 75: moved on by 20 since: a consumer or another client" in refused
    assert "offsets have moved since follow set them" in refused.lower()
    assert "follow set 55, now 75" in told(RESTORE_MOVED)
