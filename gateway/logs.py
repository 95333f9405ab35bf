"""The log: one clean line for each event, and a limit, so that nobody can fill a disk with it.

Lines are alike if they have the same logger, level and format string. A few like lines come at once, then one
line a minute with the number of the others. All lines together are limited, too. Lines that are left out are
counted and reported.
"""

import asyncio
import errno
import logging
import re
import sys
import threading
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

Kind = tuple[str, int, str]
"""Logger, level, format."""

FIRST_LINES = 5
"""Lines of one kind that come at once; after them comes one a minute."""

LINES = 100
"""Lines of all kinds together in a minute."""

KINDS_REPORTED = 20
"""Kinds whose left out lines are reported in a line of their own. The others share one line."""

MINUTE_S = 60.0
HOUR_S = 3600.0

RARE_SUBJECTS = 1000
"""Subjects of rare lines that are remembered: sources, or devices."""

RARE_CHARACTERS = 200
"""Characters of such a subject that count: a stranger may have written it."""

LINE_CHARACTERS = 2000

FIRST_OF_TRACEBACK, LAST_OF_TRACEBACK = 10, 30
"""Lines of a long traceback that are shown, from its beginning and from its end."""

KINDS = 500
"""Kinds that are counted apart in a minute: some libraries put a client's text into the format itself."""

OTHER: Kind = ("", logging.WARNING, "")
"""The kind under which further kinds are counted."""

OUR_PACKAGE = str(Path(__file__).parent)

NO_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that could forge a line, colour a terminal, or turn the direction of the text after them."""

log = logging.getLogger(__name__)


class CleanFormatter(logging.Formatter):
    """Writes a message as one line. An indented traceback line passes for no message."""

    def __init__(self) -> None:
        super().__init__("%(levelname)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the line without control characters."""
        return clean(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:
        """Return the traceback, indented and without control characters."""
        return _indented(super().formatException(ei))

    def formatStack(self, stack_info: str) -> str:
        """Return the stack, indented and without control characters."""
        return _indented(stack_info)


def clean(text: str) -> str:
    """Return the text with every control character spelt out, cut to a bounded length."""
    whole = _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
    return whole if len(whole) <= LINE_CHARACTERS else whole[:LINE_CHARACTERS] + " ..."


def _indented(text: str) -> str:
    lines = text.splitlines()
    if len(lines) > FIRST_OF_TRACEBACK + LAST_OF_TRACEBACK:
        lines[FIRST_OF_TRACEBACK:-LAST_OF_TRACEBACK] = ["..."]
    return "\n".join("  " + clean(line) for line in lines)


@dataclass(slots=True)
class _KindCount:
    """The lines of one kind in this minute, written and left out; a `loud` kind gets no line at all."""

    written: int = 0
    left_out: int = 0
    loud: bool = False
    last: str = ""


class LimitedHandler(logging.StreamHandler[TextIO]):
    """Writes a bounded number of lines a minute to a stream, and reports how many it left out."""

    def __init__(
        self,
        stream: TextIO | None = None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        minute_s: float = MINUTE_S,
    ) -> None:
        super().__init__(stream or sys.stderr)
        self.setFormatter(CleanFormatter())
        self.left_out = 0
        self._monotonic = monotonic
        self._minute_s = minute_s
        self._ends_at = float("-inf")
        self._lines = 0
        self._kinds: dict[Kind, _KindCount] = {}
        self._timer: threading.Timer | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record or count it. The handler's lock is held."""
        try:
            if self._monotonic() >= self._ends_at:
                self._next_minute()
            kind: Kind = (record.name, record.levelno, str(record.msg))
            if kind not in self._kinds and len(self._kinds) >= KINDS:
                kind = OTHER
            count = self._kinds.setdefault(kind, _KindCount())
            if count.loud or count.written >= FIRST_LINES or not self._write(record):
                count.left_out += 1
                count.last = record.getMessage()[:LINE_CHARACTERS]
                self.left_out += 1
                self._wake_up()
            else:
                count.written += 1
        except Exception:
            self.handleError(record)

    def report_left_out(self) -> None:
        """Report the lines that were left out so far."""
        self.acquire()
        try:
            self._next_minute()
        finally:
            self.release()

    def close(self) -> None:
        """Report the lines that were left out, and close the handler."""
        if self._timer is not None:
            self._timer.cancel()
        if self._owes():
            self.report_left_out()
        super().close()

    def _owes(self) -> bool:
        return any(count.left_out for count in self._kinds.values())

    def _write(self, record: logging.LogRecord) -> bool:
        """Return whether there was room; some is kept for telling what was left out."""
        # No traceback where all that happened is that somebody hung up.
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, ConnectionError | asyncio.IncompleteReadError):
            members = {
                **record.__dict__,
                "msg": f"{record.getMessage()}: {type(error).__name__}",
                "args": None,
            }
            record = logging.makeLogRecord({**members, "exc_info": None, "exc_text": None})
        text = self.format(record)
        lines = text.count("\n") + 1
        if self._lines + lines > LINES - KINDS_REPORTED - 1:
            return False
        self._write_text(text, lines)
        return True

    def _write_text(self, text: str, lines: int = 1) -> None:
        self._lines += lines
        try:
            self.stream.write(text + self.terminator)
            self.flush()
        except (OSError, ValueError):  # nobody reads it, and there is nowhere to say so
            self.left_out += 1

    def _wake_up(self) -> None:
        """Start a thread that reports: the event loop may be the part that has stopped."""
        if self._timer is None:
            self._timer = threading.Timer(max(0.0, self._ends_at - self._monotonic()), self._on_timer)
            self._timer.daemon = True
            self._timer.start()

    def _on_timer(self) -> None:
        self.acquire()
        try:
            self._timer = None
            if self._monotonic() >= self._ends_at:
                self._next_minute()
            elif self._owes():
                self._wake_up()
        finally:
            self.release()

    def _next_minute(self) -> None:
        """Report the left out lines. A kind with too many stays loud as long as its lines go on."""
        before, self._kinds = self._kinds, {}
        self._ends_at, self._lines = self._monotonic() + self._minute_s, 0
        silenced = [(kind, count) for kind, count in before.items() if count.left_out]
        silenced.sort(key=lambda entry: -entry[1].left_out)
        for kind, count in silenced[:KINDS_REPORTED]:
            self._kinds[kind] = _KindCount(loud=True)
            words = clean(f"{count.left_out} more like this: {count.last}")
            self._write_text(f"{logging.getLevelName(kind[1])} {words}")
        rest = [count.left_out for _, count in silenced[KINDS_REPORTED:]]
        if rest:
            self._write_text(f"WARNING {sum(rest)} more lines of {len(rest)} other kinds")


class RareLines:
    """Decides when a line about a subject is due: the first at once, then one in `every_s` with the count.

    At most `subjects` are remembered. The subject that was quiet longest is forgotten first.
    """

    def __init__(
        self, monotonic: Callable[[], float], every_s: float = HOUR_S, subjects: int = RARE_SUBJECTS
    ) -> None:
        self._monotonic = monotonic
        self._every_s = every_s
        self._most = subjects
        self._subjects: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def due(self, subject: str) -> int:
        """Count an event of the subject. Return the events since its last line if one is due, else 0."""
        now, subject = self._monotonic(), subject[:RARE_CHARACTERS]
        count, quiet_until = self._subjects.pop(subject, (0, now))
        is_due = now >= quiet_until
        self._subjects[subject] = (0, now + self._every_s) if is_due else (count + 1, quiet_until)
        if len(self._subjects) > self._most:
            self._subjects.popitem(last=False)
        return count + 1 if is_due else 0


def loop_trouble(
    _: asyncio.AbstractEventLoop, context: dict[str, Any], count: Callable[[], None] = lambda: None
) -> None:
    """Log an error that reached the event loop as one sentence, and `count` a mistake of ours.

    The message that asyncio adds is left out, because it shows arguments, which may be a client's bytes.
    """
    error = context.get("exception")
    if isinstance(error, OSError) and error.errno in NO_DESCRIPTORS:
        log.error("a connection could not be taken: %s", error.strerror)
    elif isinstance(error, ConnectionError | TimeoutError):
        log.debug("a connection ended: %s", type(error).__name__)
    elif isinstance(error, ValueError) and "_start_serving" in str(context.get("message")):
        log.debug("a listener that lacked descriptors was closed before it was opened again")
    else:
        count()
        task = context.get("task") or context.get("future")
        name = task.get_name() if isinstance(task, asyncio.Task) else "a callback"
        log.error("%s failed, and no part of the program handled it: %s", name, _in_a_line(error))


def _in_a_line(error: BaseException | None) -> str:
    """Return an error with the last line of ours that it went through, because there is no traceback."""
    if error is None:
        return "no error is known"
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if OUR_PACKAGE in frame.filename] or frames
    place = f" ({Path(ours[-1].filename).name} line {ours[-1].lineno})" if ours else ""
    return f"{type(error).__name__}: {error}{place}"


def set_up(level: str) -> None:
    """Log to standard error; the system's journal adds the time."""
    logging.basicConfig(level=level.upper(), handlers=[LimitedHandler()])


def left_out() -> int:
    """Return the number of lines since the start that were counted instead of written."""
    return sum(h.left_out for h in logging.getLogger().handlers if isinstance(h, LimitedHandler))
