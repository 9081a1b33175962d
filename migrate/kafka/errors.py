"""What librdkafka's errors mean for a caller who must decide: try again, read back, or give up.

`KafkaError.retriable()` is False for every admin error, even where a second try is right, so there is a table.
"""

import re
from collections.abc import Iterable
from dataclasses import replace

from confluent_kafka import KafkaError, KafkaException

from migrate.errors import ClusterError
from migrate.mm2.secrets import redact
from migrate.model import Failure
from migrate.write_outcome import PASSING, may_be_written

# Kafka's own names where librdkafka shortens them: plans and journals are read beside Kafka's documentation.
_KAFKA_NAMES = {
    "UNKNOWN_TOPIC_OR_PART": "UNKNOWN_TOPIC_OR_PARTITION",
    "NOT_LEADER_FOR_PARTITION": "NOT_LEADER_OR_FOLLOWER",
    "UNKNOWN": "UNKNOWN_SERVER_ERROR",
}
RETRIABLE = PASSING | {"_TIMED_OUT", "_TIMED_OUT_QUEUE", "_TRANSPORT", "_WAIT_COORD", "_DESTROY", "_DESTROY_BROKER"}
# librdkafka no longer knows a topic or its leader, since a connection broke: the cluster has not said that it is gone.
FORGOTTEN = frozenset({"_NOENT", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION"})
# No waiting helps: credentials and certificates do not change by themselves.
HOPELESS = frozenset({"_AUTHENTICATION", "_SSL", "SASL_AUTHENTICATION_FAILED", "UNSUPPORTED_SASL_MECHANISM"})
_STOP = "stop its consumers on this cluster, then run again"
_REMEDIES = {
    "UNKNOWN_MEMBER_ID": f"the group has active members: {_STOP}",
    "STALE_MEMBER_EPOCH": f"the group is active: {_STOP}",
    "ILLEGAL_GENERATION": f"the group is active: {_STOP}",
    "REBALANCE_IN_PROGRESS": f"the group is rebalancing: {_STOP}",
    "NON_EMPTY_GROUP": f"the group has active members: {_STOP}",
    "GROUP_AUTHORIZATION_FAILED": "grant the principal DESCRIBE on the group",
    "TOPIC_AUTHORIZATION_FAILED": "grant the principal DESCRIBE on the topic",
    "CLUSTER_AUTHORIZATION_FAILED": "grant the principal DESCRIBE on the cluster",
    "UNKNOWN_TOPIC_OR_PARTITION": "it is not there, or the principal lacks DESCRIBE on the topic",
    "UNSTABLE_OFFSET_COMMIT": "a transaction that commits offsets of this group is still open",
}
TOO_FEW_COPIES = (
    "fewer copies of __consumer_offsets may be in step than its min.insync.replicas, or the broker that coordinates "
    "the group may be down"
)
_WRITING_REMEDIES = {
    "GROUP_AUTHORIZATION_FAILED": "grant the principal READ on the group, and DELETE where it is to be deleted",
    "TOPIC_AUTHORIZATION_FAILED": "grant the principal READ on the topic",
    # What brokers make of NOT_ENOUGH_REPLICAS, too.
    "COORDINATOR_NOT_AVAILABLE": TOO_FEW_COPIES,
}
_REJECTED = re.compile(r"SSL.*\balert\b.*(certificate|unknown ca|handshake failure)", re.I)
# READ brings DESCRIBE with it; DESCRIBE alone shows a topic whose records cannot be read.
_FETCHING_REMEDIES = {"TOPIC_AUTHORIZATION_FAILED": "grant the principal READ on the topic, which includes DESCRIBE"}


def error_of(reason: BaseException | KafkaError) -> KafkaError:
    """Return the KafkaError inside an exception, or one that carries its text."""
    if isinstance(reason, KafkaError):
        return reason
    if isinstance(reason, KafkaException) and reason.args and isinstance(reason.args[0], KafkaError):
        return reason.args[0]
    return KafkaError(KafkaError._FAIL, str(reason) or type(reason).__name__)


def on_one_line(text: str, secrets: Iterable[str]) -> str:
    """Return librdkafka's text as the middle of a sentence: on one line, without any secret of the settings."""
    return " ".join(redact(text, secrets).split()).rstrip(".")


def refused_settings(name: str, doing: str, reason: BaseException | KafkaError, secrets: Iterable[str]) -> ClusterError:
    """Return the error of a cluster for which librdkafka makes no client; `doing` is what it is for: "read", "used"."""
    return ClusterError(
        f"{name} cannot be {doing} with these settings: {on_one_line(error_of(reason).str(), secrets)}.",
        "Correct the client properties of this cluster.",
    )


def code_of(reason: BaseException | KafkaError) -> str:
    """Return Kafka's name of an error, e.g. "UNKNOWN_MEMBER_ID"; librdkafka's own begin with "_"."""
    name = error_of(reason).name()
    return _KAFKA_NAMES.get(name, name)


def note_cause(causes: dict[str, str], error: KafkaError) -> None:
    """Keep by code what a client's error callback says: of several wordings the longest, which guesses at a cause."""
    code, text = code_of(error), error.str()
    # With TLS 1.3 a broker rejects a certificate after the handshake: librdkafka calls that a lost connection.
    if _REJECTED.search(text):
        code = "_SSL"
    causes[code] = max(causes.get(code, ""), text, key=len)


def failure_of(reason: BaseException | KafkaError, writing: bool = False, fetching: bool = False) -> Failure:
    """Return the `Failure` for one group or partition, with the next step where it is known.

    `writing` says that the call changes the cluster: then its outcome is unknown unless the code proves that nothing
    was written; `fetching` that it reads records.
    """
    code = code_of(reason)
    text = error_of(reason).str()
    special = _WRITING_REMEDIES if writing else _FETCHING_REMEDIES if fetching else {}
    remedy = special.get(code) or _REMEDIES.get(code)
    message = f"{text} ({remedy})" if remedy else text
    return Failure(code, message, code in RETRIABLE, writing and may_be_written(code))


def is_passing(failure: Failure) -> bool:
    """Return whether a read that failed so is worth another try with a fresh client.

    A client in use was let in before: a login that is refused it later had a token that ended on the way. If more is
    wrong than that, the fresh client is not let in at all, which is told as what it is. Callers ask only about topics
    that the cluster has listed, so one that the client does not know is one that it has forgotten.
    """
    return failure.retriable or failure.code == "_AUTHENTICATION" or failure.code in FORGOTTEN


def timed_out(seconds: float, writing: bool = False) -> Failure:
    """Return the `Failure` of a call that got no answer within our own deadline."""
    return Failure("_TIMED_OUT", f"no answer within {seconds:g} s", True, writing)


def not_sent(seconds: float) -> Failure:
    """Return the `Failure` of a write that was not sent, because those before it got no answer."""
    return Failure("NOT_SENT", f"not sent: the calls before it got no answer within {seconds:g} s", True)


def or_too_few_copies(failure: Failure) -> Failure:
    """Return why a group's offsets could not be read; an answer that never came says what a broker may be waiting for.

    Since Kafka 4.0 a broker gives stable offsets once all that was written before is committed
    (`GroupCoordinatorService.fetchOffsets`): with too few copies in step, never.
    """
    if failure.code == "_TIMED_OUT":
        return replace(failure, message=f"{failure.message} ({TOO_FEW_COPIES})")
    return failure
