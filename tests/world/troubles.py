"""What can go wrong, by name. A world has some of them at once, so that they cross."""

from random import Random

# name: what happens
TROUBLES = {
    "restarts": "MM2 is killed now and then, starts behind its committed offset, and replays",
    "paused-writer": "an MM2 that was thought dead wakes up, copies a stretch once more, and stops",
    "syncs-delayed": "syncs stay pending, and newer ones replace them",
    "syncs-lost": "some syncs are never written",
    "few-syncs": "offset.lag.max is so great that only gaps and restarts give syncs",
    "old-mm2": "MM2 up to 3.4.0: one sync per lifetime where the source has no gap",
    "no-syncs": "emit.offset-syncs.enabled=false, from the start or from some moment on",
    "syncs-compacted": "the offset-syncs topic is compacted: of a prefix only the last is left",
    "transactions": "the source has transactions; some are aborted",
    "read-committed": "MM2 reads the source with read_committed",
    "exactly-once": "MM2 writes in transactions, with its position in them",
    "open-source": "a transaction on the source is still open at the end",
    "open-target": "a transaction on the target is still open at the end",
    "source-compaction": "the source topic is compacted",
    "target-compaction": "the target topic is compacted",
    "source-retention": "the source's log start moves up",
    "target-retention": "the target's log start moves up",
    "source-recreated": "the source topic is deleted and created anew; MM2 goes on where it was, or from the start",
    "target-recreated": "the target topic is deleted and created anew while MM2 runs",
    "reloaded": "after a topic is re-created or truncated, producers write the same contents again",
    "source-truncated": "an unclean election on the source",
    "target-truncated": "an unclean election on the target",
    "drops": "a transform drops some records",
    "changes": "a transform changes the values of some or all records; key and time stay",
    "headers": "headers are re-encoded by a converter",
    "local-writers": "others write to the target topic too",
    "append-time": "the target stamps records when it appends them",
    "jitter": "timestamps are out of order",
    "far-future": "one record's timestamp lies far in the future",
    "look-alikes": "some records equal an earlier one in key, value, timestamp and headers",
    "neighbours": "runs of records that equal their neighbours",
    "retries": "producers retry: a batch stands on the source twice",
    "stopped-mid-replay": "MM2 is killed, starts again, and stops before it is through",
    "not-drained": "MM2 stops before it has copied everything",
    "lone-partition": "the topic has no other partition whose syncs help to tell what is kept on the way",
    "running": "everything goes on between the pins of the target and those of the source",
    "retention-while-reading": "retention deletes the start of a log between two rounds of reading",
}

# Worlds in which a copy is no longer its original, or never comes: the best place is not always to be found there.
LOSSY = frozenset({"drops", "changes"})


def crossed(dice: Random, wanted: tuple[str, ...] = (), only: bool = False) -> frozenset[str]:
    """Draw a few troubles: none in some worlds, up to nine in others; `wanted` are always among them."""
    if only:
        return frozenset(wanted)
    many = min(int(dice.expovariate(1 / 3.0)), 9)
    drawn = set(dice.sample(sorted(TROUBLES), many))
    if drawn & {"stopped-mid-replay", "running"} == {"stopped-mid-replay", "running"}:
        drawn.discard("running")
    return frozenset(drawn | set(wanted))
