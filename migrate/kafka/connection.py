"""One librdkafka admin client: made late, watched while it is used, dropped when it hangs.

Invariants, each against a fault of librdkafka 2.16:
- Every call has the longest `request_timeout`; the deadline is our own. A shorter one aborts the process
  while a coordinator is being looked up (librdkafka #4605).
- A client that missed a deadline is dropped, never asked again.
- A client is not kept for long: where it has found a group's coordinator, it waits for that broker, dead or not.
- A client is destroyed in a thread that nobody waits for: `rd_kafka_destroy` joins the client's threads, and where
  brokers come and go one of them may never end. So nothing but `Connection._held` refers to a client for long.
- librdkafka writes nothing to stderr; what its error callback says becomes the reason in a `ClusterError`.
- No request creates a topic: metadata is only ever asked for the whole cluster.
"""

import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from functools import cache, partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from migrate.clock import Backoff, SystemClock
from migrate.errors import ClusterError
from migrate.kafka.errors import (
    HOPELESS,
    code_of,
    error_of,
    failure_of,
    is_passing,
    not_sent,
    note_cause,
    on_one_line,
    refused_settings,
    timed_out,
)
from migrate.kafka.settings import ClientSettings, ready
from migrate.mm2.jaas import KERBEROS_ADVICE
from migrate.model import Failure
from migrate.silence import asking, heard

_SETTINGS: dict[str, Any] = {
    # A socket that times out while a coordinator is looked up aborts the process, as a request does.
    "socket.timeout.ms": 300_000,
    "log_level": 0,
}
PREFLIGHT_SECONDS = 15.0
# Of every request, in seconds.
LONGEST: dict[str, Any] = {"request_timeout": 3600.0}
FRESH_SECONDS = 15.0
# How long one client may take before the next one is destroyed beside it.
DESTROYING_SECONDS = 10.0
_SLICE_SECONDS = 0.1
_FIRST_TRY_SECONDS = 0.5
_PAUSE_SECONDS = 0.5
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.1, 3.0
_SECRET_WORDS = ("password", "secret", "jaas", ".pem", "oauthbearer.config")
DESTROYER = "dropped-clients"

K = TypeVar("K")
V = TypeVar("V")
# One call that asks many things.
_Reads = Callable[[AdminClient], Mapping[K, "Future[Any]"]]
_dropped: "SimpleQueue[list[AdminClient]]" = SimpleQueue()
# The threads that took longer.
_stuck: list[threading.Thread] = []


class Connection:
    """A client to one cluster, with the causes of trouble that its error callback reported.

    `deadline_seconds` is how long any one call may stay without an answer; `on_heard` is called at each part of one.
    """

    def __init__(
        self, settings: ClientSettings, deadline_seconds: float, on_heard: Callable[[], None] | None = None
    ) -> None:
        self._heard = on_heard or partial(heard, settings.name)
        self.name = settings.name
        self.deadline_seconds = deadline_seconds
        self._config = settings.config
        own = (v for k, v in self._config.items() if v and any(word in k for word in _SECRET_WORDS))
        self._secrets = {*settings.secrets, *own} - {""}
        # The client, if there is one.
        self._held: list[AdminClient] = []
        self._made_at = 0.0
        self._calls = 0
        self._causes: dict[str, str] = {}
        weakref.finalize(self, _let_go, self._held).atexit = False

    def client(self) -> AdminClient:
        """Return a client that has reached the cluster and was let in; raises `ClusterError` otherwise."""
        if not self._held:
            self._held.append(self._create())
            self._made_at = time.monotonic()
            try:
                self._reach()
            except BaseException:
                self.drop()
                raise
            self._heard()
        return self._held[0]

    def drop(self) -> None:
        """Forget the client: the next call makes a new one."""
        _let_go(self._held)

    @contextmanager
    def in_use(self, fresh: bool = False) -> Iterator[None]:
        """Keep the client while it is waited for; `fresh` puts a new one in the place of one that is old, first."""
        if fresh and self._held and not self._calls and time.monotonic() - self._made_at > FRESH_SECONDS:
            self._renew()
        self._calls += 1
        try:
            with asking(self.name, self.deadline_seconds):
                yield
        finally:
            self._calls -= 1

    def _renew(self) -> None:
        # While one hangs in its destruction, no more are made: each has threads and sockets.
        if not _dropped.empty() or any(thread.is_alive() for thread in _stuck):
            return
        held, causes = self._held[:], self._causes
        self._held.clear()
        try:
            self.client()
            _let_go(held)
        except ClusterError:
            # The old one may reach brokers that bootstrap.servers does not name; a deadline that it misses drops it.
            self._held[:], self._causes, self._made_at = held, causes, time.monotonic()

    def metadata(self) -> Any:
        """Return librdkafka's metadata of all topics and brokers; raises `ClusterError` if there is no answer."""
        backoff = _backoff(self.deadline_seconds)
        while True:
            try:
                with self.in_use():
                    return self.client().list_topics(timeout=self.deadline_seconds)
            except KafkaException as error:
                self.drop()
                failure = failure_of(error)
                if not failure.retriable or failure.code == "_TIMED_OUT" or backoff.is_over:
                    raise self._unreachable(failure.code, error_of(error).str()) from None
            # A connection broke. If the cluster cannot be reached at all, making the next client says so.
            backoff.pause()

    def answer(self, what: str, submit: Callable[[AdminClient], "Future[Any]"]) -> Any:
        """Return one call's result; raises `ClusterError` saying that `what` could not be done.

        What has no answer after half the deadline is asked once more: a client waits on for a broker that just died.
        """
        backoff, patience = _backoff(self.deadline_seconds), self.deadline_seconds / 2
        while True:
            answer = self.collect(lambda client: {what: submit(client)}, patience)[what]
            if not isinstance(answer, Failure):
                return answer
            is_first, patience = patience < self.deadline_seconds, self.deadline_seconds
            if not (is_first and answer.code == "_TIMED_OUT") and (not is_passing(answer) or backoff.is_over):
                raise ClusterError(
                    f"{self.name} could not {what}: {answer.code}: {answer.message}.",
                    "Nothing was changed by this. Check the cluster and the rights of the principal, then run again.",
                )
            # Brokers restart, controllers move, tokens end: a fresh client finds what is there.
            self.drop()
            backoff.pause()

    def collect(self, submit: "_Reads[K]", seconds: float = 0.0) -> dict[K, Any]:
        """Return the result, or a `Failure`, of each part of one call; waits for `seconds`, else until the deadline."""
        patience = seconds or self.deadline_seconds
        with self.in_use(fresh=True):
            futures = submit(self.client())
            end = time.monotonic() + patience
            while (left := end - time.monotonic()) > 0:
                # All are waited for in slices, in between the client may say why it cannot get on.
                if not wait(futures.values(), timeout=min(left, _SLICE_SECONDS)).not_done:
                    break
                self.client().poll(0)
            late = timed_out(patience)
            # Before the client is dropped: what it is destroyed over is answered, but with that.
            answers = {key: _outcome(future) if future.done() else late for key, future in futures.items()}
            if any(answer is late for answer in answers.values()):
                self.drop()
            else:
                self._heard()
            return answers

    def gather(
        self,
        keys: Iterable[K],
        submit: Callable[[AdminClient, K], "Future[Any]"],
        concurrency: int,
        writing: bool = False,
    ) -> dict[K, Any]:
        """Return for each key its call's result, or a `Failure`; at most `concurrency` calls in flight.

        After a missed deadline reads that were in flight are asked again of a new client, writes are
        `outcome_unknown`. If since the last missed deadline no answer came, the rest is not asked any more.
        """
        with self.in_use(fresh=True):
            waiting = deque(keys)
            answers: dict[K, Any] = {}
            running: dict[Future[Any], tuple[K, float]] = {}
            # Futures report here themselves: waiting for a hundred at once costs more than the calls.
            done: SimpleQueue[Future[Any]] = SimpleQueue()
            answered = True
            while waiting or running:
                # Outside of what a key answers for: a cluster that cannot be reached is an error of all.
                self.client()
                while waiting and len(running) < concurrency:
                    key = waiting.popleft()
                    try:
                        future = submit(self.client(), key)
                    except (KafkaException, ValueError, TypeError) as error:
                        answers[key] = failure_of(error)
                        continue
                    running[future] = (key, time.monotonic() + self.deadline_seconds)
                    future.add_done_callback(done.put)
                for future in _finished(done) if running else ():
                    # One of a client that was dropped has been answered for already.
                    if future in running:
                        answers[running.pop(future)[0]] = _outcome(future, writing)
                        answered = True
                        self._heard()
                self.client().poll(0)
                now = time.monotonic()
                if running and next(iter(running.values()))[1] <= now:
                    for key, deadline in running.values():
                        if writing or deadline <= now or not answered:
                            answers[key] = timed_out(self.deadline_seconds, writing)
                        else:
                            waiting.append(key)
                    running.clear()
                    self.drop()
                    if not answered:
                        unasked = not_sent(self.deadline_seconds) if writing else timed_out(self.deadline_seconds)
                        answers |= dict.fromkeys(waiting, unasked)
                        waiting.clear()
                    answered = False
            return answers

    def _create(self) -> AdminClient:
        # Not a method of ours: the client would hold us, and we hold the client.
        causes = self._causes = {}
        ours = {**_SETTINGS, "error_cb": partial(note_cause, causes)}
        try:
            return AdminClient({"client.id": "mm2-migrate", **ready(self._config), **ours})
        except (KafkaException, ValueError, TypeError) as error:
            raise refused_settings(self.name, "used", error, self._secrets) from None

    def _reach(self) -> None:
        """Wait for the first metadata, the proof of reachability and authentication."""
        end = time.monotonic() + min(self.deadline_seconds, PREFLIGHT_SECONDS)
        # In tries that grow: between them the error callback may say that waiting is in vain.
        patience = _FIRST_TRY_SECONDS
        while True:
            try:
                self._held[0].list_topics(timeout=max(_SLICE_SECONDS, min(end - time.monotonic(), patience)))
                return
            except KafkaException as error:
                last = error_of(error)
            patience *= 2
            self._held[0].poll(0)
            for code in self._causes:
                if code in HOPELESS:
                    raise self._unreachable(code, self._causes[code])
            if time.monotonic() >= end:
                raise self._unreachable(code_of(last), last.str())

    def _unreachable(self, code: str, text: str) -> ClusterError:
        # "All broker connections are down" and a bare timeout name no cause; the transport error before does.
        for cause in ("_AUTHENTICATION", "_SSL", "_RESOLVE", "_TRANSPORT"):
            if cause in self._causes and code not in HOPELESS:
                code, text = cause, self._causes[cause]
        kind, todo = _EXPLANATIONS.get(code, ("no answer", _CHECK_BROKERS))
        if (kind, todo) == _LOGIN_FAILED and (login := self._config.get("oauth_cb")):
            todo = login.advice
        elif (kind, todo) == _LOGIN_FAILED and self._config.get("sasl.mechanism") == "GSSAPI":
            todo = KERBEROS_ADVICE
        return ClusterError(f"{self.name} cannot be reached: {kind}: {on_one_line(text, self._secrets)}.", todo)


def asked_until_answered(
    ask: Callable[[Sequence[K]], dict[K, V]],
    keys: Sequence[K],
    is_passing: Callable[[V], bool],
    connections: Iterable[Connection],
    deadline_seconds: float,
) -> dict[K, V]:
    """Return the answers; what failed in passing is asked again, with fresh clients, until the deadline."""
    answers = ask(keys)
    backoff = Backoff(SystemClock(), FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, deadline_seconds)
    while (passing := [key for key, answer in answers.items() if is_passing(answer)]) and not backoff.is_over:
        for connection in connections:
            connection.drop()
        backoff.pause()
        answers |= ask(passing)
    return answers


def _backoff(deadline_seconds: float) -> Backoff:
    return Backoff(SystemClock(), _PAUSE_SECONDS, _PAUSE_SECONDS, deadline_seconds)


def _let_go(held: "list[AdminClient]") -> None:
    """Empty the list, and have what was in it destroyed by a thread that may hang for ever."""
    if held:
        _dropped.put(held[:])
        held.clear()
        _start_destroying()


@cache
def _start_destroying() -> None:
    def destroy() -> None:
        while True:
            # By a thread of its own: one that hangs for ever must not keep all later ones alive.
            destroying = threading.Thread(target=_dropped.get().clear, name=DESTROYER, daemon=True)
            destroying.start()
            destroying.join(DESTROYING_SECONDS)
            if destroying.is_alive():
                _stuck[:] = [*(thread for thread in _stuck if thread.is_alive()), destroying]

    # Started once, by whoever drops the first: a finalizer may run where no thread can be started.
    threading.Thread(target=destroy, name=DESTROYER, daemon=True).start()


def _finished(done: "SimpleQueue[Future[Any]]") -> "Iterator[Future[Any]]":
    """Yield what has finished, waiting a moment for the first."""
    with suppress(Empty):
        yield done.get(timeout=_SLICE_SECONDS)
        while True:
            yield done.get_nowait()


def _outcome(future: "Future[Any]", writing: bool = False) -> Any:
    error = future.exception()
    return future.result() if error is None else failure_of(error, writing)


_CHECK_BROKERS = (
    "Check bootstrap.servers and security.protocol, that the brokers run, and that this machine may connect to them."
)
_LOGIN_FAILED = (
    "authentication failed",
    "Check the user, the password and sasl.mechanism in the client properties of this cluster.",
)
_EXPLANATIONS = {
    "_AUTHENTICATION": _LOGIN_FAILED,
    "SASL_AUTHENTICATION_FAILED": _LOGIN_FAILED,
    "_SSL": (
        "TLS failed",
        "Check security.protocol and the certificates (ssl.*) in the client properties of this cluster, and the "
        "brokers' own: who signed them, for which host names, and whether they have expired.",
    ),
    "_RESOLVE": ("the host name is not known", "Check the host names in bootstrap.servers."),
    "_TRANSPORT": ("the connection failed", _CHECK_BROKERS),
}
