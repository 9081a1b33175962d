"""The steps of the runbook that inventory adds, typed line by line on two real clusters."""

from pathlib import Path

from tests.integration.runbook import PLAIN, night_of, set_scene
from tests.lab.lab import Lab


def test_its_commands_of_the_runbook_do_what_they_say(lab: Lab, tmp_path: Path) -> None:
    scene = set_scene(lab, "inventory-night")
    groups = {scene.group(name) for name in PLAIN}
    listed, _ = night_of("inventory", scene, tmp_path, "--group", f".*-{scene.suffix}").ran
    assert all(group in listed.stdout for group in groups)
    assert {*(tmp_path / "wave1.txt").read_text().split()} >= groups
