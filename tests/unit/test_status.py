"""One look at a flow, and looking until all is ready: the verdicts are those of `plan`, the bars never fall."""

import json

import pytest

from migrate.connectoffsets import Positions
from migrate.errors import ClusterError
from migrate.filters import Filters
from migrate.lag import Lag
from migrate.matching import Tail
from migrate.mm2config import client_flow
from migrate.model import Level, LogRange, TopicPartition
from migrate.pace import Pace
from migrate.plainmirror import News
from migrate.policies import Policies, Waiver
from migrate.showstatus import left_text, progress_line, status_lines
from migrate.showtable import Page
from migrate.status import ONLY_PLAN_TELLS, status_of
from migrate.statusdocument import status_document
from migrate.statuswatch import watch_until_ready
from migrate.survey import Clusters, PlanRequest
from migrate.surveyor import take_survey
from migrate.watching import Watch
from tests.fakes import ALIVE, FakeClock, FakeComparer, NoProgress
from tests.unit.test_planning import SYNCS, planned, world

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


def looked(source, target, mirror, comparer=None, settle=15.0, down="", policies=None, clock=None, filters=None):
    properties = {"bootstrap.servers": "x:1"}
    flow = client_flow(properties, properties, "A", "B")
    request = PlanRequest(flow, filters or Filters(), policies or Policies(), bool(down), settle, {})
    clock = clock or FakeClock()
    asked = None if down else source
    survey = take_survey(
        request, Clusters(asked, target, asked, target, mirror, comparer or FakeComparer()), clock, NoProgress()
    )
    positions = Positions("p", mirror.copied_to) if down else survey.positions

    def news(side, topic):
        return News(clock.now_ms() - (12_000 if topic == SYNCS else 5_000))

    def links(place, source_end, target_end):
        return tuple((s.source_offset, s.target_offset) for s in mirror.history.get((place.topic, place.partition), []))

    return status_of(request, survey, positions, news, links, clock.now_ms(), down)


def text(status, width=100, **more):
    return "\n".join(status_lines(status, Page("", width), **more))


def test_a_flow_at_rest_is_ready():
    status = looked(*world())
    assert status.is_ready and status.lag == Lag(0, True)
    assert [(t.source_topic, t.source_end, t.copied, t.drained) for t in status.topics] == [
        ("t", 200, 200, True),
        ("u", 100, 100, True),
    ]
    said = text(status)
    assert said.startswith("READY: ") and "newest offset sync 12 s ago; newest checkpoint 5 s ago" in said
    assert "no record written in 15 s" in said and "NOTHING IS MISSING" in said


def test_status_blocks_what_plan_blocks_but_for_what_only_plan_can_tell():
    source, target, mirror = world()
    source.states["g"] = ALIVE
    target.commit("h", "A.u", 0, 100)
    comparer = FakeComparer(tails={("t", 1): Tail(3, 99, 1_000)})
    mirror.copied_to = {}
    status = looked(source, target, mirror, comparer)
    plan = planned(source, target, mirror, comparer=comparer)
    assert {(c.check, c.subject) for c in status.blocks} == {
        (c.check, c.subject) for c in plan.blocks() if c.check not in ONLY_PLAN_TELLS
    }
    assert {c.check for c in status.blocks} == {"source-group-stopped", "not-drained"}


def test_what_keeps_plan_from_being_clean_is_told_with_what_to_do():
    source, target, mirror = world()
    source.states["g"] = ALIVE
    mirror.copied_to = {}
    status = looked(source, target, mirror, FakeComparer(tails={("t", 1): Tail(3, 99, FakeClock().now_ms() - 80_000)}))
    said = " ".join(text(status).split())
    assert said.startswith("NOT READY: not-drained, source-group-stopped")
    assert "GROUPS ALIVE g: Stable on A, 1 member: app@10.0.0.7" in said
    assert "t -> A.t 2 200 197 3 95 s no copying" in said  # 80 s and the settle time
    assert "Stop these consumers" in said and "on A: 1 alive (1 member); on B: none alive, 0 with offsets" in said


def test_a_waiver_makes_it_ready_as_it_makes_the_plan_clean():
    source, target, mirror = world()
    source.states["g"] = ALIVE
    status = looked(source, target, mirror, policies=Policies(waivers=(Waiver("source-group-stopped", "g"),)))
    assert status.is_ready and "ACCEPTED  source-group-stopped" in text(status)


def test_an_estimated_lag_is_marked_and_never_ready():
    source, target, mirror = world()
    source.ranges[U0], mirror.copied_to = LogRange(0, 500), {}
    status = looked(source, target, mirror, FakeComparer(tails={("u", 0): Tail(None)}))
    (topic,) = [t for t in status.topics if t.source_topic == "u"]
    assert topic.lag == Lag(400) and topic.drained is None and not status.is_ready
    assert "~400" in text(status)


def test_with_the_source_down_what_it_alone_knows_is_a_question_mark():
    source, target, mirror = world()
    from migrate.mirror import CheckpointKey, CheckpointRecord

    mirror.latest = {CheckpointKey("g", "A.t", p): CheckpointRecord(50, 50, "", p, 1) for p in (0, 1)}
    status = looked(source, target, mirror, down="source A (x:1) cannot be reached.")
    assert not status.is_ready and [c.check for c in status.blocks] == ["source-down"]
    (topic,) = status.topics
    assert (topic.source_end, topic.copied, topic.lag.records, topic.drained) == (None, 200, None, None)
    said = " ".join(text(status, 120).split())
    assert said.startswith("A DOES NOT ANSWER; NOT READY: source-down")
    assert "cannot be reached" in said and "Producers not known" in said and "on A: not known" in said
    assert "t -> A.t 2 ? 200 ? ? ? not known" in said
    assert status_document(status)["source_down"] == "source A (x:1) cannot be reached."


def test_with_the_source_down_and_no_checkpoint_nothing_was_looked_at_and_nothing_is_ready():
    status = looked(*world(), down="source A (x:1) cannot be reached.")
    assert not status.blocks and not status.is_ready
    assert text(status).startswith("A DOES NOT ANSWER, and B has no checkpoint")


def test_where_nothing_is_to_be_moved_that_is_said():
    status = looked(*world(), filters=Filters.from_options(groups=("x.*",)))
    assert status.commits == 0 and text(status).startswith("NOTHING TO MOVE")


def test_names_that_would_move_the_cursor_are_shown_escaped():
    source, target, mirror = world()
    source.commit("evil\x1b[2J", "t", 0, 5)
    source.states["evil\x1b[2J"] = ALIVE
    assert "\x1b" not in text(looked(source, target, mirror))


def test_the_document_is_json_and_holds_every_partition_group_and_check():
    status = looked(*world())
    watch = Watch()
    watch.take(status, 0.0)
    document = json.loads(json.dumps(status_document(status, None, watch.bars, watch.time_left())))
    assert document["ready"] is True and document["time_left"]["pace"] == "done"
    assert [len(t["partitions"]) for t in document["topics"]] == [2, 1]
    assert [g["group"] for g in document["groups"]] == ["g", "h"]
    assert {c["check"] for c in document["checks"]} >= {"producers-stopped", "not-drained"}
    assert document["topics"][0]["progress"] == {"done": 0, "total": 0}


# --- watching ---------------------------------------------------------------------------------------------


class Draining:
    """A flow of which MM2 copies `rate` records of t-0 a second from `begins` on; `lag` are left at the start."""

    def __init__(self, lag=1000, rate=50.0, begins=10.0, fails=(), wobble=0):
        self.source, self.target, self.mirror = world()
        self.clock, self.lag, self.rate, self.begins = FakeClock(), lag, rate, begins
        self.source.ranges[T0] = LogRange(0, 100 + lag)
        self.mirror.copied_to, self.looks, self.fails, self.wobble = {}, [], fails, wobble

    def left(self):
        return max(0, self.lag - int(self.rate * max(0.0, self.clock.waited - self.begins)))

    def look(self, settle):
        self.looks.append(settle)
        if len(self.looks) in self.fails:
            self.clock.wait(1.0)
            raise ClusterError("target B cannot be reached.", "Start it.")
        left = self.left()
        told = left + self.wobble * (len(self.looks) % 2) if left else 0
        self.target.ranges[TopicPartition("A.t", 0)] = LogRange(0, 100 + self.lag - left)
        comparer = FakeComparer(tails={("t", 0): Tail(told)})
        return looked(self.source, self.target, self.mirror, comparer, settle, clock=self.clock)


def watched(flow, settle=15.0, timeout=None):
    told = []

    def tell(said):
        told.append((said, dict(said.watch.bars), said.watch.time_left()))

    status = watch_until_ready(flow.look, settle, timeout, flow.clock, tell)
    return status, told


def test_a_watch_ends_by_itself_when_the_last_record_is_copied_and_looked_once_more_over_the_settle_time():
    flow = Draining()
    status, _ = watched(flow)
    assert status.is_ready and flow.left() == 0
    assert set(flow.looks[:-1]) == {1.0} and flow.looks[-1] == 15.0
    assert 30 <= flow.clock.waited <= 30 + 2 + 1 + 15 + 1


@pytest.mark.parametrize("wobble", [0, 120])
def test_what_is_done_never_falls_even_if_an_estimate_takes_something_back(wobble):
    _, told = watched(Draining(wobble=wobble))
    done = [(bars["t"].done, bars["t"].percent) for _, bars, _ in told]
    assert done == sorted(done) and len(set(done)) > 5
    ready = [percent for (_, percent), (said, _, _) in zip(done, told, strict=True) if said.status.is_ready]
    assert set(ready) == {100} and all(percent < 100 for _, percent in done[: -len(ready)])
    assert done[-1][0] == 1000 + wobble


def test_the_time_left_is_told_once_it_can_be():
    _, told = watched(Draining())
    paces = [left.pace for _, _, left in told]
    assert paces[0] is Pace.TOO_EARLY and Pace.STALLED in paces and paces[-1] is Pace.DONE
    halfway = [(left.seconds, said.status) for said, _, left in told if left.pace is Pace.FALLING]
    for seconds, status in halfway[len(halfway) // 2 :]:
        assert seconds == pytest.approx(status.lag.records / 50, rel=0.5)
    said = left_text(told[len(told) // 2][2], told[len(told) // 2][0].status.lag)
    assert "records left: about" in said and "/s)" in said


def test_what_a_glance_takes_for_ready_and_is_not_goes_on_being_watched():
    flow = Draining(lag=0)
    look = flow.look

    def stubborn(settle):
        if settle == 15.0 and flow.looks.count(15.0) < 2:
            flow.source.states["g"] = ALIVE
        else:
            flow.source.states["g"] = flow.source.states["h"]
        return look(settle)

    flow.look = stubborn
    status, told = watched(flow)
    assert status.is_ready and flow.looks.count(15.0) == 3
    assert any("whether it stays so" in said.note for said, _, _ in told)


def test_a_watch_gives_up_when_its_time_is_up():
    flow = Draining(rate=0.0)
    status, _ = watched(flow, timeout=40.0)
    assert not status.is_ready and flow.clock.waited == pytest.approx(40, abs=2)


def test_a_cluster_that_does_not_answer_for_a_while_is_asked_again():
    flow = Draining(fails=(3, 4))
    status, told = watched(flow)
    assert status.is_ready and sum("cannot be reached. Trying again." in said.note for said, _, _ in told) == 2


def test_a_cluster_that_never_answered_is_an_error_at_once():
    flow = Draining(fails=(1,))
    with pytest.raises(ClusterError):
        watched(flow)


def test_without_a_terminal_each_look_is_one_line():
    _, told = watched(Draining())
    said, bars, left = told[len(told) // 2]
    line = progress_line(said.status, bars, left_text(left, said.status.lag))
    assert "\n" not in line and "t " in line and "%" in line and "not ready: not-drained" in line
    last, bars, left = told[-1]
    assert progress_line(last.status, bars, left_text(left, last.status.lag)) == "everything is copied; ready"


def test_a_watch_shows_bars():
    _, told = watched(Draining())
    said, bars, _ = told[len(told) // 2]
    screen = text(said.status, progress=bars, left="x left")
    assert "[#" in screen and ".]" in screen and "To copy      x left" in screen
    last, bars, _ = told[-1]
    assert "[####################] 100% copied" in text(last.status, progress=bars)


def test_a_glance_says_that_it_did_not_watch_producers_for_long():
    source, target, mirror = world()
    status = looked(source, target, mirror, settle=0.0)
    assert [(c.level, c.counts_as) for c in status.checks if c.check == "producers-stopped"] == [
        (Level.NOT_VISIBLE, Level.WARN)
    ]
    assert "not watched long enough" in text(status)
