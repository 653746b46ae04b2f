"""Waits of any length, of calls that end sooner."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any, Dict, List
from urllib.parse import parse_qs, urlsplit

import pytest

from agent_email import APIConnectionError, AgentEmail, WaitTimeoutError, types
from agent_email import _waits
from conftest import FaultyServer, Reply, Runner, Seen
from test_retries import options

NOTHING = {"object": "timeout", "timed_out": True}
MESSAGE = {
    "object": "message",
    "id": "msg_1",
    "from": {"email": "a@b.example"},
    "date": "2026-11-23T00:00:00.000Z",
    "codes": [{"value": "481516"}, {"value": "2342"}],
}


def queries(server: FaultyServer) -> List[Dict[str, str]]:
    return [{name: values[0] for name, values in parse_qs(urlsplit(seen.path).query).items()} for seen in server.seen]


def test_each_wait_calls_its_operation(server: FaultyServer, runner: Runner) -> None:
    server.script(Reply(200, MESSAGE))
    message = runner.run(lambda client: client.wait_for_message("inb_1", from_="b.example", subject="code"), **options(server))
    assert isinstance(message, types.AgentMessage) and message.id == "msg_1"
    runner.run(lambda client: client.wait_for_message("thr_1", since=datetime(2026, 11, 23, tzinfo=timezone.utc)), **options(server))
    code = runner.run(lambda client: client.wait_for_code("inb_1", since="msg_0"), **options(server))
    assert (code.value, str(code), code.message.id) == ("481516", "481516", "msg_1")
    runner.run(lambda client: client.wait_for_outcome("msg_1", timeout=5), **options(server))
    server.script(Reply(200, {"object": "draft_outcome", "outcome": "approved"}))
    outcome = runner.run(lambda client: client.wait_for_decision("drf_1"), **options(server))
    assert isinstance(outcome, types.DraftOutcome)
    paths = [urlsplit(seen.path).path.removeprefix("/api/v1") for seen in server.seen]
    assert paths == ["/inboxes/inb_1/messages/wait", "/threads/thr_1/wait", "/inboxes/inb_1/messages/wait", "/messages/msg_1/wait", "/drafts/drf_1/wait"]
    assert queries(server) == [
        {"from": "b.example", "subject": "code", "view": "agent", "timeout_seconds": "20"},
        {"since": "2026-11-23T00:00:00+00:00", "view": "agent", "timeout_seconds": "20"},
        {"since": "msg_0", "for": "code", "view": "agent", "timeout_seconds": "20"},
        {"view": "agent", "timeout_seconds": "5"},
        {"timeout_seconds": "20"},
    ]


def test_later_calls_go_on_where_the_first_began_to_look(server: FaultyServer, runner: Runner) -> None:
    date = {"date": "Mon, 23 Nov 2026 12:00:00 GMT"}
    server.script(Reply(200, NOTHING, date), Reply(200, NOTHING, date), Reply(200, MESSAGE))
    runner.run(lambda client: client.wait_for_message("inb_1"), **options(server))
    first, *later = queries(server)
    assert "since" not in first
    # The server of this test has a clock of its own, and writes its Date first.
    assert [query["since"][:16] for query in later] == [later[0]["since"][:16]] * 2


def test_the_window_is_counted_by_the_clock_of_the_service() -> None:
    assert _waits.window_start("Mon, 23 Nov 2026 12:00:00 GMT", 19.2) == "2026-11-23T11:59:10+00:00"
    assert _waits.window_start(None, 1) is None and _waits.window_start("soon", 1) is None


def test_after_the_timeout_it_is_an_error_that_says_how_to_go_on(server: FaultyServer, runner: Runner) -> None:
    server.script(Reply(200, NOTHING))
    with pytest.raises(WaitTimeoutError, match="nothing came to inb_1") as caught:
        runner.run(lambda client: client.wait_for_message("inb_1", timeout=0.1), **options(server))
    assert caught.value.since is not None and isinstance(caught.value, TimeoutError)
    with pytest.raises(WaitTimeoutError) as given:
        runner.run(lambda client: client.wait_for_message("inb_1", timeout=0, since="msg_1"), **options(server))
    assert given.value.since == "msg_1"


def test_a_service_that_restarts_is_not_asked_without_a_pause(server: FaultyServer) -> None:
    server.script(Reply(200, NOTHING))
    with AgentEmail(**options(server)) as client, pytest.raises(WaitTimeoutError):
        client.wait_for_outcome("msg_1", timeout=0.3)
    assert 2 <= len(server.seen) <= 5


def test_a_wait_outlives_an_interruption_once_the_service_has_answered(server: FaultyServer, runner: Runner) -> None:
    cut = Reply(200, {}, cut_after=0)
    server.script(Reply(200, NOTHING), cut, cut, Reply(200, MESSAGE))
    runner.run(lambda client: client.wait_for_message("inb_1", timeout=10), **options(server, max_retries=0))
    server.script(cut)
    with pytest.raises(APIConnectionError):
        runner.run(lambda client: client.wait_for_message("inb_1", timeout=10), **options(server, max_retries=0))


def test_a_waiting_call_may_take_longer_than_the_timeout(server: FaultyServer, runner: Runner) -> None:
    import time

    def late(_: Seen) -> Reply:
        time.sleep(0.2)
        return Reply(200, MESSAGE)

    server.answer = late
    given: Any = options(server, timeout=0.1, max_retries=0)
    runner.run(lambda client: client.wait_for_message("inb_1", timeout=2), **given)
    runner.run(lambda client: client.messages.wait("inb_1", timeout_seconds=1), **given)
    runner.run(lambda client: client.messages.wait("inb_1"), **given)
