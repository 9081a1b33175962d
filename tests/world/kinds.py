"""What can be wrong with an answer, by name, and what of it is no failure: what docs/translation.md names."""

# kind of violation: what it means.
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
    "missing-invented": "a row counts more missing records than there are",
    "missing-invented-changed": "so, but the copies of no fewer are changed on the way, and not recognised",
    "missing-invented-uncalibrated": "so, where what the way keeps was guessed wrong",
    "outside-log": "the row stands outside the target's log",
    "estimated-lost": "a row of Law 2, bounded by a proven sync or by a timestamp, loses a record",
    "not-drained": "the tail is said to have come over, and it has not",
    "not-drained-missing": "so, of records below the last sync that MM2 was set back to; missing or superseded in rows",
    "not-drained-alike": "so by identity, but copies of equal records stand for those that are still to come",
    "no-answer": "a commit was asked about and not answered",
    "raised": "the matching raised an error, or asked for what can't be read",
}

_PENDING = (
    "*Records of a transaction that is still open* on the source, copied by an MM2 that reads uncommitted, and equal "
    "to older records or overtaken by a replay that stopped midway: a row near the last stable offset may pass over "
    "their copies, and over a record that one of them equals: that copy is taken for the record's own."
)
_UNCALIBRATED = (
    "*A topic with hardly any syncs, or with contents that are changed on the way*, whose timestamps are not kept, "
    "although those of a few records happen to agree."
)
_DELETED = (
    "A row does not show what retention deletes on the target after the row's records were compared: it may say "
    "`exact` below the log's new start, and does not count the deleted records as missing."
)
_ALIKE = "Which offset is best, and how many records are read twice, holds for contents then, not for records."
_CHANGED = (
    "A record whose copy was changed beyond what its topic's equality leaves out counts as missing; where calibration "
    "was misled by a few records, all of them may."
)

# Kind of violation that is counted and shown, and no failure: the sentence of docs/translation.md that names it.
EXCUSED = {
    "lost-pending": _PENDING,
    "lost-uncalibrated": _UNCALIBRATED,
    "lost-changed": (
        "*Contents that are changed on the way*, where a record shares time and key with an owed one, and the source "
        "no longer has it, or a replay that stopped midway has copied it again (such a partition is a `block`, not "
        "drained): it is taken for its copy."
    ),
    "lost-superseded": (
        "*A compacted target* whose cleaner has removed the newer copy of a record and left an older one: the group "
        "may pass over that one."
    ),
    "lost-counted": (
        "*Others' records amid the copies of what retention removed on the source* (a local writer's, an earlier "
        "log's), just as many as there were records that MM2 did not copy, or that equal one another: a row below the "
        "source's log start is then counted too far."
    ),
    "lost-replay-believed": (
        "*A replay that stopped midway*, where the row's window is beyond `--match-limit` and timestamps are out of "
        "order: an MM2 that was killed again, or that began again because the source had lost its end (such a "
        "partition is a `block`, not drained), or a second one that was thought dead."
    ),
    "lost-sync-alike": (
        "*A target that lost its beginning*, where the row's window is beyond `--match-limit`: the sync's offset may "
        "then hold the copy of a later record that equals the sync's own in everything, and the row passes over it."
    ),
    "lost-alike": (
        "*Records that are equal in everything that survives the way.* A group may then read one of them instead of "
        "the other. It gets as many records of that content as it is owed."
    ),
    "exact-before-deletion": _DELETED,
    "exact-uncalibrated": _UNCALIBRATED,
    "exact-not-best-pending": _PENDING,
    "exact-not-best-alike": _ALIKE,
    "bound-exceeded-alike": _ALIKE,
    "bound-exceeded-gone": (
        "A copy of a consumed record that is gone from the source, yet younger, is left out as well."
    ),
    "bound-exceeded-hidden": (
        "(A replay that is just as long as what MM2 left out between the same two syncs does hide, and the row's "
        "re-reads are then too low by its length; it loses no record.)"
    ),
    "missing-alike": "A record does not count as missing while the copy of an equal record may be its own.",
    "missing-superseded": (
        "A compacted target may lack superseded records, because its cleaner ran earlier than the source's: "
        "tombstones, and records whose key comes again later in a record that is there (or was, as a tombstone), do "
        "not count (if `cleanup.policy` may be read, which needs DESCRIBE_CONFIGS on the topic)."
    ),
    "missing-before-deletion": _DELETED,
    "missing-not-read": (
        "Whether a record that they are owed is missing on the target is not known (`missing_on_target` is null, and "
        "the check of that name `not-visible`): nobody read it."
    ),
    "missing-beyond-window": (
        "Only what was read is counted: records missing above a window's upper end show in the rows of groups further "
        "back, and what retention has removed on the source since is not seen at all."
    ),
    "missing-invented-changed": _CHANGED,
    "missing-invented-uncalibrated": _CHANGED,
    "not-drained-missing": (
        "*An MM2 that was set back* behind records that it had passed over, or whose copies a cleaner has removed: "
        "they are counted as missing, `missing-on-target`, or as superseded, although it will copy them yet."
    ),
    "not-drained-alike": (
        "Records that equal one another count for one another: a partition may count as drained while MM2 is still to "
        "copy a record that equals one that is there."
    ),
}
