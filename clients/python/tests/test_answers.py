"""Answers and errors as objects: typed as far as they are known, and whole where they are not."""

from __future__ import annotations

import copy
import pickle
from typing import Any, List, Union

import pytest

import agent_email
from agent_email import APIError, AgentEmail, AgentEmailError, AsyncAgentEmail, Model, NotFoundError, types
from agent_email._core import error_of, read_answer
from agent_email._model import decode
from conftest import FaultyServer, Reply, Runner
from test_retries import options, problem

AGENT_MESSAGE = {
    "object": "message",
    "id": "msg_1",
    "from": {"email": "ada@people.example", "name": "Ada"},
    "date": "2026-11-23T00:00:00.000Z",
    "status": "teleported",
    "codes": [{"value": "481516", "confidence": "certain", "colour": "blue"}],
    "mood": {"words": [{"text": "glad"}]},
}


def test_unknown_fields_and_values_are_kept() -> None:
    message: Any = decode(AGENT_MESSAGE, Union[types.Message, types.AgentMessage, types.Draft, types.Receipt])
    assert type(message).__name__ == "AgentMessage"
    assert (message.status, message.from_.email, message.from_.name) == ("teleported", "ada@people.example", "Ada")
    assert type(message.codes[0]).__name__ == "AgentMessageCode"
    assert (message.codes[0].confidence, message.codes[0].colour) == ("certain", "blue")
    assert message.mood.words[0].text == "glad"
    assert message.to_dict() == AGENT_MESSAGE and message.to_dict() is not AGENT_MESSAGE


def test_known_fields_that_are_left_out_are_none_and_unknown_ones_are_errors() -> None:
    message = types.AgentMessage({"object": "message"})
    assert message.text is None and message.codes is None
    with pytest.raises(AttributeError, match="AgentMessage has no field 'txet'"):
        message.txet  # type: ignore[attr-defined]


def test_a_kind_that_is_unknown_is_an_object_with_its_fields() -> None:
    event: Any = decode({"type": "message.teleported", "id": "evt_1", "data": {"to": ["Mars"]}}, types.Event)
    assert type(event).__name__ == "Model" and event.data.to == ["Mars"]
    assert isinstance(decode({"type": "message.sent", "data": {}}, types.Event), types.MessageSentEvent)
    assert type(decode({"object": "parcel", "id": "x"}, types.Inbox)) is Model


def test_keywords_have_an_underscore_and_odd_names_stay_reachable() -> None:
    odd = Model({"from": 1, "class": 2, "": 3, "a b": 4, "to_dict": 5, "_data": 6, "__class__": 7})
    assert (odd.from_, odd.class_) == (1, 2)  # type: ignore[attr-defined]
    assert odd.to_dict()["__class__"] == 7 and isinstance(odd, Model)
    assert "from_" in dir(odd) and repr(odd).startswith("Model(from_=1, class_=2")


def test_answers_are_values() -> None:
    message = decode(AGENT_MESSAGE, types.AgentMessage)
    assert copy.deepcopy(message) == message == pickle.loads(pickle.dumps(message))
    assert message != decode({**AGENT_MESSAGE, "id": "msg_2"}, types.AgentMessage)
    with pytest.raises(AttributeError, match="to_dict"):
        message.id = "msg_2"


def test_secrets_and_control_characters_stay_out_of_the_representation() -> None:
    shown = repr(decode({"object": "api_key", "token": "ask_live_secret", "name": "\x1b]0;x\x07" + "y" * 500}, types.CreatedApiKey))
    assert "ask_live_secret" not in shown and "\x1b" not in shown and len(shown) < 300
    for client in (AgentEmail("ask_live_secret", "http://x"), AsyncAgentEmail("ask_live_secret", "http://x")):
        assert "secret" not in repr(client) and "secret" not in repr(client._settings)


def test_a_receipt_says_why_it_has_no_more(server: FaultyServer, runner: Runner) -> None:
    server.script(Reply(201, {"object": "receipt", "id": "inb_1", "env_id": "env_1", "status": "active"}))
    inbox = runner.run(lambda client: client.inboxes.create(), **options(server, receipts=True))
    assert isinstance(inbox, types.Receipt) and (inbox.id, inbox.secret) == ("inb_1", None)
    with pytest.raises(AttributeError, match="may not read"):
        inbox.display_name  # type: ignore[attr-defined]


def test_the_raw_response_is_at_hand(server: FaultyServer, runner: Runner) -> None:
    server.script(Reply(200, {"object": "inbox", "id": "inb_1"}, {"x-request-id": "req_9", "ratelimit-remaining": "7"}))
    inbox = runner.run(lambda client: client.inboxes.get("inb_1"), **options(server))
    response = inbox.http_response
    assert (response.status_code, response.request_id, response.headers["RateLimit-Remaining"]) == (200, "req_9", "7")
    assert response.content == b'{"object": "inbox", "id": "inb_1"}'
    call = agent_email.Call("POST", "/api/v1/new", body={"a": 1}, is_idempotent=True)
    raw = runner.run(lambda client: client.request(call), **options(server))
    assert raw.json()["id"] == "inb_1" and server.seen[-1].headers["idempotency-key"]


def test_every_known_code_has_a_class_and_others_are_kept(server: FaultyServer, runner: Runner) -> None:
    server.script(problem(404, "not_found", nearest_operation="GET /x", colour="blue"))
    with pytest.raises(NotFoundError) as caught:
        runner.run(lambda client: client.inboxes.get("inb_1"), **options(server))
    error = caught.value
    assert (error.status, error.code, error.detail, error.fix, error.request_id) == (404, "not_found", "No.", "Do.", "req_1")
    assert error.problem["colour"] == "blue" and str(error) == "404 not_found: No. Do. (req_1)"
    server.script(problem(418, "teapot"))
    with pytest.raises(APIError) as unknown:
        runner.run(lambda client: client.inboxes.get("inb_1"), **options(server))
    assert type(unknown.value) is APIError and unknown.value.code == "teapot"
    copied = pickle.loads(pickle.dumps(error_copy(error)))
    assert (type(copied), copied.fix, str(copied)) == (NotFoundError, "Do.", str(error))


def error_copy(error: APIError) -> APIError:
    return copy.copy(error)


@pytest.mark.parametrize("body", [b"<html>Bad gateway</html>", b"", b"[1]", b'{"code": 7}', b"null", b"\xff", b"[" * 100_000])
def test_what_is_no_problem_document_is_an_error_without_a_code(body: bytes) -> None:
    error = error_of(httpx_response(502, body))
    assert (type(error), error.status, error.code) == (APIError, 502, None)
    assert "base_url" in error.detail
    with pytest.raises(APIError, match="base_url"):
        read_answer(httpx_response(200, b"<html>" if body in (b'{"code": 7}',) else body), types.Inbox)


def httpx_response(status: int, body: bytes) -> Any:
    import httpx

    return httpx.Response(status, content=body, request=httpx.Request("GET", "http://x"))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_key_follows_no_redirect(server: FaultyServer, runner: Runner, status: int) -> None:
    other = FaultyServer()
    try:
        server.script(Reply(status, {}, {"location": f"{other.url}/api/v1/me"}))
        with pytest.raises(APIError, match="redirects to"):
            runner.run(lambda client: client.me.get(), **options(server))
        assert other.seen == [] and len(server.seen) == 1
    finally:
        other.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "AGENT_EMAIL_API_KEY"),
        ({"api_key": "k"}, "AGENT_EMAIL_BASE_URL"),
        ({"api_key": "ask live", "base_url": "http://x"}, "character"),
        ({"api_key": "k\r\nx-evil: 1", "base_url": "http://x"}, "character"),
        ({"api_key": "kä", "base_url": "http://x"}, "character"),
        ({"api_key": "k", "base_url": "mail.example.com"}, "base_url must be"),
        ({"api_key": "k", "base_url": "file:///etc/passwd"}, "base_url must be"),
        ({"api_key": "k", "base_url": "https://u:p@x"}, "base_url must be"),
        ({"api_key": "k", "base_url": "https://x?key=1"}, "base_url must be"),
    ],
)
def test_a_wrong_configuration_is_a_clear_error(arguments: Any, message: str) -> None:
    for kind in (AgentEmail, AsyncAgentEmail):
        with pytest.raises(AgentEmailError, match=message) as caught:
            kind(**arguments)
        assert "ask live" not in str(caught.value) and "u:p" not in str(caught.value)


def test_the_environment_configures(server: FaultyServer, runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_EMAIL_API_KEY", "ask_env")
    monkeypatch.setenv("AGENT_EMAIL_BASE_URL", f"{server.url}/api/v1/")
    runner.run(lambda client: client.me.get())
    assert server.seen[0].headers["authorization"] == "Bearer ask_env" and server.seen[0].path == "/api/v1/me"
    assert server.seen[0].headers["user-agent"].startswith("agent-email-python/")


def test_with_options_shares_the_connections(server: FaultyServer) -> None:
    with AgentEmail(**options(server)) as client:
        other = client.with_options(env_id="env_2", timeout=5.0)
        other.me.get()
        other.close()
        client.me.get()
        assert isinstance(other, AgentEmail) and other._http is client._http
    assert [request.headers.get("x-env-id") for request in server.seen] == ["env_2", None]


@pytest.mark.parametrize("wrong", ["", ".", "..", None, 7, types.Inbox({"id": "inb_1"})])
def test_an_id_must_be_one(wrong: Any) -> None:
    with pytest.raises(ValueError, match="An id must be"):
        AgentEmail("k", "http://127.0.0.1:1").inboxes.get(wrong)


def test_ids_cannot_leave_their_place_in_the_path(server: FaultyServer) -> None:
    hostile: List[str] = ["../org", "a/b", "a?b=c", "a#b", "%2e%2e", "a\r\nb", "ä@x", "//evil.example"]
    with AgentEmail(**options(server)) as client:
        for text in hostile:
            client.inboxes.get(text)
            [request] = server.seen
            server.seen.clear()
            rest = request.path.removeprefix("/api/v1/inboxes/")
            assert rest != request.path and not set(rest) & set("/?# ")
