"""Positions outside Kafka: translated as commits are, and never written by any command."""

from tests.mutants.mutant import Mutant

HELD, READ = "tests/unit/plan/test_held.py", "tests/unit/survey/test_positions.py"
OFFSETS = "tests/unit/survey/test_spark_offsets.py"

HOLDING = (
    Mutant(
        "positions-to-be-written",
        "A position never has the decision that apply writes.",
        "migrate/plan/held.py",
        "        decision=Decision.MANUAL if row.decision is Decision.SET else row.decision,\n",
        "        decision=row.decision,\n",
        (HELD,),
    ),
    Mutant(
        "positions-among-the-rows-of-groups",
        "No plan has a holder's row among those that apply walks.",
        "migrate/plan/plan.py",
        '    if set(rows.tally("holder_kind")) - {GROUP_KIND} or rows.tally("decision")[Decision.MANUAL]:\n',
        "    if False:\n",
        (HELD,),
    ),
    Mutant(
        "positions-waived-by-a-groups-waiver",
        "A waiver for a group's row does not cover that of a holder with the group's name.",
        "migrate/model.py",
        '        tail = "" if self.holder_kind == GROUP_KIND else "/position"\n',
        '        tail = ""\n',
        (HELD,),
    ),
    Mutant(
        "last-done-taken-for-next-wanted",
        "Who keeps the last record that it has done wants the one after it.",
        "migrate/survey/positions.py",
        "        source_next = offset + (meaning is Meaning.LAST)\n",
        "        source_next = offset\n",
        (READ,),
    ),
    Mutant(
        "latest-taken-for-an-offset",
        "Spark's -1 is no offset of a reader that has run.",
        "migrate/survey/positions.py",
        "        if offset in _NOT_STARTED:\n",
        "        if offset == -2:\n",
        (READ,),
    ),
    Mutant(
        "open-batch-taken-for-finished",
        "The offsets of a batch that was begun and not finished are no position.",
        "migrate/survey/spark_offsets.py",
        "    return Batches(done, newest if newest > done else None)\n",
        "    return Batches(newest, None)\n",
        (OFFSETS,),
    ),
    Mutant(
        "moving-positions-pass",
        "A position that is another at the second look blocks its holder.",
        "migrate/survey/read_held.py",
        "            if before.sha256 != now.sha256\n",
        "            if before.origin != now.origin\n",
        (HELD,),
    ),
    Mutant(
        "state-counts-twice",
        "A holder that keeps a state is blocked where a record may be read twice.",
        "migrate/checks/positions.py",
        "            if decision is not Decision.SKIP and (grade is not Grade.EXACT or at_most != 0)\n",
        "            if False\n",
        (HELD,),
    ),
    Mutant(
        "minus-one-printed",
        "Before the first record there is no last one: -1 would be latest to Spark.",
        "migrate/show/positions.py",
        "    offset: str | int = wanted if not last else wanted - 1 if wanted else NONE\n",
        "    offset: str | int = wanted if not last else wanted - 1\n",
        ("tests/unit/show/test_positions.py",),
    ),
    Mutant(
        "batch-rewritten-with-a-partition-missing",
        "A rewritten batch has every partition that the query has, or is not written.",
        "migrate/show/positions.py",
        "or row.target_offset is None:\n                    raise",
        "or row.target_offset is None:\n                    continue\n                    raise",
        ("tests/unit/show/test_positions.py",),
    ),
    Mutant(
        "blocked-holders-printed",
        "Nobody is told to set a holder that the plan blocks.",
        "migrate/show/positions.py",
        "    if blocked := sorted(plan.blocked_holders() & chosen.keys()):\n",
        "    if blocked := []:\n",
        ("tests/unit/show/test_positions.py",),
    ),
    Mutant(
        "query-that-is-behind-verified",
        "A query that stands before the planned offset reads again what it has done.",
        "migrate/apply/verify_positions.py",
        "        return self.standing in (PositionStanding.EQUAL, PositionStanding.MOVED_ON)\n",
        "        return self.standing is not PositionStanding.ABSENT\n",
        ("tests/unit/apply/test_verify_positions.py",),
    ),
    Mutant(
        "groups-held-up-by-holders",
        "What blocks a holder alone keeps no group from being applied.",
        "migrate/plan/plan.py",
        "        in_blocked += [row for holder in self.blocked_holders() for row in holders[holder]]\n",
        "",
        ("tests/unit/apply/test_positions_untouched.py",),
    ),
)
