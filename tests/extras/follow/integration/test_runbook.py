"""The steps of the runbook that follow adds, typed line by line on two real clusters."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.integration.clusters import commits_on
from tests.integration.runbook import PLAIN, night_of, set_scene
from tests.lab.lab import Lab


def test_its_commands_of_the_runbook_do_what_they_say(lab: Lab, tmp_path: Path) -> None:
    scene = set_scene(lab, "follow-night")
    wave = [scene.group(name) for name in PLAIN[:2]]
    (tmp_path / "wave1.txt").write_text("".join(f"{group}\n" for group in wave))
    until = (datetime.now(UTC) + timedelta(days=1)).isoformat(timespec="seconds")
    night = night_of("follow", scene, tmp_path, TIME=until)
    assert len(night.ran) == 4
    assert set(commits_on(lab.target_bootstrap, [scene.group(name) for name in PLAIN])) == set(wave)
