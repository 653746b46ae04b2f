"""Verifies the webhooks that your server receives. No key and no client is needed."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import time
from typing import Iterable, List, Mapping, Sequence, Tuple, Union

from ._errors import WebhookVerificationError
from ._model import decode
from .types import Event

TOLERANCE_SECONDS = 300
Headers = Union[Mapping[str, str], Iterable[Tuple[str, str]]]


def unwrap(
    body: Union[bytes, str], headers: Headers, secret: Union[str, Sequence[str]], *, tolerance: float = TOLERANCE_SECONDS
) -> Event:
    """The event of a request, after its signature is verified: by Standard Webhooks, else by the service's own headers.

    `body` is the raw body, before any parsing. `secret` is that of the endpoint (`whsec_…`), or several of which one must
    fit. Requests that are more than `tolerance` seconds old or early are refused. An event may come more than once: keep
    the ids of those that you have handled. Raises WebhookVerificationError.
    """
    if not isinstance(body, (bytes, bytearray, str)):
        raise TypeError("body must be the raw body of the request, not what a framework parsed from it")
    raw = body.encode() if isinstance(body, str) else bytes(body)
    # Some frameworks' headers have items() and are no Mapping.
    pairs: Iterable[Tuple[str, str]] = headers.items() if hasattr(headers, "items") else headers
    given = {name.lower(): value for name, value in pairs if isinstance(value, str)}
    secrets = [secret] if isinstance(secret, str) else list(secret)
    if "webhook-signature" in given:
        timestamp, fits = standard_signature(raw, given, secrets)
    elif "x-service-signature" in given:
        timestamp, fits = own_signature(raw, given, secrets)
    else:
        raise WebhookVerificationError("The request has neither webhook-signature nor x-service-signature.")
    if not fits:
        raise WebhookVerificationError("No signature fits: another secret, a changed body, or not from the service.")
    if abs(time.time() - timestamp) > tolerance:
        raise WebhookVerificationError("The timestamp is too far from the present time: a repeated request, or a wrong clock.")
    return read_body(raw)


def standard_signature(body: bytes, given: Mapping[str, str], secrets: List[str]) -> Tuple[int, bool]:
    timestamp = read_timestamp(given.get("webhook-timestamp", ""))
    signed = f"{given.get('webhook-id', '')}.{timestamp}.".encode() + body
    signatures = [part[3:] for part in given["webhook-signature"].split() if part.startswith("v1,")]
    expected = [base64.b64encode(sign(read_secret(secret), signed)) for secret in secrets]
    return timestamp, any_equal(signatures, expected)


def own_signature(body: bytes, given: Mapping[str, str], secrets: List[str]) -> Tuple[int, bool]:
    timestamp = read_timestamp(given.get("x-service-timestamp", ""))
    signed = f"{timestamp}.".encode() + body
    signatures = [given[name] for name in ("x-service-signature", "x-service-signature-previous") if name in given]
    keys = [f"whsec_{secret.removeprefix('whsec_')}".encode() for secret in secrets]
    return timestamp, any_equal(signatures, [sign(key, signed).hex().encode() for key in keys])


def sign(key: bytes, signed: bytes) -> bytes:
    return hmac.new(key, signed, hashlib.sha256).digest()


def any_equal(signatures: Sequence[str], expected: Sequence[bytes]) -> bool:
    """Compares all with all, in constant time."""
    return any([hmac.compare_digest(one.encode(), other) for one in signatures for other in expected])


def read_timestamp(value: str) -> int:
    if not re.fullmatch(r"[0-9]{1,12}", value):
        raise WebhookVerificationError("The request has no timestamp in seconds.")
    return int(value)


def read_secret(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not key:
        raise WebhookVerificationError("The secret is none of an endpoint: whsec_ and base64.")
    return key


def read_body(raw: bytes) -> Event:
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise WebhookVerificationError("The body is no JSON object.")
    event: Event = decode(body, Event)
    return event


class Webhooks:
    """`client.webhooks.unwrap(…)`"""

    unwrap = staticmethod(unwrap)
