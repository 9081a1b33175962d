"""Pytest fixtures around the lab; `tests/conftest.py` takes them in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.lab.lab import Lab
from tests.lab.options import MirrorOptions


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One lab for the whole test run.

    What clusters of users have beside the lab's defaults: brokers that make any topic that is asked for, which is
    Kafka's own default, a second one on the source, and an MM2 of several tasks.
    """
    folder = tmp_path_factory.mktemp("lab")
    willing = {"auto.create.topics.enable": "true"}
    # Else MM2's own consumer makes a topic again that a scene deletes.
    mirror = MirrorOptions(tasks_max=3, extra={"A.consumer.allow.auto.create.topics": "false"})
    with Lab(folder, mirror=mirror, source_brokers=2, source_overrides=willing, target_overrides=willing) as own:
        yield own


@pytest.fixture
def lab_factory(tmp_path: Path) -> Iterator[Callable[..., Lab]]:
    """Starts labs of the test's own and takes them down after it: `lab_factory(version="3.9.2")`.

    It takes what `Lab` takes, except the folder.
    """
    with ExitStack() as running:

        def make(**options: object) -> Lab:
            folder = tmp_path / f"lab-{len(list(tmp_path.glob('lab-*'))) + 1}"
            folder.mkdir()
            return running.enter_context(Lab(folder, **options))  # type: ignore[arg-type]

        yield make
