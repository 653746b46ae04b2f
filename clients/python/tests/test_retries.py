"""What is repeated, when, and with which key. The decisions are driven without a network, the rest through a real server."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Any, Callable, List, Optional

import httpx
import pytest

from agent_email import APIConnectionError, APIError, APITimeoutError, NotFoundError, RateLimitedError, UsageLimitExceededError
from agent_email._core import Pause, exchange
from conftest import FaultyServer, Reply, Runner

INBOX = {"object": "inbox", "id": "inb_1", "email": "a@b.example"}


def problem(status: int, code: str, **more: Any) -> Reply:
    body = {"type": "", "title": "", "status": status, "detail": "No.", "code": code, "request_id": "req_1", "fix": "Do.", **more}
    return Reply(status, body, {"content-type": "application/problem+json"})


def options(server: FaultyServer, **more: Any) -> Any:
    return {"api_key": "ask_test_key", "base_url": server.url, **more}


def drive(outcomes: List[Any], method: str = "GET", key: bool = False, retries: int = 5) -> List[float]:
    """The pauses before each repeat."""
    request = httpx.Request(method, "http://service.example/", headers={"idempotency-key": "k"} if key else {})
    steps = exchange(request, retries)
    pauses: List[float] = []
    step: Any = next(steps)
    try:
        for outcome in outcomes:
            step = steps.send(outcome)
            assert isinstance(step, Pause)
            pauses.append(step.seconds)
            assert steps.send(None) is request
    except (StopIteration, APIError, APIConnectionError):
        pass
    return pauses


def answer(status: int, retry_after: Optional[str] = None, code: Optional[str] = None) -> httpx.Response:
    headers = {} if retry_after is None else {"retry-after": retry_after}
    return httpx.Response(status, headers=headers, json={"code": code}, request=httpx.Request("GET", "http://x"))


def failure(kind: Callable[..., httpx.RequestError]) -> httpx.RequestError:
    return kind("broken", request=httpx.Request("GET", "http://service.example/"))


def test_pauses_grow_with_jitter_and_are_bounded() -> None:
    pauses = drive([answer(503)] * 8, retries=8)
    assert len(pauses) == 8
    for index, pause in enumerate(pauses):
        longest = min(8.0, 0.5 * 2**index)
        assert longest / 2 <= pause <= longest
    assert len({round(drive([answer(500)])[0], 6) for _ in range(20)}) > 10


def test_retry_after_is_kept_in_seconds_and_as_a_date() -> None:
    assert drive([answer(429, "7")]) == [7.0]
    assert drive([answer(503, "0")]) == [0.0]
    later = format_datetime(datetime.now(timezone.utc) + timedelta(seconds=20), usegmt=True)
    assert drive([answer(429, later)])[0] == pytest.approx(20, abs=1.5)
    earlier = format_datetime(datetime.now(timezone.utc) - timedelta(hours=1), usegmt=True)
    assert drive([answer(429, earlier)]) == [0.0]


@pytest.mark.parametrize("nonsense", ["", "soon", "-5", "nan", "inf", "1e9", "5 s", "Mon, 99 Foo 2026"])
def test_a_retry_after_that_cannot_be_read_counts_as_none(nonsense: str) -> None:
    assert 0.25 <= drive([answer(429, nonsense)])[0] <= 0.5


def test_a_retry_after_of_more_than_a_minute_is_left_to_the_caller() -> None:
    assert drive([answer(429, "61")]) == []
    assert drive([answer(429, "60")]) == [60.0]


@pytest.mark.parametrize(
    ("status", "code", "is_repeated"),
    [(429, "rate_limited", True), (429, "usage_limit_exceeded", False), (409, "request_in_progress", True)]
    + [(409, "conflict", False), (408, "request_timeout", True), (500, "internal", True), (502, None, True)]
    + [(504, None, True), (503, "unavailable", True), (400, "validation_error", False), (404, "not_found", False)]
    + [(401, "unauthenticated", False), (422, "message_rejected", False), (302, None, False)],
)
def test_only_what_passes_is_repeated(status: int, code: Optional[str], is_repeated: bool) -> None:
    assert bool(drive([answer(status, code=code)], "POST", key=True)) is is_repeated


@pytest.mark.parametrize(
    ("kind", "without_key", "with_key"),
    [(httpx.ConnectError, True, True), (httpx.ConnectTimeout, True, True), (httpx.ReadError, False, True)]
    + [(httpx.RemoteProtocolError, False, True), (httpx.ReadTimeout, False, True), (httpx.WriteError, False, True)]
    + [(httpx.LocalProtocolError, False, False), (httpx.UnsupportedProtocol, False, False)],
)
def test_a_post_without_a_key_is_repeated_only_if_it_was_never_sent(kind: Any, without_key: bool, with_key: bool) -> None:
    assert bool(drive([failure(kind)], "POST")) is without_key
    assert bool(drive([failure(kind)], "POST", key=True)) is with_key
    assert bool(drive([failure(kind)], "DELETE")) is with_key
    assert bool(drive([answer(502)], "POST")) is False


@pytest.mark.parametrize("cut_after", [0, 3])
def test_a_call_is_repeated_with_the_same_key_after_a_cut_connection(
    server: FaultyServer, runner: Runner, cut_after: int
) -> None:
    server.script(Reply(201, INBOX, cut_after=cut_after), Reply(201, INBOX, cut_after=0), Reply(201, INBOX))
    inbox = runner.run(lambda client: client.inboxes.create(username="a"), **options(server))
    assert inbox.id == "inb_1"
    keys = [request.headers["idempotency-key"] for request in server.seen]
    assert len(keys) == 3 and len(set(keys)) == 1 and len(keys[0]) == 36
    assert [request.json for request in server.seen] == [{"username": "a"}] * 3


def test_a_deletion_whose_answer_was_lost_was_done(server: FaultyServer, runner: Runner) -> None:
    gone = problem(404, "not_found")
    server.script(Reply(204, cut_after=0), gone)
    assert runner.run(lambda client: client.inboxes.delete("inb_1"), **options(server)) is None
    for replies, method in [([gone], "delete"), ([Reply(503, b""), gone], "delete")]:
        server.script(*replies)
        with pytest.raises(NotFoundError):
            runner.run(lambda client: getattr(client.inboxes, method)("inb_1"), **options(server))
    server.script(Reply(200, cut_after=0), gone)
    with pytest.raises(NotFoundError):
        # It would have answered the message.
        runner.run(lambda client: client.messages.remove_label("msg_1", "done"), **options(server))


def test_each_call_has_a_key_of_its_own_and_keeps_a_given_one(server: FaultyServer, runner: Runner) -> None:
    server.script(Reply(201, INBOX))
    for _ in range(2):
        runner.run(lambda client: client.inboxes.create(), **options(server))
    runner.run(lambda client: client.inboxes.create(idempotency_key="mine"), **options(server))
    runner.run(lambda client: client.inboxes.update("inb_1", display_name=None), **options(server))
    keys = [request.headers.get("idempotency-key") for request in server.seen]
    assert keys[0] != keys[1] and keys[2:] == ["mine", None]
    assert server.seen[0].json == {} and server.seen[3].json == {"display_name": None}


def test_the_service_is_given_the_time_that_it_asks_for(server: FaultyServer, runner: Runner) -> None:
    limited = problem(429, "rate_limited")
    limited.headers["retry-after"] = "1"
    server.script(limited, Reply(200, INBOX))
    began = time.monotonic()
    runner.run(lambda client: client.inboxes.get("inb_1"), **options(server))
    assert 1.0 <= time.monotonic() - began < 2.0


def test_the_last_failure_is_raised(server: FaultyServer, runner: Runner) -> None:
    limited = problem(429, "rate_limited")
    limited.headers["retry-after"] = "0"
    server.script(limited)
    with pytest.raises(RateLimitedError) as caught:
        runner.run(lambda client: client.me.get(), **options(server, max_retries=3))
    assert len(server.seen) == 4 and caught.value.retry_after == 0.0
    server.seen.clear()
    server.script(problem(429, "usage_limit_exceeded", resets_at="2026-12-01T00:00:00.000Z"))
    with pytest.raises(UsageLimitExceededError) as limit:
        runner.run(lambda client: client.me.get(), **options(server))
    assert len(server.seen) == 1 and limit.value.problem["resets_at"] == "2026-12-01T00:00:00.000Z"


def test_a_change_with_if_match_and_a_tool_are_not_repeated_after_a_cut_connection(server: FaultyServer, runner: Runner) -> None:
    server.script(Reply(200, cut_after=0))
    for use in (
        lambda client: client.drafts.update("drf_1", subject="a", if_match='"1"'),
        lambda client: client.call_tool("create_draft", {}),
    ):
        with pytest.raises(APIConnectionError):
            runner.run(use, **options(server))
    assert len(server.seen) == 2


def test_options_of_one_call(server: FaultyServer, runner: Runner) -> None:
    server.script(Reply(500, b"no"))
    own = {"max_retries": 0, "env_id": "env_2", "headers": {"x-mine": "1"}, "query": {"new": True}}
    with pytest.raises(APIError):
        runner.run(lambda client: client.me.get(options=own), **options(server))
    [request] = server.seen
    assert (request.headers["x-env-id"], request.headers["x-mine"], request.path) == ("env_2", "1", "/api/v1/me?new=true")


def test_a_silent_service_is_a_timeout(server: FaultyServer, runner: Runner) -> None:
    def late(_: object) -> Reply:
        time.sleep(1)
        return Reply()

    server.answer = late
    began = time.monotonic()
    with pytest.raises(APITimeoutError):
        runner.run(lambda client: client.me.get(), **options(server, timeout=0.1, max_retries=0))
    assert time.monotonic() - began < 0.9


def test_nothing_listens(runner: Runner) -> None:
    with pytest.raises(APIConnectionError, match="127.0.0.1:1/api/v1/me"):
        runner.run(lambda client: client.me.get(), api_key="k", base_url="http://127.0.0.1:1", max_retries=1)
