"""What can be wrong with an answer, by name, and what of it is no failure (docs/translation.md names why)."""

# kind of violation: what it means. Those in EXCUSED are counted and shown, and are no failure: of the alike ones no
# consumer can tell the records apart that they confuse; and to count what is missing, no more is read than a window.
KINDS = {
    "lost": "an owed record with a copy on the target has none at or after the row",
    "lost-pending": "an owed record of an open transaction, or one that such a record equals, is lost; the plan blocks",
    "lost-uncalibrated": "so, with hardly a sync, or with changed contents, where what the way keeps was guessed wrong",
    "lost-changed": "so, where contents are changed, and a record with its time and key is taken for its copy",
    "lost-superseded": "so, but the target is compacted, and the group reads a newer record of that key",
    "lost-counted": "so, below the source's log start, and others' records make up for some never copied, or equal",
    "lost-replay-believed": "so, below the sync of a replay that stopped midway, where little is read, and times fall",
    "lost-sync-alike": "so, at a sync whose copy is another record's of the same content, where little is read",
    "lost-alike": "so by identity, but the group reads as many records of that very content as it is owed",
    "exact-not-best": "the row says exact, and stands not at the greatest loss-free offset",
    "exact-before-deletion": "so, but retention deleted records after they were compared, which apply sees",
    "exact-uncalibrated": "so, of a row that is lost-uncalibrated",
    "exact-not-best-pending": "so, for a record of a transaction that is still open; the plan blocks: not drained",
    "exact-not-best-alike": "so by identity, but not if equal records count as the same",
    "bound-exceeded": "more records are read twice than the row admits",
    "bound-exceeded-alike": "so by identity, but not if equal records count as the same",
    "bound-exceeded-gone": "so, by copies of records that are gone from the source, which look as if never consumed",
    "bound-exceeded-hidden": "so, by a replay above the window that is as long as what was not copied there",
    "missing-hidden": "owed records that MM2 passed over have no copy, and the row does not count them",
    "missing-alike": "so, but copies of equal records may stand for theirs",
    "missing-superseded": "so, but the target is compacted, and later records of their keys are there",
    "missing-before-deletion": "so, where retention deleted records after they were compared, which apply sees",
    "missing-not-read": "so, of a row whose window was too long to be read",
    "missing-beyond-window": "so, but all of them beyond the window that was compared; other groups' rows may tell",
    "missing-invented": "an exact row counts more missing records than there are",
    "missing-invented-bounded": "so, of a row that does not say exact",
    "missing-invented-changed": "so, but the copies of no fewer are changed on the way, and not recognised",
    "missing-invented-uncalibrated": "so, where what the way keeps was guessed wrong",
    "outside-log": "the row stands outside the target's log",
    "estimated-lost": "a row of Law 2, beside which a proven sync or a timestamp stands, loses a record",
    "not-drained": "the tail is said to have come over, and it has not",
    "not-drained-open": "so, but a transaction on the target is open, which another check tells",
    "not-drained-missing": "so, of records below the last sync that MM2 has passed over once, counted as missing",
    "not-drained-alike": "so by identity, but copies of equal records stand for those that are still to come",
    "no-answer": "a commit was asked about and not answered",
    "raised": "the matching raised an error, or asked for what can't be read",
}
EXCUSED = frozenset(
    kind
    for kind in KINDS
    if kind.startswith(("lost-", "missing-", "exact-", "bound-exceeded-"))
    and kind not in ("exact-not-best", "missing-hidden", "missing-invented")
) | {"not-drained-open", "not-drained-missing", "not-drained-alike", "estimated-lost"}
