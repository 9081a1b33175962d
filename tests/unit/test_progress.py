"""Progress: what step, how far, how long yet; a line at a time in a log, one line on a terminal."""

import json
from threading import Event
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.progress import BEAT_SECONDS, LONGEST_SECONDS, LineProgress, beating, in_batches, side_by_side
from migrate.silence import asking, heard, longest_silence
from tests.fakes import FakeClock, NoProgress


class Log:
    """What was written, and a progress that writes it."""

    def __init__(self, **options) -> None:
        self.written: list[str] = []
        self.clock = FakeClock()
        self.progress = LineProgress(self.written.append, self.clock, **options)

    def step(self, text: str, *waits: float) -> None:
        """Begin a step, and look at it after each of these waits."""
        self.progress.step(text)
        for seconds in waits:
            self.clock.wait(seconds)
            self.progress.beat()

    def text(self) -> str:
        return "".join(self.written)

    def screen(self) -> list[str]:
        """What stands on a terminal in the end: carriage returns write over."""
        shown = []
        for line in self.text().split("\n"):
            over = ""
            for part in line.split("\r"):
                over = part + over[len(part) :]
            shown.append(over.rstrip())
        return shown


def test_a_step_is_one_line_and_only_a_long_one_says_how_far_it_is_and_how_long_yet():
    log = Log()
    log.step("listing groups on A", 1.9)
    log.progress.advance(1, 2)
    log.step("reading commits", 2)
    log.clock.wait(8)
    log.progress.advance(250, 1000)
    assert log.written == [
        "[  0.0 s] listing groups on A\n", "[  1.9 s] reading commits\n", "[  3.9 s] reading commits: 2 s so far\n",
        "[ 11.9 s] reading commits: 250 of 1,000, about 30 s left\n",
    ]  # fmt: skip


@pytest.mark.parametrize("columns", [0, 80])
def test_a_cluster_that_does_not_answer_is_named_with_how_long_it_is_waited_for(columns):
    log = Log(columns=columns)
    log.progress.step("reading 3 groups again on target B")
    with asking("source A (a:9092)", 30.0):
        log.clock.wait(9)
        log.progress.beat()
        longest_silence().heard_at -= 9
        log.clock.wait(9)
        log.progress.beat()
        heard("source A (a:9092)")
        log.clock.wait(9)
        log.progress.beat()
    told = [line.partition("B: ")[2] for line in log.text().replace("\r", "\n").splitlines() if "B: " in line]
    assert told == ["9 s so far", "no answer from source A for 9 of 30 s", "27 s so far"]


def test_on_a_terminal_a_line_that_wraps_is_not_said_again_at_every_look():
    log = Log(columns=30)
    log.step("x" * 40, *[BEAT_SECONDS] * 20)
    assert log.text().count("so far") < 5


@given(st.floats(60, 3600))
def test_in_a_log_the_lines_of_one_step_come_ever_more_slowly_but_never_stop(seconds):
    log = Log()
    log.progress.step("comparing")
    told = [0.0]
    while log.clock.waited < seconds:
        before = len(log.written)
        log.clock.wait(BEAT_SECONDS)
        log.progress.beat()
        if len(log.written) > before:
            told.append(log.clock.waited)
    gaps = [b - a for a, b in zip(told, told[1:], strict=False)]
    assert gaps == sorted(gaps) and gaps[0] == 2 and max(gaps) <= LONGEST_SECONDS
    assert log.clock.waited - told[-1] <= LONGEST_SECONDS


def test_on_a_terminal_a_step_stays_one_line_whatever_it_says_and_the_last_one_is_closed_before_results():
    log = Log(columns=80)
    log.step("reading commits of 312 groups on A", *[1] * 20)
    log.progress.step("reading")
    for done in (1, 999):
        log.clock.wait(5)
        log.progress.advance(done, 1000)
    log.progress.end()
    # A shorter line leaves nothing of the longer one behind.
    step = "[ 20.0 s] reading commits of 312 groups on A: 20 s so far"
    assert log.screen() == [step, "[ 30.0 s] reading: 999 of 1,000, about 0 s left", ""]


def test_a_line_wider_than_the_terminal_is_not_written_over():
    log = Log(columns=20)
    log.step("a step with a long name", 3)
    log.progress.end()
    assert "\r" not in log.text() and log.text().endswith("\n")


def test_a_line_that_is_whole_by_itself_has_no_heart_and_after_the_end_nothing_is_said_until_the_next_step():
    log = Log()
    log.step("listing groups on A")
    for finish in (lambda: log.progress.say("NO ANSWER for 14 s: reaching A"), log.progress.end):
        finish()
        for _ in range(20):
            log.clock.wait(BEAT_SECONDS)
            log.progress.beat()
            log.progress.advance(1, 2)
    assert log.written == ["[  0.0 s] listing groups on A\n", "[  0.0 s] NO ANSWER for 14 s: reaching A\n"]
    log.step("two")
    assert len(log.written) == 3


def test_json_lines_are_one_object_each_with_the_numbers():
    log = Log(as_json=True, columns=80)
    log.progress.step("reading café")
    log.clock.wait(4)
    log.progress.advance(1, 2)
    assert log.text().isascii(), "whatever the log's encoding"
    first, second = [json.loads(line) for line in log.text().splitlines()]
    assert (first["message"], second["done"], second["total"]) == ("reading café", 1, 2)


def test_a_heart_beats():
    beaten = Event()
    stop = beating(SimpleNamespace(beat=beaten.set))
    assert beaten.wait(30)
    stop()


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_batches_ask_of_everything_once_in_order_and_tell_how_far_they_are(size):
    asked, told = [], []

    class Told(NoProgress):
        def advance(self, done: int, total: int) -> None:
            told.append((done, total))

    def ask(batch):
        asked.extend(batch)
        assert len(batch) <= size
        return {item: -item for item in batch}

    items = list(range(7))
    assert in_batches(items, ask, Told(), size) == {item: -item for item in items}
    assert asked == items and told[-1] == (7, 7)
    assert in_batches([], ask, Told()) == {}


def test_both_sides_are_over_when_one_has_failed():
    over = []

    def slow():
        while not failed.wait(0.01):
            pass
        over.append(True)

    def fails():
        failed.set()
        raise ZeroDivisionError

    failed = Event()
    with pytest.raises(ZeroDivisionError):
        side_by_side(fails, slow)
    assert over == [True]
    assert side_by_side(lambda: 1, lambda: 2) == (1, 2)
