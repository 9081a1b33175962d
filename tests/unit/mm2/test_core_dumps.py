"""No memory on disk: the limit is less than a page, and stays 0 where it was 0."""

import subprocess
import sys

import pytest

FORBID = """
import resource, sys
from migrate.mm2.secrets import forbid_core_dumps
if len(sys.argv) > 1:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
forbid_core_dumps()
print(*resource.getrlimit(resource.RLIMIT_CORE))
"""


@pytest.mark.parametrize(("before", "allowed"), [([], ("1 1", "0 0")), (["none"], ("0 0", "1 1"))])
def test_a_process_that_forbade_core_dumps_writes_none_and_no_hard_limit_of_0_stops_it(before, allowed):
    done = subprocess.run([sys.executable, "-c", FORBID, *before], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() in allowed and not done.stderr
