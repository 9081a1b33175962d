"""Several plans added up: a line for each, and the groups that have not moved named up to a limit."""

import json

from migrate.apply.history import JournalState
from migrate.apply.waves import Wave
from migrate.show.waves import NAMED, wave_document, wave_lines
from tests.builders import make_plan, make_row

LEFT = Wave("wave.plan", make_plan([make_row(f"g{i:02}") for i in range(NAMED + 2)]), JournalState())


def test_groups_beyond_the_limit_are_counted():
    told = " ".join(" ".join(wave_lines([LEFT], 100)).split())
    assert f"{NAMED + 2} groups: {NAMED + 2} left" in told and "g19 and 2 more" in told


def test_the_document_has_every_standing_also_those_without_groups():
    document = json.loads("".join(wave_document([LEFT])))
    assert document["flows"][0]["counts"] == {"moved": 0, "uncertain": 0, "undone": 0, "left": NAMED + 2, "as-it-is": 0}
    assert document["waves"][0]["path"] == "wave.plan" and len(document["waves"][0]["groups"]) == NAMED + 2
