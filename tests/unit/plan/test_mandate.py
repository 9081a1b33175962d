"""Mandates as documents: what is approved is in them."""

import json
from dataclasses import asdict

import pytest

from migrate.plan.mandate import MappedGroup, mandate_from
from tests.unit.followscene import mandate, mandated
from tests.unit.surveyscene import FLOW

MAPPED = (MappedGroup("orders", "orders-eu", False), MappedGroup("team-(.*)", "\\1", True))


@pytest.mark.parametrize("changes", [{}, {"named_groups": ("g",), "moving_groups": ("f.*",)}, {"group_map": MAPPED}])
def test_a_mandate_is_read_back_from_json(changes):
    made = mandate(**changes)
    assert mandate_from(json.loads(json.dumps(asdict(made)))) == made


def test_a_line_that_lacks_something_fits_nothing():
    with pytest.raises(TypeError):
        mandate_from({**asdict(mandate()), "group_map": [{"source": "a", "target": "b"}]})


def test_every_line_of_the_group_map_and_its_order_are_in_the_fingerprint():
    other = (MAPPED[0], MappedGroup("team-(.*)", "\\1", False))
    maps = [(), MAPPED, MAPPED[:1], MAPPED[::-1], other]
    assert len({mandated(FLOW, group_map=group_map).fingerprint for group_map in maps}) == len(maps)
