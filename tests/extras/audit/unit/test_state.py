"""What a folder keeps: whole lines, of one pair of clusters, for its owner alone."""

import json
import stat
from multiprocessing import get_context

import pytest

from migrate.errors import MigrateError, Refused, UsageError
from migrate.extras.audit.state import FILE, FOUND, named_file, named_lines, opened_state, read_state
from migrate.extras.audit.stretches import Cut, Stretch, Sums, TopicSums
from migrate.extras.audit.verdict import Category, Named
from migrate.match.equality import Equality
from migrate.model import LogRange, Side

IDS = ("A-id", "B-id")
SUMS = {Stretch(0, 3): Sums(2, (2**33, 2, 3, 4), 5, 9)}


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "state"


def filled(folder):
    with opened_state(folder, IDS) as state:
        state.begin(TopicSums("t", "A.t", "1", "2", Cut(Equality.WITHOUT_HEADERS, 7, 5)))
        state.add("t", Side.SOURCE, {0: LogRange(5, 10)}, SUMS)
        state.settle("t", {Stretch(0, 3): {Category.COPIED_AGAIN: 2}})
        state.end({"verdict": "COMPLETE"})
    return state


def test_what_was_kept_is_read_again_and_goes_on_and_a_topic_that_begins_anew_has_nothing(folder):
    state = filled(folder)
    assert read_state(folder) == state
    with opened_state(folder, IDS) as again:
        assert again == state
        again.add("t", Side.SOURCE, {0: LogRange(10, 11)}, SUMS)
    held = read_state(folder).topics["t"]
    assert held.sums[Side.SOURCE][Stretch(0, 3)].records == 4 and held.read_to[Side.SOURCE] == {0: 11}
    with opened_state(folder, IDS) as state:
        state.begin(TopicSums("t", "A.t", "9", "2", Cut(Equality.ALL)))
    held = read_state(folder).topics["t"]
    assert held.source_id == "9" and held.sums == {side: {} for side in Side}


def test_a_line_that_a_kill_cut_short_is_as_if_it_was_never_written(folder):
    state, path = filled(folder), folder / FILE
    whole = path.read_bytes()
    for length in (1, 20):
        path.write_bytes(whole + whole.splitlines()[2][:length])
        assert read_state(folder) == state
    with opened_state(folder, IDS):
        assert path.read_bytes() == whole
    path.write_bytes(b'{"audit"')
    with opened_state(folder, IDS) as state:
        assert not state.topics


def test_folder_and_files_are_their_owners_alone_and_two_have_not_the_same_salt(folder, tmp_path):
    state = filled(folder)
    with named_file(folder) as found:
        found.take("t", [])
    modes = {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert modes == {0o600} and stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert filled(tmp_path / "other").salt != state.salt


def test_a_folder_of_other_clusters_or_with_other_things_is_left_alone(folder, tmp_path):
    filled(folder)
    (tmp_path / "mine").touch()
    for where, ids, part, said in (
        (folder, ("A-id", "C-id"), "", "other clusters"), (folder, IDS, "plan 1", "of whole logs, not of plan 1"),
        (tmp_path, IDS, "", "not empty"),
    ):  # fmt: skip
        with pytest.raises(Refused, match=said), opened_state(where, ids, part):
            pass


def test_what_is_no_audit_is_said(folder):
    with pytest.raises(UsageError, match="cannot be read"):
        read_state(folder)
    filled(folder)
    (folder / FILE).write_text("[]\n")
    with pytest.raises(MigrateError, match="damaged"):
        read_state(folder)


def _open(folder, answer):
    try:
        with opened_state(folder, IDS):
            answer.put("opened")
    except Refused as error:
        answer.put(str(error))


def test_one_run_at_a_time_writes_to_a_folder(folder):
    context = get_context("spawn")
    answer = context.Queue()
    with opened_state(folder, IDS):
        other = context.Process(target=_open, args=(folder, answer))
        other.start()
        assert "Another audit writes" in answer.get(timeout=60)
        other.join(60)


def test_all_that_is_named_is_written_the_first_of_each_category_told_and_a_damaged_line_said(folder):
    filled(folder)
    records = [Named(Category.MISSING, 0, o, 1_000 - o) for o in range(12)] + [Named(Category.FOREIGN, 1, 0, 5)]
    with named_file(folder) as found:
        first, times = found.take("t", records)
    assert len(first) == 11 and first[-1] == records[-1] and times == (989, 1_000)
    lines = [json.loads(line) for line in (folder / FOUND).read_text().splitlines()]
    assert len(lines) == 13
    assert lines[0] == {"category": "missing", "topic": "t", "partition": 0, "offset": 0, "time_ms": 1_000}
    with (folder / FOUND).open("a") as file:
        file.write('{"category": "miss')
    with pytest.raises(MigrateError, match="damaged in line 14"):
        list(named_lines(folder))


def test_what_breaks_off_while_it_is_named_is_not_there_twice_when_it_is_named_again(folder):
    filled(folder)
    records = [Named(Category.MISSING, 0, o, 0) for o in range(3)]

    def broken():
        yield from records[:2]
        raise ValueError

    with named_file(folder) as found:
        found.take("before", records)
        with pytest.raises(ValueError):
            found.take("t", broken())
        found.take("t", records)
    assert [(line["topic"], line["offset"]) for line in named_lines(folder)] == [
        (topic, offset) for topic in ("before", "t") for offset in range(3)
    ]
