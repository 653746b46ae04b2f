"""The stream of events, cut wherever a connection can be cut."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import Any, Dict, List

import pytest

from agent_email import APIError, AgentEmail, AgentEmailError, AsyncAgentEmail, InvalidCursorError, Model, types
from agent_email._streams import BlockReader
from conftest import FaultyServer, Reply, Runner, Seen
from test_retries import options, problem

EVENTS = [{"id": f"evt_{i}", "type": "message.received", "data": {"message_id": f"msg_{i}", "subject": "Grüße 🎉"}} for i in range(12)]


def block(position: int) -> bytes:
    return f"id: {position}\nevent: message.received\ndata: {json.dumps(EVENTS[position - 1], ensure_ascii=False)}\n\n".encode()


HEAD = b"retry: 20\nid: 0\n: connected\n\n"


def resumable(cuts: List[int]) -> Any:
    """A stream that begins behind Last-Event-ID, and breaks after so many bytes each time."""
    rest = list(cuts)

    def answer(request: Seen) -> Reply:
        after = int(request.headers.get("last-event-id", "0"))
        body = HEAD.replace(b"id: 0", f"id: {after}".encode()) + b"".join(block(i) for i in range(after + 1, len(EVENTS) + 1))
        return Reply(200, body, {"content-type": "text/event-stream; charset=utf-8"}, cut_after=rest.pop(0) if rest else None)

    return answer


def take(runner: Runner, count: int, **given: Any) -> List[Any]:
    """The first events of a stream."""
    taken: List[Any] = []

    def sync_take(client: AgentEmail) -> None:
        with client.events.stream() as stream:
            for event in stream:
                taken.append((event, stream.last_event_id))
                if len(taken) == count:
                    return

    async def async_take(client: AsyncAgentEmail) -> None:
        async with client.events.stream() as stream:
            async for event in stream:
                taken.append((event, stream.last_event_id))
                if len(taken) == count:
                    return

    use: Any = async_take if runner.is_async else sync_take
    runner.run(use, **given)
    return taken


def test_none_is_lost_and_none_comes_twice_wherever_the_connection_breaks(server: FaultyServer, runner: Runner) -> None:
    one = len(block(1))
    cuts = [0, 5, len(HEAD), len(HEAD) + 1, len(HEAD) + one - 1, len(HEAD) + one, len(HEAD) + one + 40, len(HEAD) + 2 * one - 2]
    server.answer = resumable(cuts)
    taken = take(runner, len(EVENTS), **options(server))
    assert [event.id for event, _ in taken] == [event["id"] for event in EVENTS]
    assert [position for _, position in taken] == [str(i + 1) for i in range(len(EVENTS))]
    assert isinstance(taken[0][0], types.MessageReceivedEvent) and taken[0][0].data.subject == "Grüße 🎉"
    assert len(server.seen) == len(cuts) + 1


def test_any_division_into_chunks_gives_the_same_events() -> None:
    text = b"\xef\xbb\xbf" + HEAD + block(1).replace(b"\n", b"\r\n") + b": alive\r\rid: 7\n\ndata: a\ndata: b\nid\n\nid: x\0y\ndata:c\n\ndata: cut"

    def read(size: int) -> List[Dict[str, str]]:
        reader = BlockReader()
        return [one for start in range(0, len(text), size) for one in reader.feed(text[start : start + size])]

    whole = read(len(text))
    assert [one.get("data", "")[:3] for one in whole] == ["", '{"i', "", "", "a\nb", "c"]
    assert [one.get("id") for one in whole] == ["0", "1", None, "7", "", None]
    for size in range(1, 60):
        assert read(size) == whole


def test_the_stream_begins_where_it_is_told_and_with_its_filters(server: FaultyServer, runner: Runner) -> None:
    server.answer = resumable([])
    seen: List[Any] = []

    async def first_async(client: AsyncAgentEmail) -> None:
        async with client.events.stream(types=["message.received", "message.sent"], inbox_id="inb_1", after="10") as stream:
            async for event in stream:
                return seen.append(event.id)

    def first(client: AgentEmail) -> None:
        with client.events.stream(types=["message.received", "message.sent"], inbox_id="inb_1", after="10") as stream:
            seen.append(next(iter(stream)).id)

    use: Any = first_async if runner.is_async else first
    runner.run(use, **options(server))
    assert seen == ["evt_10"]
    assert server.seen[0].path == "/api/v1/events/stream?types=message.received%2Cmessage.sent&inbox_id=inb_1"
    assert server.seen[0].headers["last-event-id"] == "10" and server.seen[0].headers["accept"] == "text/event-stream"


def test_refusals_end_it_and_failures_in_passing_do_not(server: FaultyServer, runner: Runner) -> None:
    busy = problem(503, "unavailable")
    busy.headers["retry-after"] = "0"
    stream = resumable([len(HEAD) + 10])
    replies: List[Any] = [stream, busy, busy, busy, busy, busy, stream]
    server.answer = lambda request: (lambda reply: reply if isinstance(reply, Reply) else reply(request))(
        replies.pop(0) if len(replies) > 1 else replies[0]
    )
    assert [event.id for event, _ in take(runner, 3, **options(server))] == ["evt_0", "evt_1", "evt_2"]
    server.script(problem(400, "invalid_cursor"))
    with pytest.raises(InvalidCursorError):
        take(runner, 1, **options(server))
    server.script(Reply(200, b"<html>", {"content-type": "text/html"}))
    with pytest.raises(APIError, match="base_url"):
        take(runner, 1, **options(server))
    server.script(Reply(200, b"data: [1]\n\n", {"content-type": "text/event-stream"}))
    with pytest.raises(AgentEmailError, match="no JSON object"):
        take(runner, 1, **options(server))


def test_what_never_answers_is_an_error_after_the_retries(runner: Runner) -> None:
    with pytest.raises(AgentEmailError):
        take(runner, 1, api_key="k", base_url="http://127.0.0.1:1", max_retries=0)


def test_an_unknown_type_is_kept(server: FaultyServer, runner: Runner) -> None:
    server.script(Reply(200, b'id: 1\ndata: {"type": "x.y", "id": "evt_1"}\n\n', {"content-type": "text/event-stream"}))
    [(event, _)] = take(runner, 1, **options(server))
    assert type(event) is Model and event.to_dict()["type"] == "x.y"


def test_an_event_without_end_is_refused() -> None:
    reader = BlockReader()
    with pytest.raises(AgentEmailError, match="too long"):
        for _ in range(100):
            list(reader.feed(b"data: " + b"x" * 100_000))


def test_closing_ends_the_pause_before_the_next_attempt(server: FaultyServer) -> None:
    server.script(Reply(200, b"retry: 30000\n\n", {"content-type": "text/event-stream"}))
    with AgentEmail(**options(server)) as client:
        stream = client.events.stream()
        threading.Timer(0.3, stream.close).start()
        began = time.monotonic()
        assert list(stream) == []
        assert time.monotonic() - began < 2


def test_closing_wakes_a_thread_that_reads(server: FaultyServer) -> None:
    hanging = threading.Event()

    def answer(request: Seen) -> Reply:
        hanging.set()
        return Reply(200, HEAD, {"content-type": "text/event-stream", "content-length": "1000"})

    server.answer = answer
    with AgentEmail(**options(server)) as client:
        stream = client.events.stream()
        threading.Timer(0.3, stream.close).start()
        began = time.monotonic()
        assert list(stream) == [] and stream.last_event_id == "0"
        assert hanging.is_set() and time.monotonic() - began < 2


def test_closing_between_two_events_gives_no_more(server: FaultyServer) -> None:
    server.script(Reply(200, HEAD + block(1) + block(2), {"content-type": "text/event-stream"}))
    with AgentEmail(**options(server)) as client:
        stream = client.events.stream()
        taken = []
        for event in stream:
            taken.append(event.id)
            stream.close()
        assert taken == ["evt_0"] and stream.last_event_id == "1"


def test_cancelling_a_task_ends_its_call_and_its_stream(server: FaultyServer) -> None:
    def slow(request: Seen) -> Reply:
        time.sleep(0.5)
        return Reply()

    server.answer = slow

    async def main() -> float:
        async with AsyncAgentEmail(**options(server)) as client:
            began = time.monotonic()
            for use in (client.me.get(), client.wait_for_outcome("msg_1"), anext_of(client)):
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(use, 0.05)
            return time.monotonic() - began

    assert asyncio.run(main()) < 0.45


async def anext_of(client: AsyncAgentEmail) -> None:
    async for _ in client.events.stream():
        return
