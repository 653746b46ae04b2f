"""Signatures of Standard Webhooks and of the service's own headers."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from email.message import Message
from typing import Any, Dict

import pytest

from agent_email import AgentEmail, AsyncAgentEmail, WebhookVerificationError, types, webhooks

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_" + base64.b64encode(b"another secret").decode()
BODY = json.dumps({"id": "evt_1", "type": "message.sent", "data": {"message_id": "msg_ü"}}, ensure_ascii=False).encode()


def standard(body: bytes = BODY, secret: str = SECRET, at: int = 0, id: str = "evt_1") -> Dict[str, str]:
    timestamp = str(at or int(time.time()))
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.new(key, f"{id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    signature = "v1," + base64.b64encode(digest).decode()
    return {"webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature}


def own(body: bytes = BODY, secret: str = SECRET, at: int = 0) -> Dict[str, str]:
    timestamp = str(at or int(time.time()))
    digest = hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()
    return {"x-service-timestamp": timestamp, "x-service-signature": digest}


def test_the_vector_of_standard_webhooks(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of the specification's own libraries."""
    monkeypatch.setattr(time, "time", lambda: 1614265330.0)
    body = '{"test": 2432232314}'
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    event = webhooks.unwrap(body, headers, SECRET)
    assert event.to_dict() == {"test": 2432232314}
    assert webhooks.unwrap(body, headers, SECRET.removeprefix("whsec_")) == event
    with pytest.raises(WebhookVerificationError):
        webhooks.unwrap('{"test": 2432232315}', headers, SECRET)


@pytest.mark.parametrize("sign", [standard, own])
@pytest.mark.parametrize("client", [webhooks, AgentEmail("k", "http://x").webhooks, AsyncAgentEmail("k", "http://x").webhooks])
def test_a_genuine_request_gives_its_event(sign: Any, client: Any) -> None:
    for body in (BODY, BODY.decode(), bytearray(BODY)):
        event = client.unwrap(body, sign(), SECRET)
        assert isinstance(event, types.MessageSentEvent) and event.data.message_id == "msg_ü"


@pytest.mark.parametrize("sign", [standard, own])
def test_what_is_not_genuine_is_refused(sign: Any) -> None:
    genuine = sign()
    changed = [
        (BODY + b" ", genuine),
        (BODY, sign(secret=OTHER)),
        (BODY, {name: value for name, value in genuine.items() if "timestamp" not in name}),
        (BODY, {name: "" if "signature" in name else value for name, value in genuine.items()}),
        (BODY, {name: value[:-4] if "signature" in name else value for name, value in genuine.items()}),
        (BODY, {name: "ä" * 44 if "signature" in name else value for name, value in genuine.items()}),
        (BODY, {name: str(int(value) + 1) if "timestamp" in name else value for name, value in genuine.items()}),
        (BODY, {name: f"{value}.0" if "timestamp" in name else value for name, value in genuine.items()}),
        (BODY, {name: "9" * 5_000 if "timestamp" in name else value for name, value in genuine.items()}),
        (BODY, {}),
    ]
    for body, headers in changed:
        with pytest.raises(WebhookVerificationError):
            webhooks.unwrap(body, headers, SECRET)


@pytest.mark.parametrize("sign", [standard, own])
def test_old_and_early_requests_are_refused(sign: Any) -> None:
    now = int(time.time())
    for at in (now - 310, now + 310):
        with pytest.raises(WebhookVerificationError, match="timestamp"):
            webhooks.unwrap(BODY, sign(at=at), SECRET)
        webhooks.unwrap(BODY, sign(at=at), SECRET, tolerance=600)
    webhooks.unwrap(BODY, sign(at=now - 290), SECRET)


def test_during_a_rotation_one_signature_is_enough() -> None:
    both = standard()
    both["webhook-signature"] = f"v1a,AAAA {standard(secret=OTHER)['webhook-signature']} {both['webhook-signature']}"
    webhooks.unwrap(BODY, both, SECRET)
    webhooks.unwrap(BODY, both, OTHER)
    previous = {**own(secret=OTHER), "x-service-signature-previous": own()["x-service-signature"]}
    webhooks.unwrap(BODY, previous, SECRET)
    webhooks.unwrap(BODY, standard(), [OTHER, SECRET])
    with pytest.raises(WebhookVerificationError):
        webhooks.unwrap(BODY, standard(), [OTHER])
    with pytest.raises(WebhookVerificationError):
        webhooks.unwrap(BODY, standard(), [])


def test_another_version_of_the_scheme_does_not_count() -> None:
    headers = standard()
    headers["webhook-signature"] = headers["webhook-signature"].replace("v1,", "v2,")
    with pytest.raises(WebhookVerificationError):
        webhooks.unwrap(BODY, headers, SECRET)


def test_a_wrong_standard_signature_is_not_made_good_by_the_other_headers() -> None:
    with pytest.raises(WebhookVerificationError):
        webhooks.unwrap(BODY, {**own(), **standard(secret=OTHER)}, SECRET)


def test_headers_of_any_framework() -> None:
    mail = Message()
    for name, value in standard().items():
        mail[name.title()] = value
    for headers in (mail, list(standard().items()), {name.upper(): value for name, value in standard().items()}):
        webhooks.unwrap(BODY, headers, SECRET)  # type: ignore[arg-type]
    webhooks.unwrap(BODY, {**standard(), "x-none": None}, SECRET)  # type: ignore[arg-type]


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_not base64", "ask_live_1", "ä"])
def test_a_secret_that_is_none_is_an_error(secret: str) -> None:
    with pytest.raises(WebhookVerificationError, match="secret"):
        webhooks.unwrap(BODY, standard(), secret)


def test_a_parsed_body_is_a_mistake_and_a_body_without_an_event_is_refused() -> None:
    with pytest.raises(TypeError, match="raw body"):
        webhooks.unwrap(json.loads(BODY), standard(), SECRET)
    for body in (b"[]", b"hello", b"\xff", b"[" * 100_000):
        with pytest.raises(WebhookVerificationError, match="JSON"):
            webhooks.unwrap(body, standard(body), SECRET)
