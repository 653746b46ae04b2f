"""The stream of events (`GET /events/stream`): Server-Sent Events that go on where they stopped."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import json
import random
import re
import socket
import threading
from typing import TYPE_CHECKING, Any, AsyncIterator, Dict, Iterator, List, Mapping, Optional

import httpx

from ._core import Call, Settings, build_request, delay_before_repeat, error_of, successful
from ._errors import AgentEmailError, APIError, read_retry_after
from ._model import decode
from .types import Event

if TYPE_CHECKING:
    from ._client import AgentEmail, AsyncAgentEmail

#: The service sends a sign of life every 15 s.
SILENCE_SECONDS = 45.0
DEFAULT_RETRY_SECONDS = 2.0
LONGEST_RETRY_SECONDS = 30.0
#: An event has at most 256 KiB of text.
LONGEST_BLOCK_CHARACTERS = 4 * 1024 * 1024
LINE_END = re.compile(r"\r\n|\n|\r(?!\Z)")


class BlockReader:
    """Takes Server-Sent Events (WHATWG HTML) apart. A block that was cut off counts as not received."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._rest = ""
        self._fields: Dict[str, str] = {}
        self._data: List[str] = []

    def feed(self, chunk: bytes) -> Iterator[Dict[str, str]]:
        """The blocks that are complete: their `id`, `event`, `retry` and `data`, if they have them."""
        *lines, self._rest = LINE_END.split(self._rest + self._decoder.decode(chunk))
        if len(self._rest) + sum(map(len, self._data)) > LONGEST_BLOCK_CHARACTERS:
            raise AgentEmailError("The stream has an event that is too long: it is none of this API.")
        for line in lines:
            if line:
                self._take(line)
                continue
            block = {**self._fields, **({"data": "\n".join(self._data)} if self._data else {})}
            self._fields, self._data = {}, []
            yield block

    def _take(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name in ("event", "retry") or (name == "id" and "\0" not in value):
            self._fields[name] = value


class Following:
    """Where a stream is, and what happens after it ended: all of it that does not wait."""

    def __init__(self, path: str, query: Mapping[str, Any], after: Optional[str], settings: Settings) -> None:
        self.last_event_id = after
        self._path = path
        self._query = query
        self._max_retries = settings.max_retries
        self._retry_seconds = DEFAULT_RETRY_SECONDS
        self._failures = 0
        self._was_connected = False
        self._blocks = BlockReader()

    def call(self) -> Call:
        self._blocks = BlockReader()
        position = {"last-event-id": self.last_event_id} if self.last_event_id else {}
        headers = {"accept": "text/event-stream", **position}
        return Call("GET", self._path, query=self._query, headers=headers, options={"timeout": SILENCE_SECONDS})

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """The position moves with each event that is taken: what follows it comes again after an interruption."""
        self._failures = 0
        self._was_connected = True
        for block in self._blocks.feed(chunk):
            if block.get("retry", "").isdecimal():
                self._retry_seconds = min(LONGEST_RETRY_SECONDS, int(block["retry"][:9]) / 1000)
            if block.get("id"):
                self.last_event_id = block["id"]
            if "data" in block:
                yield read_event(block["data"])

    @staticmethod
    def is_stream(response: httpx.Response) -> bool:
        return response.status_code == 200 and response.headers.get("content-type", "").startswith("text/event-stream")

    def delay_after(self, outcome: Any) -> float:
        """Seconds until the next attempt, after an error, a refusal, or the end of the stream (None)."""
        if isinstance(outcome, httpx.Response):
            if outcome.is_success:
                raise APIError(outcome)
            if delay_before_repeat(outcome, 0, True) is None and read_retry_after(outcome) is None:
                raise error_of(outcome)
        self._failures += 1
        if not self._was_connected and outcome is not None and self._failures > self._max_retries:
            successful(outcome)
        wanted = read_retry_after(outcome) if isinstance(outcome, httpx.Response) else None
        backoff = min(LONGEST_RETRY_SECONDS, self._retry_seconds * 2.0 ** min(self._failures - 1, 10))
        return max(wanted or 0.0, backoff * random.uniform(0.75, 1.0))


def read_event(data: str) -> Event:
    try:
        body = json.loads(data)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise AgentEmailError("The stream has an event that is no JSON object: it is none of this API.")
    event: Event = decode(body, Event)
    return event


class EventStream:
    """Iterates over events as they happen, without end. After an interruption it goes on behind the last event that was
    taken: none is lost, and none comes twice. `last_event_id` is the position behind the current event: store it when the
    event is handled, and pass it as `after` to go on in another process. Close it, or use it in `with`."""

    def __init__(self, client: AgentEmail[Any], path: str, query: Mapping[str, Any], after: Optional[str]) -> None:
        self._client = client
        self._following = Following(path, query, after, client._settings)
        self._closed = threading.Event()
        self._socket: Any = None

    @property
    def last_event_id(self) -> Optional[str]:
        return self._following.last_event_id

    def __iter__(self) -> Iterator[Event]:
        while not self._closed.is_set():
            outcome: Any = None
            try:
                request = build_request(self._client._http, self._client._settings, self._following.call())
                response = self._client._http.send(request, stream=True, follow_redirects=False)
                try:
                    network = response.extensions.get("network_stream")
                    self._socket = network.get_extra_info("socket") if network else None
                    if not self._following.is_stream(response):
                        response.read()
                        outcome = response
                    else:
                        for chunk in response.iter_bytes():
                            for event in self._following.feed(chunk):
                                yield event
                                if self._closed.is_set():
                                    return
                            if self._closed.is_set():
                                return
                finally:
                    response.close()
            except httpx.RequestError as error:
                outcome = error
            if not self._closed.is_set():
                self._closed.wait(self._following.delay_after(outcome))

    def close(self) -> None:
        """Ends the iteration, also from another thread."""
        self._closed.set()
        # A thread that reads would wait for the next sign of life.
        with contextlib.suppress(OSError, AttributeError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> EventStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncEventStream:
    """As EventStream, for `async for`. Cancelling the task ends it."""

    def __init__(self, client: AsyncAgentEmail[Any], path: str, query: Mapping[str, Any], after: Optional[str]) -> None:
        self._client = client
        self._following = Following(path, query, after, client._settings)
        self._iterations: List[Any] = []

    @property
    def last_event_id(self) -> Optional[str]:
        return self._following.last_event_id

    def __aiter__(self) -> AsyncIterator[Event]:
        iteration = self._events()
        self._iterations.append(iteration)
        return iteration

    async def _events(self) -> AsyncIterator[Event]:
        while True:
            outcome: Any = None
            try:
                request = build_request(self._client._http, self._client._settings, self._following.call())
                response = await self._client._http.send(request, stream=True, follow_redirects=False)
                try:
                    if not self._following.is_stream(response):
                        await response.aread()
                        outcome = response
                    else:
                        async for chunk in response.aiter_bytes():
                            for event in self._following.feed(chunk):
                                yield event
                finally:
                    await response.aclose()
            except httpx.RequestError as error:
                outcome = error
            await asyncio.sleep(self._following.delay_after(outcome))

    async def close(self) -> None:
        while self._iterations:
            await self._iterations.pop().aclose()

    async def __aenter__(self) -> AsyncEventStream:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
