"""What a consumer that cannot tell equal records apart would say of a row."""

from collections import Counter
from collections.abc import Mapping, Set

from tests.integration import oracle
from tests.integration.oracle import Truth


class AmongEquals:
    """One row, its truth, and a number for each identity: identities with the same number are one content."""

    def __init__(self, truth: Truth, source_committed: int, numbers: Mapping[str, int]) -> None:
        self.truth, self.numbers = truth, numbers
        self.owed_identities = oracle.owed(truth, source_committed)
        self.owed = Counter(self.content(identity) for identity in self.owed_identities)
        self.known = {self.content(written.identity) for written in truth.written}

    def content(self, identity: str) -> object:
        """Return what stands for all records that equal this one."""
        return self.numbers.get(identity, identity)

    def really_lost(self, lost: Set[str], target_offset: int, unowed: Set[str] = frozenset()) -> Set[str]:
        """Return those of the lost records of whose content the group reads less often than it is owed and could.

        A record without a twin is always among them. Nobody is owed the records of `unowed`.
        """
        there, ahead = self._copies(0), self._copies(target_offset)
        owed = self.owed - Counter(self.content(identity) for identity in self.owed_identities & unowed)
        short = {content for content, many in owed.items() if ahead[content] < min(many, there[content])}
        return {identity for identity in lost if self.content(identity) in short}

    def best(self) -> int:
        """Return the greatest offset from which every content comes as often as it is owed and could come."""
        there = self._copies(0)
        left = Counter({content: min(many, there[content]) for content, many in self.owed.items() if there[content]})
        best = self.truth.target.end
        for found in reversed(self.truth.target.records):
            if not left:
                break
            content = self.content(found.identity)
            if content in left:
                left[content] -= 1
                best = found.offset
                if not left[content]:
                    del left[content]
        return best

    def rereads(self, target_offset: int) -> int:
        """Count the copies at or after an offset beyond those that are owed; records of unknown content aside."""
        ahead = self._copies(target_offset)
        return sum(max(0, many - self.owed[content]) for content, many in ahead.items() if content in self.known)

    def _copies(self, start: int) -> Counter[object]:
        return Counter(self.content(found.identity) for found in self.truth.target.records if found.offset >= start)
