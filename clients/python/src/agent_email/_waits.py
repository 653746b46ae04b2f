"""Waits of any length, made of waiting calls that end within what proxies allow."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Callable, Mapping, Optional, TypedDict, Union

from ._core import Call, Pause, Steps, check_names, jsonable, quoted
from ._errors import AgentEmailError, APIConnectionError, WaitTimeoutError
from ._model import wire_name
from .types import AgentMessage, AgentMessageCode, DraftOutcome, TimedOut

#: A waiting call without `since` also finds what came in the last 30 s. While the first one is shorter than that, a repeat
#: after a broken connection still covers its beginning; after it, `since` does.
FIRST_CALL_SECONDS = 20
CALL_SECONDS = 50
LOOKS_BACK_SECONDS = 30
#: Before the next call, when the service restarts.
RESTART_PAUSE_SECONDS = 1.0

Perform = Callable[[Call], Steps]


class WaitFilters(TypedDict, total=False):
    #: An address or a domain.
    from_: Optional[str]
    #: A part of it.
    subject: Optional[str]
    #: The id of the last message that was seen, or a time: also what came after it.
    since: Union[str, datetime, None]


@dataclass(frozen=True)
class FoundCode:
    """A one-time code, and the message that it stands in."""

    value: str
    code: AgentMessageCode
    message: AgentMessage

    def __str__(self) -> str:
        return self.value


def wait_for_message(perform: Perform, id: str, timeout: float, filters: WaitFilters, **more: str) -> Steps:
    """In an inbox (`inb_…`) or a thread (`thr_…`)."""
    check_names("A wait for a message or a code", filters, WaitFilters.__annotations__)
    query = {**{wire_name(name): jsonable(value) for name, value in filters.items()}, **more, "view": "agent"}
    path = f"/api/v1/threads/{quoted(id)}/wait" if id.startswith("thr_") else f"/api/v1/inboxes/{quoted(id)}/messages/wait"
    return (yield from wait(perform, path, AgentMessage, timeout, query, f"nothing came to {id}", has_since=True))


def wait_for_code(perform: Perform, id: str, timeout: float, filters: WaitFilters) -> Steps:
    message = yield from wait_for_message(perform, id, timeout, filters, **{"for": "code"})
    if not message.codes:
        raise AgentEmailError(f"{message.id} has no code.")
    code = message.codes[0]
    return FoundCode(code.value, code, message)


def wait_for_outcome(perform: Perform, message_id: str, timeout: float) -> Steps:
    path = f"/api/v1/messages/{quoted(message_id)}/wait"
    return (yield from wait(perform, path, AgentMessage, timeout, {"view": "agent"}, f"{message_id} has no outcome yet"))


def wait_for_decision(perform: Perform, draft_id: str, timeout: float) -> Steps:
    path = f"/api/v1/drafts/{quoted(draft_id)}/wait"
    return (yield from wait(perform, path, DraftOutcome, timeout, {}, f"{draft_id} is neither decided nor sent yet"))


def wait(
    perform: Perform, path: str, answer: Any, timeout: float, filters: Mapping[str, Any], nothing_yet: str, has_since: bool = False
) -> Steps:
    """Calls until the answer is not a time-out. Raises WaitTimeoutError after `timeout` seconds."""
    query = dict(filters)
    longest = FIRST_CALL_SECONDS
    ends_at = time.monotonic() + timeout
    while True:
        began_at = time.monotonic()
        query["timeout_seconds"] = max(1, min(longest, math.ceil(ends_at - began_at)))
        try:
            found = yield from perform(Call("GET", path, Union[answer, TimedOut], query))
        except APIConnectionError:
            # Once it has answered, the service is only restarting, or a network is down.
            if longest == FIRST_CALL_SECONDS or time.monotonic() >= ends_at:
                raise
            yield Pause(RESTART_PAUSE_SECONDS)
            continue
        if found.object != "timeout":
            return found
        now = time.monotonic()
        if has_since and query.get("since") is None:
            query["since"] = window_start(found.http_response.headers.get("date"), now - began_at)
        if now >= ends_at:
            raise WaitTimeoutError(f"After {timeout:g} s: {nothing_yet}.", query.get("since"))
        longest = CALL_SECONDS
        if now - began_at < query["timeout_seconds"] / 2:
            # The service is restarting.
            yield Pause(min(RESTART_PAUSE_SECONDS, ends_at - now))


def window_start(date: Optional[str], elapsed_seconds: float) -> Optional[str]:
    """When the first call began to look, by the clock of the service."""
    try:
        ended_at = parsedate_to_datetime(date or "")
    except (TypeError, ValueError):
        return None
    return (ended_at - timedelta(seconds=math.ceil(elapsed_seconds) + LOOKS_BACK_SECONDS)).isoformat()
