"""What the tests of single steps of the survey share: a request for a plan, and a timer of its steps."""

from typing import Any

from migrate.mm2.config_file import client_flow
from migrate.progress import Timer
from migrate.survey.filters import Filters
from migrate.survey.policies import Policies
from migrate.survey.survey import PlanRequest
from tests.fakes import FakeClock, NoProgress

PROPERTIES = {"bootstrap.servers": "x:1"}
FLOW = client_flow(PROPERTIES, PROPERTIES, "A", "B")


def request(**changes: Any) -> PlanRequest:
    """Return a request without filters and policies, but for `changes`."""
    values: dict[str, Any] = {
        "flow": FLOW, "filters": Filters(), "policies": Policies(), "settle_seconds": 15.0,
        "settings": {},
    }  # fmt: skip
    return PlanRequest(**(values | changes))


def timer() -> Timer:
    return Timer(FakeClock(), NoProgress())
