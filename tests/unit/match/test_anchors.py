"""Syncs count as anchors only where their records agree, and as long as both are there."""

from dataclasses import replace

from migrate.match.equality import Content
from tests.unit.matchcases import judged, place
from tests.world.notation import hand


def test_c9_a_stale_sync_to_a_log_that_is_gone_is_refuted_by_its_records():
    world = hand(
        source="~0 1 ~2 ~3..11 12 ~13 14 15",
        target="12@0 14@1 15@2",
        syncs=[(1, 1)],
        source_start=0,
    )
    found = judged(world)
    for g in (2, 12):
        assert place(found, g).target_offset == 0


def test_an_anchor_that_retention_removes_after_it_was_compared_closes_no_window():
    stamped_anew = ((Content(1, b"k", b"v", ()), Content(2, b"k", b"v", ())),) * 5
    for at in range(1, 5):
        world = hand(
            source="26..28 80",
            target="26..28@11..13 80@65",
            syncs=[(26, 11), (28, 13), (80, 65)],
            commits=[13, 27],
            retention=[(at, True, 65)],
        )
        judged(replace(world, elsewhere=stamped_anew))
