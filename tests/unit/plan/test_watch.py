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
from migrate.mm2.topics import CheckpointKey, CheckpointRecord
from migrate.model import LogRange, TopicPartition
from migrate.plan.watch import Pace, Reading, Watch, time_left, watch_until_ready
from migrate.progress import LineProgress
from migrate.show.plan_table import Page
from migrate.show.screen import fitting
from migrate.show.status import first_look_lines, left_text, progress_line, status_document, status_lines
from migrate.silence import asking, heard, longest_silence
from migrate.survey.filters import Filters
from migrate.text import Colour, paint
from migrate.watch import BackgroundLook, LastStep, Waiting, Wakeful
from tests.fakes import ALIVE, FakeClock, FakeComparer
from tests.unit.planscene import world
from tests.unit.statusscene import looked, text

GREEN = paint("|", Colour.GREEN, True).split("|")[0]
T0 = TopicPartition("t", 0)


def test_a_source_that_goes_down_in_a_watch_takes_what_was_known_of_it_along():
    watch = Watch()
    watch.take(looked(*world()), 0.0)
    assert watch.time_left().pace is Pace.DONE
    source, target, mirror = world()
    mirror.latest = {CheckpointKey("g", "A.t", p): CheckpointRecord(50, 50, "", p, 1) for p in (0, 1)}
    down = looked(source, target, mirror, down="source A (x:1) cannot be reached.")
    watch.take(down, 2.0)
    left = left_text(watch.time_left(), down.lag)
    shown = text(down, progress=watch.bars, left=left)
    assert left == "an unknown number of records left" and "100%" not in shown and "[#" not in shown
    document = status_document(down, None, watch.bars, watch.time_left())
    assert document["time_left"]["pace"] == "too-early" and document["topics"][0]["progress"] is None


def test_a_watch_whose_filters_match_nothing_never_ends_as_ready():
    flow = Draining(lag=0)
    flow.filters = Filters.from_options(groups=("bil.*",))
    status, told = watched(flow, timeout=30.0)
    assert not status.is_ready and flow.clock.waited == pytest.approx(30, abs=2) and len(told) > 5


class Draining:
    """A flow of which MM2 copies `rate` records of t-0 a second from `begins` on; `lag` are left at the start.

    Looks whose numbers (from 1) are in `fails` fail; those in `silent` get no answer for so many seconds.
    """

    def __init__(self, lag=1000, rate=50.0, begins=10.0, fails=(), wobble=0, silent=None):
        self.silent, self.filters = silent or {}, Filters()
        self.source, self.target, self.mirror = world()
        self.clock, self.lag, self.rate, self.begins = FakeClock(), lag, rate, begins
        self.source.ranges[T0] = LogRange(0, 100 + lag)
        self.mirror.last_copied_offset, self.looks, self.fails, self.wobble = {}, [], fails, wobble

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


@pytest.mark.parametrize("wobble", [0, 120])
def test_what_is_done_never_falls_even_if_an_estimate_takes_something_back(wobble):
    _, told = watched(Draining(wobble=wobble))
    done = [(bars["t"].done, bars["t"].percent) for _, bars, _ in told]
    assert done == sorted(done) and len(set(done)) > 5
    ready = [percent for (_, percent), (said, _, _) in zip(done, told, strict=True) if said.seen.is_ready]
    assert set(ready) == {100} and all(percent < 100 for _, percent in done[: -len(ready)])
    assert done[-1][0] == 1200


def halfway(flow):
    """What is told in the middle of a watch: the look, the bars, the time left."""
    _, told = watched(flow)
    return told[len(told) // 2]


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


@pytest.mark.parametrize("silent", [0.0, 1.5, 20.0])
def test_nothing_is_called_ready_before_the_look_over_the_settle_time_is_over(silent):
    status, told = watched(Draining(lag=0, silent={2: silent}))
    assert status.is_ready and told[0][0].seen.is_ready, "a glance finds it ready"
    for said, bars, left in told[:-1]:
        assert said.freshness.settling
        assert status_document(said.seen, None, bars, left, said.freshness)["ready"] is False
        shown = list(status_lines(said.seen, Page("", 100, True), freshness=said.freshness))
        verdict = next(line for line in shown if "NOT YET READY: " in line)
        assert not [line for line in shown if line.startswith("READY") or line.startswith(GREEN)]
        assert "\x1b" not in verdict
    last, bars, left = told[-1]
    assert status_document(last.seen, None, bars, left, last.freshness)["ready"] is True
    assert text(last.seen, freshness=last.freshness).startswith("READY: ")


def test_a_settle_time_no_longer_than_a_glance_needs_no_second_look_and_a_look_that_fails_is_made_again():
    flow = Draining(lag=0)
    _, told = watched(flow, settle=1.0)
    assert flow.looks == [1.0] and not any(said.freshness.settling for said, _, _ in told)
    status, told = watched(Draining(fails=(3, 4)))
    assert status.is_ready and sum("cannot be reached. Trying again." in said.note for said, _, _ in told) == 2
    with pytest.raises(ClusterError):
        watched(Draining(fails=(1,)))


def test_what_was_ready_is_not_drawn_as_ready_while_nobody_answers():
    flow = Draining(lag=0, silent={2: 20.0})
    status, told = watched(flow)
    late = [said for said, _, _ in told if said.freshness.waiting]
    assert status.is_ready and late
    for said in late:
        shown = text(said.seen, freshness=said.freshness)
        assert shown.startswith("NO ANSWER for ") and "listing groups on A" in shown.splitlines()[0]
        assert "NOTHING IS MISSING" not in shown and "NOTHING WAS MISSING" in shown and "s ago: NOT YET READY" in shown
        document = status_document(said.seen, freshness=said.freshness)
        assert document["ready"] is False and document["waiting"]["question"] == "listing groups on A"
        assert document["waiting"]["seconds"] > 2 and document["age_seconds"] > 2


def test_before_the_first_answer_a_watch_says_whom_it_asks():
    _, told = watched(Draining(silent={1: 9.0}))
    first = [said for said, _, _ in told if said.seen is None]
    assert first and first[-1].freshness.waiting
    shown = "\n".join(first_look_lines(first[-1].freshness, Page("", 80)))
    assert "nothing is known yet" in shown and "NO ANSWER for 8 s: listing groups on A" in shown


def test_a_ready_glance_whose_second_look_fails_as_the_time_runs_out_does_not_end_the_watch_as_ready():
    flow = Draining(lag=0, fails=(2,), silent={2: 5.0})
    with pytest.raises(ClusterError):
        watched(flow, timeout=3.0)


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
    assert look.waiting() is None
    gate.set()


def test_a_long_wait_of_a_look_asks_in_between_and_ends_on_time_or_with_what_the_asking_raises():
    clock, asked = FakeClock(), []
    Wakeful(clock, lambda: asked.append(clock.waited), 2.0).wait(15.0)
    assert clock.waited == 15.0 and asked == [2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]

    def gone():
        raise ClusterError("A is gone.", "Start it.")

    with pytest.raises(ClusterError):
        Wakeful(clock, gone, 2.0).wait(15.0)
    assert clock.waited == 17.0
    Wakeful(clock, gone, 2.0).wait(2.0)


def test_a_look_under_way_hands_back_what_it_saw_or_raises_what_it_raised():
    gate = Event()

    def failing():
        gate.wait(60)
        raise ClusterError("A is gone.", "Start it.")

    look = BackgroundLook(failing, LastStep())
    assert not look.ended_within(0.01)
    gate.set()
    assert look.ended_within(60)
    with pytest.raises(ClusterError, match="A is gone"):
        look.result()


def lines_of(flow):
    """Return the lines of a watch without a terminal whose heart beats ten times between them."""
    written, clock = [], FakeClock()
    progress = LineProgress(written.append, clock)
    teller = Teller(None, False, False, lambda: Page("", 80), print, progress)
    for said, _, _ in watched(flow)[1]:
        teller(said)
        for _ in range(10):
            clock.wait(0.5)
            progress.beat()
    return [line.partition("] ")[2].strip() for line in written]


def test_without_a_terminal_no_line_that_says_how_long_it_takes_is_said_again_with_how_long_it_took():
    lines = lines_of(Draining(silent={1: 6.0, 4: 20.0}))
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
    (topic,) = (each for each in seen.topics if not each.drained)
    first, *others = topic.partitions
    for seconds, copied in ((0, 0), (2, 0), (4, 1), (6, 1), (30, 1)):
        log = LogRange(first.target_log.start, first.target_log.end + copied)
        moved = replace(topic, partitions=(replace(first, target_log=log), *others))
        watch.take(replace(seen, topics=(moved,)), seconds)
        words += re.findall(r"\[[#.]+\] +\d+% (.*)", text(replace(seen, topics=(moved,)), progress=watch.bars))
    assert words == ["behind", "no progress for 2 s", "copying", "copying", "no progress for 26 s"]


def test_a_watch_shows_bars_and_what_is_missing_fits_a_screen_of_24_lines():
    said, bars, left = halfway(Draining())
    screen = text(said.seen, 80, progress=bars, left=left_text(left, said.seen.lag))
    assert "[####......]  41% copying" in screen and "To copy      700 records left" in screen
    shown = fitting(screen.splitlines(), 80, 24)
    assert "WHAT IS MISSING" in shown and any(line.startswith("BLOCK  not-drained") for line in shown)
    assert "[####......]  41% copying" in "\n".join(shown)
    _, told = watched(Draining())
    last, bars, _ = told[-1]
    assert "[##########] 100% copied" in text(last.seen, progress=bars)


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
def test_a_bar_never_breaks_and_no_line_is_wider_than_the_screen(width):
    bar = re.compile(r"\[[#.]+\] +\d+% (?:copied|copying|behind|no progress for \d+ s|not known)$", re.M)
    for said, bars, left in watched(Draining(lag=1_234_567, rate=40_000.0))[1]:
        shown = text(said.seen, width, progress=bars, left=left_text(left, said.seen.lag), freshness=said.freshness)
        assert [line for line in shown.splitlines() if len(line) > width] == []
        assert len(bar.findall(shown)) == 2, shown


RECORDED = Path(__file__).parents[1] / "drains"


def steady(total, rate, every, noise, idle, seed):
    """Readings of a drain of `total` records at `rate` a second, after `idle` seconds in which nothing happened.

    `noise` varies the time between readings.
    """
    dice, readings, now = Random(seed), [], 0.0
    while True:
        busy = max(0.0, now - idle)
        left = max(0, total - int(rate * busy))
        readings.append(Reading(now, left))
        if left == 0:
            return readings
        now += every * (1 + noise * dice.uniform(-1, 1))


def judged(readings):
    """For each reading of the last half of the drain, the estimate over the time it really took."""
    end = readings[-1].seconds
    begun = max(r.seconds for r in readings if r.left == readings[0].left)
    ratios = []
    for at, reading in enumerate(readings[:-1]):
        really = end - reading.seconds
        if reading.seconds - begun >= (end - begun) / 2 and reading.left:
            told = time_left(readings[: at + 1])
            assert told.pace is Pace.FALLING, (reading, told)
            ratios.append(told.seconds / really)
    assert ratios
    return ratios


@given(
    st.integers(1_000, 10_000_000), st.floats(20, 600), st.floats(0.3, 3.0), st.floats(0, 0.5), st.floats(0, 200),
    st.integers(0, 9),
)  # fmt: skip
def test_over_the_last_half_of_a_steady_drain_the_estimate_is_within_a_factor_of_two(
    total, lasts, every, noise, idle, seed
):
    readings = steady(total, total / lasts, every, noise, idle, seed)
    # The end is seen at a reading: a second before it nobody can tell to the half second.
    ratios = [
        ratio
        for ratio, reading in zip(reversed(judged(readings)), reversed(readings[:-1]), strict=False)
        if readings[-1].seconds - reading.seconds > 2 * every * (1 + noise)
    ]
    assert all(0.5 <= ratio <= 2 for ratio in ratios), ratios


def test_an_uneven_drain_of_a_real_mm2_is_told_by_the_pace_that_was_seen():
    """MM2 was paused, then slowed down by a quota with its bursts: nobody could have told the end of it."""
    recorded = json.loads((RECORDED / "paused-then-under-a-quota.json").read_text())
    readings = [Reading(seconds, left) for seconds, left in recorded]
    told = [time_left(readings[: at + 1]) for at in range(len(readings))]
    assert [t.pace for t in told] == [Pace.TOO_EARLY] * 3 + [Pace.FALLING] * 6 + [Pace.DONE] * 2
    slow = [t.per_second for t in told[5:9]]
    assert all(70 < rate < 130 for rate in slow if rate is not None), slow


def test_over_the_last_half_of_a_steady_drain_of_a_real_mm2_the_estimate_is_within_a_factor_of_two():
    """A quota lets MM2 write 80 kB/s to the target, which comes to 250 records per second in steps of some seconds."""
    recorded = json.loads((RECORDED / "steady-under-a-quota.json").read_text())
    readings = [Reading(seconds, left) for seconds, left in recorded]
    end = next(reading.seconds for reading in readings if not reading.left)
    # In its last four seconds a step of the quota is all that is left.
    judged_at = [at for at, reading in enumerate(readings) if end / 2 <= reading.seconds < end - 4]
    ratios = [
        told / (end - readings[at].seconds) for at in judged_at if (told := time_left(readings[: at + 1]).seconds)
    ]
    assert len(ratios) == len(judged_at) > 10
    assert all(0.5 <= ratio <= 2 for ratio in ratios), ratios


@pytest.mark.parametrize(
    ("left", "pace"),
    [
        ([], Pace.TOO_EARLY),
        ([100], Pace.TOO_EARLY),
        ([0], Pace.DONE),
        ([9, 0], Pace.DONE),
        ([100] * 30, Pace.STALLED),
        ([max(500, 1000 - 50 * s) for s in range(9)], Pace.FALLING),
        ([max(500, 1000 - 50 * s) for s in range(60)], Pace.STALLED),
        ([100 + 7 * s for s in range(30)], Pace.GROWING),
    ],
)
def test_the_pace_is_a_number_or_a_reason(left, pace):
    told = time_left([Reading(float(s), records) for s, records in enumerate(left)])
    assert told.pace is pace and (told.seconds == 0) is (pace is Pace.DONE)
    assert pace in (Pace.DONE, Pace.FALLING) or (told.seconds, told.per_second) == (None, None)


def test_two_readings_at_once_tell_no_more_than_one():
    assert time_left([Reading(0, 100), Reading(0.5, 90)]).pace is Pace.TOO_EARLY


def test_while_producers_write_it_is_the_rest_that_counts_and_not_what_is_copied():
    told = time_left([Reading(float(s), 1000 - 5 * s) for s in range(30)])
    assert told.per_second == pytest.approx(5) and told.seconds == pytest.approx(855 / 5)


def test_what_came_in_on_the_way_begins_the_drain_anew():
    readings = [Reading(float(s), 1000 - 10 * s) for s in range(20)]
    readings += [Reading(20.0 + s, 5000 - 100 * s) for s in range(20)]
    told = time_left(readings)
    assert told.per_second == pytest.approx(100)


@given(st.lists(st.tuples(st.floats(0.1, 60), st.integers(0, 10**9)), max_size=40))
def test_an_estimate_is_a_number_of_seconds_or_a_reason_whatever_was_read(steps):
    now, readings = 0.0, []
    for seconds, left in steps:
        now += seconds
        readings.append(Reading(now, left))
    told = time_left(readings)
    assert (told.seconds is None) == (told.pace not in (Pace.DONE, Pace.FALLING))
    assert told.seconds is None or told.seconds >= 0
