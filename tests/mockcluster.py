"""librdkafka's own mock cluster, inside this process: real sockets, and errors at will that no broker gives to order.

It keeps commits by partition, and says nothing to "all of a group's partitions".
"""

import ctypes
from collections.abc import Sequence
from pathlib import Path

import confluent_kafka

FETCH, LIST_OFFSETS, OFFSET_COMMIT, OFFSET_FETCH = 1, 2, 8, 9
NOT_LEADER_OR_FOLLOWER = 6
COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR = 14, 15, 16
TOPIC_AUTHORIZATION_FAILED = 29
_PRODUCER = 0
_TEXT = 512


class MockCluster:
    """Brokers that listen on 127.0.0.1 until this process ends."""

    def __init__(self, brokers: int = 3) -> None:
        self._library = _library()
        error = ctypes.create_string_buffer(_TEXT)
        conf = self._library.rd_kafka_conf_new()
        self._library.rd_kafka_conf_set(conf, b"log_level", b"0", error, _TEXT)
        client = self._library.rd_kafka_new(_PRODUCER, conf, error, _TEXT)
        assert client, error.value
        self._cluster = self._library.rd_kafka_mock_cluster_new(client, brokers)
        self.bootstrap: str = self._library.rd_kafka_mock_cluster_bootstraps(self._cluster).decode()

    def create_topic(self, topic: str, partitions: int) -> None:
        assert not self._library.rd_kafka_mock_topic_create(self._cluster, topic.encode(), partitions, 1)

    def will_answer(self, request: int, errors: Sequence[int]) -> None:
        """Answer the next requests of a kind with these errors, one after the other."""
        codes = (ctypes.c_int * len(errors))(*errors)
        self._library.rd_kafka_mock_push_request_errors_array(self._cluster, request, len(errors), codes)

    def will_take(self, milliseconds: int, broker: int = 1) -> None:
        """Let the broker answer so late from now on."""
        self._library.rd_kafka_mock_broker_set_rtt(self._cluster, broker, milliseconds)


def _library() -> ctypes.CDLL:
    """The library that the confluent-kafka package brings along, loaded already."""
    folder = Path(confluent_kafka.__file__).parent.with_name("confluent_kafka.libs")
    (file,) = folder.glob("librdkafka-*")
    library = ctypes.CDLL(str(file))
    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    for name, result, arguments in (
        ("conf_new", pointer, []),
        ("conf_set", ctypes.c_int, [pointer, text, text, text, ctypes.c_size_t]),
        ("new", pointer, [ctypes.c_int, pointer, text, ctypes.c_size_t]),
        ("mock_cluster_new", pointer, [pointer, ctypes.c_int]),
        ("mock_cluster_bootstraps", text, [pointer]),
        ("mock_broker_set_rtt", ctypes.c_int, [pointer, ctypes.c_int32, ctypes.c_int]),
        ("mock_topic_create", ctypes.c_int, [pointer, text, ctypes.c_int, ctypes.c_int]),
        (
            "mock_push_request_errors_array",
            None,
            [pointer, ctypes.c_int16, ctypes.c_size_t, ctypes.POINTER(ctypes.c_int)],
        ),
    ):
        function = getattr(library, f"rd_kafka_{name}")
        function.restype, function.argtypes = result, arguments
    return library
