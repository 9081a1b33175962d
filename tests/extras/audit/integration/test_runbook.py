"""The steps of the runbook that the audit adds, typed line by line on two real clusters."""

import shutil
from pathlib import Path

import pytest

from tests.integration.runbook import Night, Typed, set_scene, steps
from tests.lab.lab import Lab


@pytest.mark.long
def test_its_commands_of_the_runbook_do_what_they_say(lab: Lab, tmp_path: Path) -> None:
    shutil.copy(lab.mm2_properties, tmp_path / "mm2.properties")
    night = Night(set_scene(lab, "audit-night"), tmp_path)
    for step in (*(s for s in steps() if isinstance(s, Typed) and s.words[0] == "export"), *steps("audit")):
        assert isinstance(step, Typed)
        if "--plan" in step.words:
            night.type(Typed(("mm2-migrate", "plan", "--out", "wave1.plan"), "", 0, ()))
        # Other tests have topics on these clusters, too.
        is_of_all = step.words[1:3] == ("audit", "run") and "--plan" not in step.words
        night.options = ("--topic", f".*-{night.scene.suffix}") if is_of_all else ()
        night.type(step)
    assert "INCOMPLETE" not in (tmp_path / "last-audit.html").read_text()
    assert {"wave1-audit", "last-audit"} <= {path.name for path in tmp_path.iterdir()}
