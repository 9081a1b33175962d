"""The step of the runbook that flows adds, typed on two real clusters."""

import json
from pathlib import Path

from tests.integration.runbook import PLAIN, night_of, set_scene
from tests.lab.lab import Lab


def test_its_command_of_the_runbook_plans_each_flow(lab: Lab, tmp_path: Path) -> None:
    scene = set_scene(lab, "flows-night")
    flows = [{"name": name, "groups": [scene.group(name)]} for name in PLAIN[:2]]
    defaults = {"mm2_config": "mm2.properties", "source": "A", "target": "B", "settle": 1}
    # JSON is YAML.
    (tmp_path / "flows.yaml").write_text(json.dumps({"defaults": defaults, "flows": flows}))
    (planned,) = night_of("flows", scene, tmp_path).ran
    assert all(name in planned.stdout for name in PLAIN[:2])
    assert sorted(path.name for path in (tmp_path / "plans").glob("*.plan")) == ["billing.plan", "crm.plan"]
