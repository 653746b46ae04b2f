"""Everything between a method and the network that needs neither threads nor an event loop.

What takes several steps (retries, waits) is a generator that yields a request or a pause, and is sent what came of it. The
two clients drive the same generators: one blocks, one awaits. So there is one copy of each decision, which tests can
drive without a network or a clock; only the loops that iterate over pages and streams are written for both.
"""

from __future__ import annotations

import json
import os
import platform
import random
import uuid
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Dict, Generator, Iterable, Mapping, NamedTuple, Optional, TypedDict, Union
from urllib.parse import quote, urlsplit

import httpx

from ._error_codes import ERRORS_BY_CODE
from ._errors import AgentEmailError, APIConnectionError, APIError, APITimeoutError, read_problem, read_retry_after
from ._model import HTTPResponse, decode
from ._version import VERSION

FIRST_DELAY_SECONDS = 0.5
LONGEST_DELAY_SECONDS = 8.0
#: A longer Retry-After is left to the caller, as `retry_after` of the error.
LONGEST_RETRY_AFTER_SECONDS = 60.0
#: A waiting call without timeout_seconds takes this long.
DEFAULT_WAIT_SECONDS = 30.0
#: How much later than the end of a wait its answer may come.
WAIT_GRACE_SECONDS = 15.0
#: These errors say that the request was never sent.
NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
NEVER_REPEATED = (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.TooManyRedirects)


class NotGiven:
    """The default of arguments for which None means null: in a change, null clears the field."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "NOT_GIVEN"


NOT_GIVEN = NotGiven()


class Options(TypedDict, total=False):
    """What holds for a client, or for one call."""

    #: Seconds for connecting, and between two parts of the answer; None for no limit.
    timeout: Optional[float]
    max_retries: int
    #: The environment, if it is not the key's own or that of the id.
    env_id: Optional[str]


class RequestOptions(Options, total=False):
    """What any method takes as `options`."""

    headers: Mapping[str, str]
    #: Parameters and fields of the body that this version does not know.
    query: Mapping[str, Any]
    body: Mapping[str, Any]


class Pause(NamedTuple):
    seconds: float


Step = Union[httpx.Request, Pause]
#: What a generator of steps is sent: what came of the request, or None after a pause.
Outcome = Union[httpx.Response, httpx.RequestError, None]
Steps = Generator[Step, Outcome, Any]


@dataclass(frozen=True)
class Call:
    """One call of an operation, before it is a request."""

    method: str
    path: str
    #: The type of the answer, as `decode` reads it; None for none.
    answer: Any = None
    query: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, Any] = field(default_factory=dict)
    body: Optional[Mapping[str, Any]] = None
    #: A body that is left out if it has no field.
    optional_body: Mapping[str, Any] = field(default_factory=dict)
    file: Any = None
    #: The operation takes an Idempotency-Key.
    is_idempotent: bool = False
    idempotency_key: Optional[str] = None
    options: Optional[RequestOptions] = None


@dataclass(frozen=True)
class Settings:
    api_key: str = field(repr=False)
    base_url: str
    timeout: Optional[float] = 60.0
    max_retries: int = 2
    env_id: Optional[str] = None

    @classmethod
    def of(cls, api_key: Optional[str], base_url: Optional[str], options: Options) -> Settings:
        key = api_key or os.environ.get("AGENT_EMAIL_API_KEY", "")
        if not key:
            raise AgentEmailError("There is no API key: pass api_key, or set AGENT_EMAIL_API_KEY.")
        if not key.isascii() or not key.isprintable() or " " in key:
            raise AgentEmailError("The API key has a character that no key has: is it whole, and without quotes?")
        url = base_url or os.environ.get("AGENT_EMAIL_BASE_URL", "")
        if not url:
            raise AgentEmailError("There is no address: pass base_url, or set AGENT_EMAIL_BASE_URL (http://127.0.0.1:3000).")
        check_names("AgentEmail", options, Options.__annotations__)
        return cls(key, read_base_url(url), **options)

    def having(self, options: Options) -> Settings:
        check_names("options", options, RequestOptions.__annotations__)
        known: Dict[str, Any] = {name: value for name, value in options.items() if name in Options.__annotations__}
        return replace(self, **known)


def check_names(owner: str, given: Iterable[str], known: Iterable[str]) -> None:
    """What Unpack promises to type checkers holds when the program runs, too: a misspelled name would have no effect."""
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise TypeError(f"{owner} has no {unknown[0]!r}, only {', '.join(known)}")


def listed(name: str, value: Any) -> Any:
    """A list as it is. A string is a sequence of its characters, so neither Python nor a type checker objects to it."""
    if isinstance(value, (str, bytes, Mapping)):
        raise TypeError(f"{name} takes a list: {name}=[{repr(value)[:100]}]")
    return value


def read_base_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None or parts.query or parts.fragment:
        raise AgentEmailError(f"base_url must be like https://mail.example.com, without credentials or a query: {parts.scheme}:…")
    return url.rstrip("/").removesuffix("/api/v1")


def quoted(value: object) -> str:
    """A value as one segment of a path."""
    if not isinstance(value, str) or value in ("", ".", ".."):
        raise ValueError(f"An id must be a string that is not empty, not {value!r}")
    return quote(value, safe="")


def build_request(http: Union[httpx.Client, httpx.AsyncClient], settings: Settings, call: Call) -> httpx.Request:
    """The request, with the headers that all its repeats share: the key for idempotency is minted here."""
    options = call.options or {}
    settings = settings.having(options)
    headers = {
        "authorization": f"Bearer {settings.api_key}",
        "accept": "application/json",
        "user-agent": f"agent-email-python/{VERSION} python/{platform.python_version()}",
        **given({"x-env-id": settings.env_id or NOT_GIVEN}),
        **{name: str(value) for name, value in given(call.headers).items()},
        **({"idempotency-key": call.idempotency_key or str(uuid.uuid4())} if call.is_idempotent else {}),
        **options.get("headers", {}),
    }
    body = {**(call.body or {}), **call.optional_body, **options.get("body", {})}
    has_body = call.body is not None or bool(given(body))
    content = json.dumps(jsonable(body), ensure_ascii=False).encode() if has_body else None
    if content is not None:
        headers["content-type"] = "application/json"
    query = {name: query_value(value) for name, value in given({**call.query, **options.get("query", {})}).items() if value is not None}
    return http.build_request(
        call.method,
        settings.base_url + call.path,
        params=query or None,
        headers=headers,
        content=content,
        files=None if call.file is None else {"file": call.file},
        timeout=timeout_of(settings, call),
    )


def timeout_of(settings: Settings, call: Call) -> httpx.Timeout:
    if settings.timeout is None:
        return httpx.Timeout(None)
    read = settings.timeout
    if "timeout_seconds" in call.query:
        read = max(read, (call.query["timeout_seconds"] or DEFAULT_WAIT_SECONDS) + WAIT_GRACE_SECONDS)
    return httpx.Timeout(settings.timeout, read=read, connect=min(settings.timeout, 10.0))


def given(values: Mapping[str, Any]) -> Dict[str, Any]:
    return {name: value for name, value in values.items() if not isinstance(value, NotGiven)}


def jsonable(value: Any) -> Any:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(f"{value!r} has no time zone: use datetime.now(timezone.utc), for example")
        return value.isoformat()
    if isinstance(value, Mapping):
        return {name: jsonable(item) for name, item in given(value).items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [jsonable(item) for item in value]
    return value


def query_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(map(query_value, value))
    return str(jsonable(value))


def exchange(request: httpx.Request, max_retries: int, is_repeatable: bool = False, deletes: bool = False) -> Steps:
    """Sends a request until there is an answer that a repeat would not change. Raises APIError and APIConnectionError."""
    # A change with If-Match may be why the version differs at its repeat.
    is_harmless = request.method != "POST" and "if-match" not in request.headers
    is_repeatable = is_repeatable or is_harmless or "idempotency-key" in request.headers
    attempt = 0
    was_maybe_done = False
    while True:
        outcome = yield request
        if deletes and was_maybe_done and isinstance(outcome, httpx.Response) and is_not_found(outcome):
            # The answer to the deletion was lost, and its repeat finds nothing: it was done.
            return httpx.Response(204, headers=outcome.headers, request=request)
        was_maybe_done = was_maybe_done or not isinstance(outcome, (httpx.Response, *NEVER_SENT))
        delay = None if attempt >= max_retries else delay_before_repeat(outcome, attempt, is_repeatable)
        if delay is None:
            return successful(outcome)
        attempt += 1
        yield Pause(delay)


def is_not_found(response: httpx.Response) -> bool:
    return response.status_code == 404 and read_problem(response).get("code") == "not_found"


def delay_before_repeat(outcome: Outcome, attempt: int, is_repeatable: bool) -> Optional[float]:
    """Seconds; None if a repeat is pointless, or could do something twice."""
    backoff = min(LONGEST_DELAY_SECONDS, FIRST_DELAY_SECONDS * 2.0**attempt) * random.uniform(0.5, 1.0)
    if not isinstance(outcome, httpx.Response):
        if isinstance(outcome, NEVER_REPEATED):
            return None
        return backoff if is_repeatable or isinstance(outcome, NEVER_SENT) else None
    if not is_transient(outcome, is_repeatable):
        return None
    wanted = read_retry_after(outcome)
    if wanted is None:
        return backoff
    return wanted if wanted <= LONGEST_RETRY_AFTER_SECONDS else None


def is_transient(response: httpx.Response, is_repeatable: bool) -> bool:
    status = response.status_code
    if status == 429:
        # At the limit of a month, a repeat is pointless before `resets_at`.
        return read_problem(response).get("code") != "usage_limit_exceeded"
    if status == 409:
        return read_problem(response).get("code") == "request_in_progress"
    return is_repeatable and (status == 408 or status >= 500)


def perform(http: Union[httpx.Client, httpx.AsyncClient], settings: Settings, call: Call) -> Steps:
    """Makes a call, and reads its answer."""
    max_retries = settings.having(call.options or {}).max_retries
    deletes = call.method == "DELETE" and call.answer is None
    response = yield from exchange(build_request(http, settings, call), max_retries, deletes=deletes)
    return read_answer(response, call.answer)


def successful(outcome: Outcome) -> httpx.Response:
    if isinstance(outcome, httpx.Response):
        if outcome.is_success:
            return outcome
        raise error_of(outcome)
    kind = APITimeoutError if isinstance(outcome, httpx.TimeoutException) else APIConnectionError
    address = outcome.request.url.copy_with(query=None) if isinstance(outcome, httpx.RequestError) else ""
    raise kind(f"{address}: {outcome or type(outcome).__name__}") from outcome


def error_of(response: httpx.Response) -> APIError:
    code = read_problem(response).get("code")
    kind = ERRORS_BY_CODE.get(code, APIError) if isinstance(code, str) else APIError
    return kind(response)


def read_answer(response: httpx.Response, answer: Any) -> Any:
    if answer is None or response.status_code == 204:
        return None
    if answer is str:
        return response.text
    try:
        body = json.loads(response.content)
    except (ValueError, RecursionError):
        raise APIError(response) from None
    if not isinstance(body, dict):
        raise APIError(response)
    return decode(body, answer, HTTPResponse(response.status_code, response.headers, response.content))

