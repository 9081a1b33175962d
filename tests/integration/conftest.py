"""The lab's killed scene, five of them with `--long`."""

from collections.abc import Iterator

import pytest

from tests.integration.clusters import delete_groups
from tests.integration.killedscene import killed
from tests.integration.scene import Scene
from tests.lab.lab import Lab
from tests.seeds import new_seed


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "killed_scene" in metafunc.fixturenames:
        scenes = range(5 if metafunc.config.getoption("--long") else 1)
        metafunc.parametrize("killed_scene", scenes, indirect=True, scope="module")


@pytest.fixture(scope="module")
def killed_scene(lab: Lab, request: pytest.FixtureRequest) -> Iterator[Scene]:
    scene = killed(lab, new_seed())
    yield scene
    # MM2 asks for the commits of every group there is once a second: those of five scenes take a third of a core.
    delete_groups(lab.source_bootstrap, scene.commits)
