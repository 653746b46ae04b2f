"""Lists are walked page by page."""

from __future__ import annotations

import tracemalloc
from typing import Any, List
from urllib.parse import parse_qs, urlsplit

import pytest

from agent_email import AgentEmail, AgentEmailError, types
from conftest import FaultyServer, Reply, Runner, Seen
from test_retries import options

TOTAL = 10_000
LIMIT = 100


def numbered(request: Seen) -> Reply:
    query = parse_qs(urlsplit(request.path).query)
    first = int(query.get("cursor", ["0"])[0])
    rows = [{"object": "message", "id": f"msg_{first + i}", "subject": "x" * 2_000} for i in range(LIMIT)]
    end = first + LIMIT
    return Reply(200, {"data": rows, "has_more": end < TOTAL, "next_cursor": str(end) if end < TOTAL else None})


def test_ten_thousand_items_in_the_memory_of_a_page(server: FaultyServer, runner: Runner) -> None:
    server.answer = numbered
    peaks: List[int] = []
    ids: List[str] = []

    def look(item: types.MessageListItem) -> None:
        ids.append(item.id)
        if len(ids) % 1_000 == 0:
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.reset_peak()
            # What the server of this process remembers is not the client's.
            server.seen.clear()

    tracemalloc.start()
    try:
        if runner.is_async:

            async def walk(client: Any) -> None:
                async for item in client.messages.list("inb_1", limit=LIMIT, label="x"):
                    look(item)

            runner.run(walk, **options(server))
        else:

            def walk_blocking(client: AgentEmail) -> None:
                for item in client.messages.list("inb_1", limit=LIMIT, label="x"):
                    look(item)

            runner.run(walk_blocking, **options(server))
    finally:
        tracemalloc.stop()
    assert ids == [f"msg_{i}" for i in range(TOTAL)]
    # All items have 20 MB. A page has 0.2 MB, and the server has one, too.
    assert max(peaks[1:]) < 8_000_000
    assert max(peaks[5:]) < 1.5 * max(peaks[1:5])


def test_filters_stay_and_one_page_is_one_request(server: FaultyServer, runner: Runner) -> None:
    server.answer = numbered
    page = runner.run(lambda client: client.messages.list("inb_1", limit=2, from_="a@b.example").page(), **options(server))
    assert len(page.data) == LIMIT and page.has_more and page.next_cursor == "100"
    assert page.http_response.status_code == 200 and isinstance(page.data[0], types.MessageListItem)
    [request] = server.seen
    assert parse_qs(urlsplit(request.path).query) == {"limit": ["2"], "from": ["a@b.example"]}
    pages = runner.collect(lambda client: client.messages.list("inb_1", cursor="9800", has_attachments=True).pages(), **options(server))
    assert [p.data[0].id for p in pages] == ["msg_9800", "msg_9900"]
    assert all("has_attachments=true" in request.path for request in server.seen[1:])


def test_nothing_is_asked_for_before_it_is_needed(server: FaultyServer) -> None:
    server.answer = numbered
    with AgentEmail(**options(server)) as client:
        messages = client.messages.list("inb_1")
        assert server.seen == []
        for _, _ in zip(range(LIMIT), messages):
            pass
        assert len(server.seen) == 1


def test_an_empty_page_is_not_the_end(server: FaultyServer, runner: Runner) -> None:
    server.script(
        Reply(200, {"data": [], "has_more": True, "next_cursor": "a"}),
        Reply(200, {"data": [{"object": "inbox", "id": "inb_1"}], "has_more": False, "next_cursor": None}),
    )
    assert [inbox.id for inbox in runner.collect(lambda client: client.inboxes.list(), **options(server))] == ["inb_1"]


def test_a_list_without_end_is_an_error(server: FaultyServer, runner: Runner) -> None:
    server.script(Reply(200, {"data": [], "has_more": True, "next_cursor": "a"}))
    with pytest.raises(AgentEmailError, match="same page"):
        runner.collect(lambda client: client.inboxes.list(), **options(server))
    server.script(Reply(200, {"object": "inbox"}))
    with pytest.raises(AgentEmailError, match="no page"):
        runner.collect(lambda client: client.inboxes.list(), **options(server))
