"""A store that fails: at call number N, before or after doing it, or by key; or that is slow."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from obstore import exceptions as obs

from eventlake.store import Store

# What obstore says when no answer comes, and what a server says that is busy or refuses.
TIMEOUT = (
    "Generic S3 error: Error performing PUT http://localhost/x in 5.1s, after 5 retries, "
    "max_retries: 5, retry_timeout: 180s - HTTP error: operation timed out, kind: Timeout"
)
BUSY = (
    "Generic S3 error: Error performing PUT http://localhost/x in 9ms, after 5 retries - "
    "Server returned non-2xx status code: 503 Service Unavailable: "
    "<Error><Code>SlowDown</Code></Error>"
)
REFUSED = (
    "The operation lacked the necessary privileges to complete for path x: "
    "Error performing PUT http://localhost/x in 1ms - "
    "Server returned non-2xx status code: 403 Forbidden: "
    "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
)
CALLS = frozenset(
    (
        "put",
        "get",
        "get_range",
        "get_ranges",
        "head",
        "list",
        "list_with_delimiter",
        "delete",
        "rename",
        "copy",
    )
)


class Killed(BaseException):
    """The process ends here: nothing after this is run, as far as the code under test allows."""


def timeout() -> Exception:
    """An answer that never came."""
    return obs.GenericError(TIMEOUT)


def busy() -> Exception:
    """A server that has too much to do."""
    return obs.GenericError(BUSY)


def refused() -> Exception:
    """A server that does not allow it."""
    return obs.PermissionDeniedError(REFUSED)


@dataclass
class Faulty:
    """A duck-typed obstore store: counts its calls, and does something before or after some.

    `before(number, name, key)` and `after(number, name, key)` may raise, sleep or run other things.
    A listing is one call; `after` comes when it was read to its end.
    """

    inner: Store
    before: Callable[[int, str, str], None] = lambda number, name, key: None
    after: Callable[[int, str, str], None] = lambda number, name, key: None
    calls: list[tuple[str, str]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def heal(self) -> None:
        """From now on, no fault; the count begins anew."""
        self.before = self.after = lambda number, name, key: None
        self.calls = []

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self.inner, name)
        if name not in CALLS:
            return attribute

        def call(*args: Any, **named: Any) -> Any:
            key = str(args[0] if args else "")
            with self._lock:
                number = len(self.calls)
                self.calls.append((name, key))
            self.before(number, name, " ".join(map(str, args[:2])) if name == "rename" else key)
            try:
                result = attribute(*args, **named)
            except Exception:
                # that there is no such object is an answer too
                self.after(number, name, key)
                raise
            if name == "list":
                return self._pages(result, number, key)
            self.after(number, name, key)
            return result

        return call

    def _pages(self, pages: Any, number: int, key: str) -> Iterator[Any]:
        yield from pages
        self.after(number, "list", key)


@dataclass
class At:
    """Does something at one call only, and once."""

    number: int
    act: Callable[[], None]
    done: bool = False

    def __call__(self, number: int, name: str, key: str) -> None:
        if number == self.number and not self.done:
            self.done = True
            self.act()


def raises(error: Callable[[], BaseException]) -> Callable[[], None]:
    """An action that fails."""

    def fail() -> None:
        raise error()

    return fail


def delays(seed: int, most: float) -> Callable[[int, str, str], None]:
    """Sleeps a little before most calls and long before some, the same for the same seed."""
    rng = random.Random(seed)

    def wait(number: int, name: str, key: str) -> None:
        draw = rng.random()
        if draw > 0.5:
            time.sleep(most * (draw - 0.5) * (4 if draw > 0.95 else 1))

    return wait
