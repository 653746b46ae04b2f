"""What the client raises. The classes for each error code of the API are generated into `_error_codes.py`."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any, Dict, Optional

import httpx


class AgentEmailError(Exception):
    """The base of everything that this package raises on purpose."""


class APIConnectionError(AgentEmailError):
    """No answer came: the service is unreachable, or the connection broke."""


class APITimeoutError(APIConnectionError):
    """No answer came in time. The service may still have acted: repeat with the same idempotency_key."""


class WaitTimeoutError(AgentEmailError, TimeoutError):
    """What was waited for did not happen in time. Pass `since` to wait on without missing a message."""

    def __init__(self, message: str, since: Optional[str] = None) -> None:
        super().__init__(message)
        self.since = since


class WebhookVerificationError(AgentEmailError):
    """The request is not genuine: do not act on it, and answer 400."""


class APIError(AgentEmailError):
    """The service refused the request, or failed. Branch on `code`; `fix` says what to do next."""

    #: HTTP status.
    status: int
    #: Stable code of the error, also one that this version does not know; None if the answer is no problem document.
    code: Optional[str]
    #: What happened.
    detail: str
    #: What the caller can do next.
    fix: Optional[str]
    #: Give it to the operator of the service.
    request_id: Optional[str]
    #: The whole problem document (RFC 9457), with the further fields of the code.
    problem: Dict[str, Any]
    #: Seconds after which a repeat makes sense; None if the service named none.
    retry_after: Optional[float]

    def __init__(self, response: httpx.Response, detail: Optional[str] = None) -> None:
        problem = read_problem(response)
        self.status = response.status_code
        self.code = text_of(problem.get("code"))
        self.detail = detail or text_of(problem.get("detail")) or describe_unexpected(response)
        self.fix = text_of(problem.get("fix"))
        self.request_id = text_of(problem.get("request_id")) or response.headers.get("x-request-id")
        self.problem = problem
        self.retry_after = read_retry_after(response)
        parts = [f"{self.status} {self.code or 'without a code'}: {self.detail}", self.fix]
        identified = f"({self.request_id})" if self.request_id else None
        super().__init__(" ".join(part for part in [*parts, identified] if part))
        self._response = response

    def __reduce__(self) -> Any:
        return (type(self), (self._response, self.detail))


def text_of(value: object) -> Optional[str]:
    return value if isinstance(value, str) else None


def read_problem(response: httpx.Response) -> Dict[str, Any]:
    try:
        body = json.loads(response.content)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) and response.is_error else {}


def describe_unexpected(response: httpx.Response) -> str:
    if response.has_redirect_location:
        target = response.headers["location"]
        return f"The service redirects to {target!r}, and a key is never sent to another address. Correct base_url."
    kind = response.headers.get("content-type", "no content type")
    return f"The answer ({kind}) is none of this API. Is base_url right?"


def read_retry_after(response: httpx.Response) -> Optional[float]:
    """RFC 9110: a number of seconds, or a date."""
    value = response.headers.get("retry-after", "").strip()
    if value.isascii() and value.replace(".", "", 1).isdigit():
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return max(0.0, (moment - datetime.now(timezone.utc)).total_seconds())
