"""What is wrong in a call is an error before there is a request."""

from __future__ import annotations

import inspect
import io
from typing import Any, List

import pytest

from agent_email import AgentEmail, AgentEmailError, AsyncAgentEmail
from conftest import FaultyServer, Reply, Runner
from test_retries import options

LARGE = b"x" * 1_100_000


def test_each_uploaded_file_has_a_key_of_its_own_which_a_repeat_derives_again(server: FaultyServer, runner: Runner) -> None:
    server.script(Reply(201, {"object": "attachment", "id": "att_1"}))
    files = [("a", LARGE, "text/plain"), ("b", b"small", "text/plain"), ("c", LARGE, "text/plain")]
    for _ in range(2):
        runner.run(lambda client: client.attach("inb_1", files, idempotency_key="report-1"), **options(server))
    keys = [seen.headers["idempotency-key"] for seen in server.seen]
    assert keys == ["report-1:file-1", "report-1:file-3"] * 2
    runner.run(lambda client: client.attach("inb_1", files), **options(server))
    assert len({seen.headers["idempotency-key"] for seen in server.seen}) == 4


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (("note.txt", "Thanks!", "text/plain"), r"'note.txt' is a tuple \(str, str, str\).*name, bytes, media type"),
        (("note.txt", b"Thanks!"), r"'note.txt' is a tuple \(str, bytes\)"),
        ((b"Thanks!", "note.txt", "text/plain"), "A file is a tuple"),
        ({"filename": "note.txt"}, "not dict"),
        (None, "not NoneType"),
        (io.StringIO("text"), "for reading bytes"),
    ],
)
def test_a_file_in_a_wrong_form_is_named(server: FaultyServer, runner: Runner, file: Any, message: str) -> None:
    for use in (
        lambda client: client.attach("inb_1", [file]),
        lambda client: client.attachments.upload("inb_1", file),
    ):
        with pytest.raises(TypeError, match=message):
            runner.run(use, **options(server))
    assert server.seen == []


def test_a_file_that_is_too_large_is_named(server: FaultyServer, runner: Runner) -> None:
    with pytest.raises(ValueError, match="'big.bin' is too large"):
        runner.run(lambda client: client.attach("inb_1", [("big.bin", bytes(26_214_401), "a/b")]), **options(server))


def test_a_string_is_no_list(server: FaultyServer, runner: Runner) -> None:
    uses: List[Any] = [
        lambda client: client.messages.send("inb_1", to="ada@people.example", subject="S"),
        lambda client: client.messages.send("inb_1", to=["a@b.example"], cc="ada@people.example", subject="S"),
        lambda client: client.messages.change_labels(ids="msg_1", add=["done"]),
        lambda client: client.webhook_endpoints.create(url="https://x.example", events="message.received"),
        lambda client: client.events.stream(types="message.received"),
        lambda client: client.attach("inb_1", "invoice.pdf"),
    ]
    for use in uses:
        with pytest.raises(TypeError, match=r"takes a list: \w+=\['"):
            runner.run(use, **options(server))
    assert server.seen == []


def test_an_unknown_name_is_a_type_error(server: FaultyServer, runner: Runner) -> None:
    uses: List[Any] = [
        lambda client: client.wait_for_message("thr_1", view="agent"),
        lambda client: client.wait_for_code("inb_1", from_="x.example", sender="y.example"),
        lambda client: client.wait_for_outcome("msg_1", view="agent"),
        lambda client: client.wait_for_decision("drf_1", view="agent"),
        lambda client: client.attach("inb_1", [], key="k"),
        lambda client: client.with_options(timout=1),
        lambda client: client.with_options(headers={}),
        lambda client: client.me.get(options={"retries": 1}),
        lambda client: client.call_tool("x", {}, more=1),
        lambda client: client.list_tools(more=1),
    ]
    for use in uses:
        with pytest.raises(TypeError, match="has no '|unexpected keyword"):
            runner.run(use, **options(server))
    assert server.seen == []
    for kind in (AgentEmail, AsyncAgentEmail):
        unchecked: Any = kind
        with pytest.raises(TypeError, match="AgentEmail has no 'retries'"):
            unchecked("k", "http://x", retries=1)


def test_every_method_that_takes_any_name_is_checked_above() -> None:
    """A new one must call check_names, too."""
    for kind in (AgentEmail, AsyncAgentEmail):
        functions = inspect.getmembers(kind, inspect.isfunction)
        open_ended = {name for name, one in functions if any(p.kind is p.VAR_KEYWORD for p in inspect.signature(one).parameters.values())}
        assert open_ended == {"__init__", "with_options", "wait_for_message", "wait_for_code"}


def test_a_part_of_an_answer_says_where_its_response_is(server: FaultyServer, runner: Runner) -> None:
    server.script(Reply(200, {"object": "message", "id": "msg_1", "from": {"email": "a@b.example"}}))
    message = runner.run(lambda client: client.messages.get("msg_1"), **options(server))
    assert message.http_response.status_code == 200
    with pytest.raises(AgentEmailError, match="a part of an answer"):
        message.from_.http_response


def test_a_stream_begins_without_a_position(server: FaultyServer, runner: Runner) -> None:
    server.script(Reply(200, b'id: 1\ndata: {"type": "x"}\n\n', {"content-type": "text/event-stream"}))

    def first(client: AgentEmail) -> None:
        with client.events.stream(after=None) as stream:
            next(iter(stream))

    async def first_async(client: AsyncAgentEmail) -> None:
        async with client.events.stream(after=None) as stream:
            async for _ in stream:
                return

    use: Any = first_async if runner.is_async else first
    runner.run(use, **options(server))
    assert "last-event-id" not in server.seen[0].headers and server.seen[0].path == "/api/v1/events/stream"
