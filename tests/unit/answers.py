"""What a cluster answers where it does not do what it is asked: failures that the tests of writing share."""

from migrate.model import Failure

DENIED = Failure("GROUP_AUTHORIZATION_FAILED", "not allowed")
MOVED = Failure("NOT_COORDINATOR", "moved", retriable=True, outcome_unknown=True)
TIMED_OUT = Failure("_TIMED_OUT", "no answer", retriable=True, outcome_unknown=True)
UNSURE = Failure("UNKNOWN_SERVER_ERROR", "?", outcome_unknown=True)
