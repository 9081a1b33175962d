"""Replication policies and topics whose names are told apart."""

from hypothesis import strategies as st

from migrate.mm2.naming import PolicyKind, ReplicationPolicy

SEPARATORS = st.sampled_from([".", "-", "__", "_", ""])


POLICIES = st.builds(
    ReplicationPolicy,
    st.sampled_from((PolicyKind.DEFAULT, PolicyKind.IDENTITY)),
    st.sampled_from(["A", "source1", ""]),
    st.sampled_from(["B", "target2", ""]),
    SEPARATORS,
    st.booleans(),
    st.sampled_from([None, True, False]),
)


TOPICS = st.text("AB12srcetag._-", min_size=1, max_size=14) | st.sampled_from(
    ["heartbeats", "B.heartbeats", "A.t", "B.t", "source1.t", "target2.t", "a.", "..a", "xheartbeats"]
)
