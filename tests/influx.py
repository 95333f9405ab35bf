"""A scripted InfluxDB: it keeps a point by series and time, so that a point that comes again overwrites."""

import re
from collections.abc import Callable

from tests.receivers import Receiver, Reply, Request

LINE = re.compile(r"(?P<series>(?:\\.|[^ \\])+) (?P<fields>\S+) (?P<at>-?[0-9]+)")


class FakeInflux(Receiver):
    """`points` by series and microseconds. `writes` counts the points of each request that was taken.

    `refuses` says which lines it never takes; then the whole request is refused, as version 3 does when it is
    told to.
    """

    def __init__(self, refuses: Callable[[str], bool] = lambda _: False) -> None:
        super().__init__(self._answer)
        self.points: dict[tuple[str, int], str] = {}
        self.writes: list[int] = []
        self.token = ""
        self.refuses = refuses

    def _answer(self, request: Request) -> Reply:
        if self.token and request.headers.get("authorization") not in {
            f"Token {self.token}",
            f"Bearer {self.token}",
        }:
            return Reply(401, b'{"code":"unauthorized"}')
        lines = [line for line in request.body.decode().split("\n") if line and not line.startswith("#")]
        if any(self.refuses(line) or not LINE.fullmatch(line) for line in lines):
            return Reply(400, b'{"code":"invalid","message":"unable to parse"}')
        self.keep(lines)
        return Reply(204, b"")

    def keep(self, lines: list[str]) -> None:
        """Write the points, the last of the same series and time wins."""
        for line in lines:
            found = LINE.fullmatch(line)
            assert found is not None
            self.points[found["series"], int(found["at"])] = found["fields"]
        self.writes.append(len(lines))
