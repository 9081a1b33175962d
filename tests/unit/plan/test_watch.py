"""Looking until all is ready: bars never fall, nothing old is drawn as new, the time left is no number by chance."""

import json
import re
from dataclasses import replace
from pathlib import Path
from random import Random
from threading import Event

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.cli.status import Teller
from migrate.errors import ClusterError
from migrate.match.protocol import Tail
from migrate.model import LogRange, TopicPartition
from migrate.plan.watch import Pace, Reading, Watch, time_left, watch_until_ready
from migrate.progress import LineProgress
from migrate.show.plan_table import Page
from migrate.show.status import first_look_lines, left_text, progress_line, status_document, status_lines
from migrate.silence import asking, heard, longest_silence
from migrate.survey.filters import Filters
from migrate.text import Colour, paint
from migrate.watch import BackgroundLook, LastStep, Waiting, Wakeful
from tests.fakes import ALIVE, EMPTY, FakeClock, FakeComparer
from tests.unit.planscene import checkpoints, world
from tests.unit.statusscene import looked, text

GREEN = paint("|", Colour.GREEN, True).split("|")[0]


class Draining:
    """A flow of which MM2 copies `rate` records of t-0 a second from ten seconds on; `lag` are left at the start.

    Looks whose numbers (from 1) are in `fails` fail; those in `silent` get no answer for so many seconds.
    """

    def __init__(self, lag=1000, rate=50.0, fails=(), wobble=0, silent=None, filters=None):
        self.silent, self.filters, self.fails, self.wobble = silent or {}, filters, fails, wobble
        self.source, self.target, self.mirror = world()
        self.clock, self.lag, self.rate, self.looks = FakeClock(), lag, rate, []
        self.source.ranges[TopicPartition("t", 0)] = LogRange(0, 100 + lag)
        self.mirror.last_copied_offset = {}

    def left(self):
        return max(0, self.lag - int(self.rate * max(0.0, self.clock.waited - 10.0)))

    def look(self, settle):
        self.looks.append(settle)
        if len(self.looks) in self.fails:
            self.clock.wait(1.0)
            raise ClusterError("target B cannot be reached.", "Start it.")
        left = self.left()
        told = left + self.wobble * (len(self.looks) % 2) if left else 0
        self.target.ranges[TopicPartition("A.t", 0)] = LogRange(0, 100 + self.lag - left)
        comparer = FakeComparer(tails={("t", 0): Tail(told)})
        return looked(self.source, self.target, self.mirror, comparer, settle, clock=self.clock, filters=self.filters)


class Looked:
    """A look whose questions were left open for `silent` seconds of the fake clock before it ended as it did."""

    def __init__(self, look, clock, silent=0.0):
        self.look, self.clock, self.silent, self.began = look, clock, silent, clock.monotonic()

    def ended_within(self, seconds):
        left = self.began + self.silent - self.clock.monotonic()
        if left > 0:
            self.clock.wait(min(seconds, left))
        return left <= seconds

    def result(self):
        return self.look()

    def waiting(self):
        return Waiting("listing groups on A", self.clock.monotonic() - self.began)


def watched(flow, settle=15.0, timeout=None):
    told, watch = [], Watch()

    def tell(said):
        told.append((said, dict(watch.bars), watch.time_left()))

    def begin(settle):
        return Looked(lambda: flow.look(settle), flow.clock, flow.silent.get(len(flow.looks) + 1, 0.0))

    status = watch_until_ready(begin, settle, timeout, flow.clock, tell, watch)
    return status, told


def test_a_watch_ends_by_itself_when_the_last_record_is_copied_and_looked_once_more_over_the_settle_time():
    flow = Draining()
    status, _ = watched(flow)
    assert status.is_ready and flow.left() == 0
    assert set(flow.looks[:-1]) == {1.0} and flow.looks[-1] == 15.0
    assert 30 <= flow.clock.waited <= 30 + 2 + 1 + 15 + 1


def test_a_watch_whose_filters_match_nothing_never_ends_as_ready():
    flow = Draining(lag=0, filters=Filters.from_options(groups=("bil.*",)))
    status, told = watched(flow, timeout=30.0)
    assert not status.is_ready and flow.clock.waited == pytest.approx(30, abs=2) and len(told) > 5


def test_a_source_that_goes_down_in_a_watch_takes_what_was_known_of_it_along():
    watch = Watch()
    source, target, mirror = world()
    watch.take(looked(source, target, mirror), 0.0)
    assert watch.time_left().pace is Pace.DONE
    mirror.latest = checkpoints(("g", "A.t", 0, 50), ("g", "A.t", 1, 50))
    down = looked(source, target, mirror, down="source A (x:1) cannot be reached.")
    watch.take(down, 2.0)
    left = left_text(watch.time_left(), down.lag)
    shown = text(down, progress=watch.bars, left=left)
    assert left == "an unknown number of records left" and "100%" not in shown and "[#" not in shown
    document = status_document(down, None, watch.bars, watch.time_left())
    assert document["time_left"]["pace"] == "too-early" and document["topics"][0]["progress"] is None


def test_the_time_left_is_told_once_it_can_be_and_without_a_terminal_each_look_is_one_line():
    _, told = watched(Draining())
    paces = [left.pace for _, _, left in told]
    assert paces[0] is Pace.TOO_EARLY and Pace.STALLED in paces and paces[-1] is Pace.DONE
    falling = [(left.seconds, said.seen) for said, _, left in told if left.pace is Pace.FALLING]
    for seconds, status in falling[len(falling) // 2 :]:
        assert seconds == pytest.approx(status.lag.records / 50, rel=0.5)
    lines = [progress_line(said.seen, bars, left_text(left, said.seen.lag)) for said, bars, left in told]
    assert lines[len(told) // 2] == "700 records left: about 14 s (50/s); t 41%; not ready: not-drained"
    assert lines[-1] == "everything is copied; ready"


def test_what_a_glance_takes_for_ready_and_is_not_goes_on_being_watched():
    flow = Draining(lag=0)

    def comes_and_goes():
        is_back = flow.looks[-1] == 15.0 and flow.looks.count(15.0) < 3
        flow.source.states["g"] = ALIVE if is_back else EMPTY

    flow.source.when("groups", comes_and_goes)
    status, told = watched(flow)
    assert status.is_ready and flow.looks.count(15.0) == 3
    assert any("whether it stays so" in said.note for said, _, _ in told)


def test_a_settle_time_no_longer_than_a_glance_needs_no_second_look_and_a_look_that_fails_is_made_again():
    flow = Draining(lag=0)
    _, told = watched(flow, settle=1.0)
    assert flow.looks == [1.0] and not any(said.freshness.settling for said, _, _ in told)
    status, told = watched(Draining(fails=(3, 4)))
    assert status.is_ready and sum("cannot be reached. Trying again." in said.note for said, _, _ in told) == 2
    # Not the first, nor one after a ready glance as the time runs out.
    for flow, timeout in ((Draining(fails=(1,)), None), (Draining(lag=0, fails=(2,), silent={2: 5.0}), 3.0)):
        with pytest.raises(ClusterError):
            watched(flow, timeout=timeout)


@pytest.mark.parametrize("silent", [{}, {1: 9.0, 2: 20.0}])
def test_nothing_is_called_ready_before_the_look_over_the_settle_time_is_over_nor_while_nobody_answers(silent):
    status, told = watched(Draining(lag=0, silent=silent))
    first = [said for said, _, _ in told if said.seen is None]
    *before, (last, bars, left) = told[len(first) :]
    assert status.is_ready and before[0][0].seen.is_ready, "a glance finds it ready"
    for said, bars, left in before:
        document = status_document(said.seen, None, bars, left, said.freshness)
        assert said.freshness.settling and document["ready"] is False
        shown = list(status_lines(said.seen, Page("", 100, True), freshness=said.freshness))
        assert "\x1b" not in next(line for line in shown if "NOT YET READY: " in line)
        assert not [line for line in shown if line.startswith("READY") or line.startswith(GREEN)]
        if said.freshness.waiting:
            shown = text(said.seen, freshness=said.freshness)
            assert shown.startswith("NO ANSWER for ") and "listing groups on A" in shown.splitlines()[0]
            assert "NOTHING IS MISSING" not in shown and "NOTHING WAS MISSING" in shown and "s ago: NOT YET" in shown
            assert document["waiting"]["question"] == "listing groups on A"
            assert document["waiting"]["seconds"] > 2 and document["age_seconds"] > 2
    assert status_document(last.seen, None, bars, left, last.freshness)["ready"] is True
    assert text(last.seen, freshness=last.freshness).startswith("READY: ")
    assert bool(silent) is bool(first) is any(said.freshness.waiting for said, _, _ in before)
    if first:
        shown = "\n".join(first_look_lines(first[-1].freshness, Page("", 80)))
        assert "nothing is known yet" in shown and "NO ANSWER for 8 s: listing groups on A" in shown


def test_a_look_waits_for_the_cluster_that_is_silent_longest_and_for_none_while_it_waits_by_itself():
    step, gate = LastStep(), Event()
    step.step("listing groups on A")
    look = BackgroundLook(lambda: gate.wait(60), step)
    assert look.waiting() is None
    with asking("source A", 30.0), asking("target B", 30.0):
        longest_silence().heard_at -= 3
        waiting = look.waiting()
        assert waiting.question == "listing groups on A" and 3.0 <= waiting.seconds < 60.0
        heard("source A")
        assert look.waiting().seconds < waiting.seconds
    assert look.waiting() is None and not look.ended_within(0.01)
    gate.set()
    assert look.ended_within(60) and look.result()


def gone():
    raise ClusterError("A is gone.", "Start it.")


def test_a_long_wait_of_a_look_asks_in_between_and_ends_on_time_or_with_what_the_asking_raises():
    clock, asked = FakeClock(), []
    Wakeful(clock, lambda: asked.append(clock.waited), 2.0).wait(15.0)
    assert clock.waited == 15.0 and asked == [2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]
    with pytest.raises(ClusterError):
        Wakeful(clock, gone, 2.0).wait(15.0)
    assert clock.waited == 17.0
    Wakeful(clock, gone, 2.0).wait(2.0)
    with pytest.raises(ClusterError, match="A is gone"):
        BackgroundLook(gone, LastStep()).result()


def test_without_a_terminal_no_line_that_says_how_long_it_takes_is_said_again_with_how_long_it_took():
    written, clock = [], FakeClock()
    progress = LineProgress(written.append, clock)
    teller = Teller(None, False, False, lambda: Page("", 80), print, progress)
    for said, _, _ in watched(Draining(silent={1: 6.0, 4: 20.0}))[1]:
        teller(said)
        for _ in range(10):
            clock.wait(0.5)
            progress.beat()
    lines = [line.partition("] ")[2].strip() for line in written]
    assert sum("NO ANSWER for " in line for line in lines) == 4
    assert "looking for 15 s whether it stays so" in lines and not [line for line in lines if "so far" in line]


def test_an_mm2_that_copies_nothing_shows_the_share_it_has_copied_and_is_to_be_restarted_not_waived():
    # Stopped midway: half a minute of looks, and not a record less.
    _, told = watched(Draining(lag=100, rate=0.0), timeout=60.0)
    said, bars, left = told[-1]
    screen = " ".join(text(said.seen, progress=bars, left=left_text(left, said.seen.lag)).split())
    assert re.search(r"66% no progress for \d+ s", screen) and "copying" not in screen
    assert "nothing is being copied: restart MM2" in screen
    missing = next(c for c in said.seen.blocks if c.check == "not-drained")
    assert "restart it" in missing.todo and "--accept" not in missing.todo and "Stop the producers" not in missing.todo


def test_one_look_sees_no_motion_and_a_watch_says_copying_only_once_records_were_seen_to_arrive():
    seen, watch, words = watched(Draining())[1][0][0].seen, Watch(), []
    topic = seen.topics[0]
    first, *others = topic.partitions
    for seconds, copied in ((0, 0), (2, 0), (4, 1), (6, 1), (30, 1)):
        log = LogRange(first.target_log.start, first.target_log.end + copied)
        moved = replace(seen, topics=(replace(topic, partitions=(replace(first, target_log=log), *others)),))
        watch.take(moved, seconds)
        words += re.findall(r"\[[#.]+\] +\d+% (.*)", text(moved, progress=watch.bars))
    assert words == ["behind", "no progress for 2 s", "copying", "copying", "no progress for 26 s"]


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
def test_a_bar_never_breaks_and_no_line_is_wider_than_the_screen(width):
    bar = re.compile(r"\[[#.]+\] +\d+% (?:copied|copying|behind|no progress for \d+ s|not known)$", re.M)
    for said, bars, left in watched(Draining(lag=1_234_567, rate=40_000.0))[1]:
        shown = text(said.seen, width, progress=bars, left=left_text(left, said.seen.lag), freshness=said.freshness)
        assert [line for line in shown.splitlines() if len(line) > width] == []
        assert len(bar.findall(shown)) == 2, shown


def recorded(name):
    """The readings of a real drain."""
    file = Path(__file__).parents[1] / "drains" / f"{name}.json"
    return [Reading(*reading) for reading in json.loads(file.read_text())]


def test_an_uneven_drain_of_a_real_mm2_is_told_by_the_pace_that_was_seen():
    """MM2 was paused, then slowed down by a quota with its bursts: nobody could have told the end of it."""
    readings = recorded("paused-then-under-a-quota")
    told = [time_left(readings[: at + 1]) for at in range(len(readings))]
    assert [t.pace for t in told] == [Pace.TOO_EARLY] * 3 + [Pace.FALLING] * 6 + [Pace.DONE] * 2
    assert all(70 < t.per_second < 130 for t in told[5:9])


@given(
    st.integers(1_000, 10_000_000), st.floats(20, 600), st.floats(0.3, 3.0), st.floats(0, 0.5), st.floats(0, 200),
    st.integers(0, 9),
)  # fmt: skip
def test_over_the_last_half_of_any_steady_drain_the_estimate_is_within_a_factor_of_two(
    total, lasts, every, noise, idle, seed
):
    """`lasts` seconds after `idle` ones in which nothing happened; `noise` varies the time between readings."""
    dice, readings, now, longest = Random(seed), [Reading(0.0, total)], 0.0, every * (1 + noise)
    while readings[-1].left:
        now += every * (1 + noise * dice.uniform(-1, 1))
        readings.append(Reading(now, max(0, total - int(total / lasts * max(0.0, now - idle)))))
    begun = max(reading.seconds for reading in readings if reading.left == total)
    for at, reading in enumerate(readings[:-1]):
        if reading.seconds >= (begun + now) / 2:
            told = time_left(readings[: at + 1])
            # The end is seen at a reading: a second before it nobody can tell to the half second.
            near = now - reading.seconds <= 2 * longest
            assert told.pace is Pace.FALLING and (near or 0.5 <= told.seconds / (now - reading.seconds) <= 2)


@pytest.mark.parametrize(
    ("left", "pace", "per_second"),
    [
        ([], Pace.TOO_EARLY, None),
        ([100], Pace.TOO_EARLY, None),
        ([0], Pace.DONE, 0),
        ([9, 0], Pace.DONE, 0),
        ([100] * 30, Pace.STALLED, None),
        ([max(500, 1000 - 50 * s) for s in range(9)], Pace.FALLING, 50),
        ([max(500, 1000 - 50 * s) for s in range(60)], Pace.STALLED, None),
        ([100 + 7 * s for s in range(30)], Pace.GROWING, None),
        # While producers write it is the rest that counts, and not what is copied.
        ([1000 - 5 * s for s in range(30)], Pace.FALLING, 5),
        # What came in on the way begins the drain anew.
        ([*range(1000, 800, -10), *range(5000, 3000, -100)], Pace.FALLING, 100),
    ],
)
def test_the_pace_is_a_number_or_a_reason(left, pace, per_second):
    told = time_left([Reading(float(s), records) for s, records in enumerate(left)])
    assert (told.pace, told.per_second) == (pace, pytest.approx(per_second))
    assert told.seconds == (left[-1] / per_second if per_second else per_second)
