"""The steps of the runbook that positions adds, typed line by line on two real clusters."""

from pathlib import Path

from tests.integration.runbook import night_of, set_scene
from tests.lab.lab import Lab


def test_its_commands_of_the_runbook_do_what_they_say(lab: Lab, tmp_path: Path) -> None:
    scene = set_scene(lab, "positions-night")
    topic = scene.topic("orders")
    (tmp_path / "offsets.csv").write_text(
        f"holder,topic,partition,offset\nloader,{topic},0,120\nloader,{topic},1,340\n"
    )
    night = night_of("positions", scene, tmp_path)
    assert [ran.stdout.count(scene.copy(topic)) for ran in night.ran][-1] == 2
