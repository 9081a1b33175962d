"""The topics that brokers' log directories name: all of them, or a failure where a part is missing."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from migrate.model import Failure
from migrate.spark.hosted_topics import topics_of


@dataclass
class Folder:
    """A log directory as Java's Admin tells it."""

    places: str = "[]"
    failed: object = None

    def error(self) -> object:
        return self.failed

    def replicaInfos(self) -> object:  # noqa: N802
        return SimpleNamespace(keySet=lambda: SimpleNamespace(toString=lambda: self.places))


def hosted(told: Mapping[int, Mapping[str, Folder]], asked_of=(1, 2)):
    return topics_of(told, asked_of, lambda error: str(error))


def test_log_directories_that_all_tell_name_every_topic():
    told = hosted({1: {"/a": Folder("[t-0, t-1]"), "/b": Folder("[my-topic-12]")}, 2: {"/a": Folder()}})
    assert told == {"t", "my-topic"}


@pytest.mark.parametrize(
    ("told", "code"),
    [
        ({1: {"/a": Folder("[t-0]")}, 2: {}}, "NO_ANSWER"),
        ({1: {"/a": Folder("[t-0]")}}, "NO_ANSWER"),
        ({}, "NO_ANSWER"),
        ({1: {"/a": Folder("[t-0]")}, 2: {"/a": Folder("[u-0]"), "/b": Folder(failed="DISK")}}, "DISK"),
    ],
    ids=["a broker without directories", "a broker is missing", "none answered", "a directory with an error"],
)  # fmt: skip
def test_a_broker_or_a_directory_that_does_not_tell_is_a_failure(told, code):
    failure = hosted(told)
    assert isinstance(failure, Failure) and failure.code == code


def test_a_cluster_without_brokers_tells_nothing():
    assert isinstance(hosted({}, ()), Failure)
