"""A flow: what MM2 leaves out of it, what a plan's header says of it, and its way back."""

from dataclasses import replace

import pytest

from migrate.mm2.config_file import client_flow
from migrate.mm2.flow import FlowFilter, TopicFilter
from migrate.mm2.settings import java_pattern

FLOW = client_flow({"bootstrap.servers": "a:1"}, {"bootstrap.servers": "b:1"}, "A", "B")
ONLY_G = FlowFilter(((TopicFilter((java_pattern("g.*"),), (java_pattern("gx"),)),),))


def test_a_plans_header_tells_how_mm2_runs_and_nothing_that_is_not_known(flow_of):
    assert flow_of("A->B.header.converter = x.Simple\n").runtime_words() == {
        "mm2_runs": "dedicated",
        "mm2_offsets_topic": "mm2-offsets.A.internal",
        "mm2_source_connectors": "MirrorSourceConnector",
        "mm2_checkpoint_connectors": "MirrorCheckpointConnector",
        "mm2_converters": "header.converter x.Simple",
        "mm2_group_sync": "off",
        "mm2_isolation_level": "read_uncommitted",
    }
    plain = client_flow({}, {}, "A", "B")
    assert plain.runtime_words() == {"mm2_offsets_topic": "mm2-offsets.A.internal"}
    assert "mm2_offsets_topic" not in plain.reversed().runtime_words()
    assert "mm2_group_sync" not in flow_of().reversed().runtime_words()


def test_mm2s_group_filter_leaves_groups_out_and_says_nothing_of_the_way_back():
    flow = replace(FLOW, group_filter=ONLY_G, sync_filter=ONLY_G)
    assert flow.left_out(["g1", "gx", "h"]) == ("gx", "h")
    assert FLOW.left_out(["h"]) == flow.reversed().left_out(["h"]) == ()
    for group_sync, synced in ((None, None), (False, frozenset()), (True, {"g1"})):
        syncing = replace(flow, group_sync=group_sync)
        assert syncing.synced(["g1", "h"]) == synced and syncing.reversed().synced(["g1", "h"]) is None


@pytest.mark.parametrize(
    ("of_mm2", "there", "back"),
    [
        ("read_uncommitted", "read_committed", "read_uncommitted"),
        ("read_committed", "read_committed", "read_committed"),
        (None, "read_committed", "read_uncommitted"),
    ],
)
def test_only_on_a_failback_may_aborted_records_count_and_not_where_mm2_leaves_them_out(of_mm2, there, back):
    flow = replace(FLOW, mm2_isolation_level=of_mm2)
    assert (flow.target_isolation_level, flow.reversed().target_isolation_level) == (there, back)
