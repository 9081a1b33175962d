"""Which answers to a write prove that nothing was written, and after which it is worth another try. Pure.

Brokers hide errors that arise after the append: NOT_ENOUGH_REPLICAS_AFTER_APPEND and REQUEST_TIMED_OUT come back as
COORDINATOR_NOT_AVAILABLE, NOT_LEADER_OR_FOLLOWER as NOT_COORDINATOR (Kafka's `CoordinatorOperationExceptionHelper`, and
`GroupMetadataManager` before 4.0). An append that was never acknowledged can become visible later, so a reading that
shows the prior offset proves nothing either. What is not listed here is unknown.
"""

NOT_WRITTEN = frozenset(
    {
        # Checked by the broker before it appends to the offsets topic (`KafkaApis`, for commits
        # `OffsetMetadataManager.validateOffsetCommit`, for deletions `GroupMetadataManager`).
        "CLUSTER_AUTHORIZATION_FAILED", "COORDINATOR_LOAD_IN_PROGRESS", "FENCED_INSTANCE_ID", "FENCED_MEMBER_EPOCH",
        "GROUP_AUTHORIZATION_FAILED", "GROUP_ID_NOT_FOUND", "GROUP_SUBSCRIBED_TO_TOPIC", "ILLEGAL_GENERATION",
        "INCONSISTENT_GROUP_PROTOCOL", "INVALID_COMMIT_OFFSET_SIZE", "INVALID_GROUP_ID", "NON_EMPTY_GROUP",
        "OFFSET_METADATA_TOO_LARGE", "REBALANCE_IN_PROGRESS", "STALE_MEMBER_EPOCH", "TOPIC_AUTHORIZATION_FAILED",
        "UNKNOWN_MEMBER_ID", "UNKNOWN_TOPIC_OR_PARTITION", "UNSUPPORTED_VERSION",
        # Found by this tool, or by its client, before anything is sent.
        "GROUP_CHANGED", "JAVA_CLIENT_MISSING", "JAVA_CLIENT_UNUSABLE", "NOT_SENT", "UNSUPPORTED_BY_CLIENT",
        "_INVALID_ARG", "_UNSUPPORTED_FEATURE",
    }
)  # fmt: skip

# Kafka's errors that pass by themselves, by whichever client they come: librdkafka's `retriable()` does not say it of
# admin errors, and Java's RetriableException takes in topics that are not there.
PASSING = frozenset(
    {
        "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "LEADER_NOT_AVAILABLE", "NETWORK_EXCEPTION",
        "NOT_COORDINATOR", "NOT_LEADER_OR_FOLLOWER", "REQUEST_TIMED_OUT", "THROTTLING_QUOTA_EXCEEDED",
        "UNSTABLE_OFFSET_COMMIT",
    }
)  # fmt: skip


def may_be_written(code: str) -> bool:
    """True if a write that was answered with this error code may have been carried out all the same."""
    return code not in NOT_WRITTEN
