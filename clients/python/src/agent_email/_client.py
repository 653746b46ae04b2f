"""The two clients: they send what the core builds, and wait as it says."""

# What steps return is Any, and each method says what it is.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import asyncio
import copy
import time
from typing import TYPE_CHECKING, Any, List, Literal, Mapping, Optional, Sequence, overload

import httpx

from . import _tools, _waits
from ._async_resources import AsyncResources
from ._core import Call, Options, Pause, Settings, Steps, build_request, check_names, exchange, perform
from ._files import UploadInput, split_by_size
from ._model import R
from ._resources import Resources
from ._tools import Tool
from ._waits import FoundCode, WaitFilters
from .params import AttachmentInput
from .types import AgentMessage, DraftOutcome, Receipt
from .webhooks import Webhooks

if TYPE_CHECKING:
    from typing_extensions import Never, Self, Unpack

WAIT_SECONDS = 300.0
#: Each stream and each waiting call holds a connection.
LIMITS = httpx.Limits(max_connections=1000, max_keepalive_connections=20)


class AgentEmail(Resources[R]):
    """The client. `api_key` and `base_url` default to AGENT_EMAIL_API_KEY and AGENT_EMAIL_BASE_URL.

    A call that fails in passing (429, 5xx, a broken connection) is repeated up to `max_retries` times: when Retry-After
    says so, else after growing delays; a POST with the Idempotency-Key of the first attempt, so that it acts once.
    `timeout` is the number of seconds for connecting, and between two parts of an answer. `receipts=True` says that the
    key may change resources that it may not read: such calls answer a Receipt, and the types say so.

    Threads may share it. Close it, or use it in `with`.
    """

    webhooks = Webhooks()

    @overload
    def __init__(
        self: AgentEmail[Never], api_key: Optional[str] = None, base_url: Optional[str] = None, *,
        receipts: Literal[False] = False, http_client: Optional[httpx.Client] = None, **options: Unpack[Options],
    ) -> None: ...

    @overload
    def __init__(
        self: AgentEmail[Receipt], api_key: Optional[str] = None, base_url: Optional[str] = None, *,
        receipts: Literal[True], http_client: Optional[httpx.Client] = None, **options: Unpack[Options],
    ) -> None: ...

    def __init__(
        self, api_key: Optional[str] = None, base_url: Optional[str] = None, *,
        receipts: bool = False, http_client: Optional[httpx.Client] = None, **options: Unpack[Options],
    ) -> None:
        self._settings = Settings.of(api_key, base_url, options)
        self._owns_http = http_client is None
        self._http = http_client or httpx.Client(limits=LIMITS)
        super().__init__(self)

    def with_options(self, **options: Unpack[Options]) -> Self:
        """The same client with another `timeout`, `max_retries` or `env_id`. It shares the connections."""
        other = copy.copy(self)
        check_names("with_options", options, Options.__annotations__)
        other._settings = self._settings.having(options)
        other._owns_http = False
        Resources.__init__(other, other)
        return other

    def call(self, call: Call) -> Any:
        return self._run(perform(self._http, self._settings, call))

    def request(self, call: Call) -> httpx.Response:
        """The raw answer, also of operations that this version does not know: `client.request(Call("GET", "/api/v1/me"))`.
        It is repeated, and raises APIError, as every call."""
        retries = self._settings.having(call.options or {}).max_retries
        return self._run(exchange(self._build(call), retries))

    def wait_for_message(self, id: str, *, timeout: float = WAIT_SECONDS, **filters: Unpack[WaitFilters]) -> AgentMessage:
        """The first message of the last 30 seconds in an inbox or a thread, or the next one. `from_` is an address or a
        domain, `subject` a part of the subject. In a loop, pass the id of the last message as `since`. Raises
        WaitTimeoutError after `timeout` seconds."""
        return self._run(_waits.wait_for_message(self._perform, id, timeout, filters))

    def wait_for_code(self, id: str, *, timeout: float = WAIT_SECONDS, **filters: Unpack[WaitFilters]) -> FoundCode:
        """The one-time code (`value`) of the first `message` that has one. Otherwise as wait_for_message."""
        return self._run(_waits.wait_for_code(self._perform, id, timeout, filters))

    def wait_for_outcome(self, message_id: str, *, timeout: float = WAIT_SECONDS) -> AgentMessage:
        """The message when it is known what happened to it for each recipient: see its `status` and `bounce`."""
        return self._run(_waits.wait_for_outcome(self._perform, message_id, timeout))

    def wait_for_decision(self, draft_id: str, *, timeout: float = WAIT_SECONDS) -> DraftOutcome:
        """What a person decided about a draft, or what else ended it: see its `outcome` and `note`."""
        return self._run(_waits.wait_for_decision(self._perform, draft_id, timeout))

    def attach(
        self, inbox_id: str, files: Sequence[UploadInput], *, idempotency_key: Optional[str] = None
    ) -> List[AttachmentInput]:
        """Files as `attachments` of a message or draft: paths, open files, or tuples of name, bytes and media type. Up to 1 MiB
        of them stand in the request itself; the others are uploaded now. With an `idempotency_key`, each upload has a key
        that is derived from it: a repeat with the same files returns the same, so that the send can be repeated, too."""
        return [
            small or {"attachment_id": self.attachments.upload(inbox_id, file, idempotency_key=key).id}
            for file, key, small in split_by_size(files, idempotency_key)
        ]

    def list_tools(self) -> List[Tool]:
        """The tools that the service offers this key over MCP. `agent_email.openai_agents` and `.langchain` wrap them."""
        return self._run(_tools.list_tools(self._build, self._settings.max_retries))

    def call_tool(self, name: str, arguments: Mapping[str, Any]) -> str:
        """The answer of a tool, as text for a model."""
        return self._run(_tools.call_tool(self._build, self._settings.max_retries, name, arguments))

    def close(self) -> None:
        if self._owns_http:
            self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(base_url={self._settings.base_url!r})"

    def _build(self, call: Call) -> httpx.Request:
        return build_request(self._http, self._settings, call)

    def _perform(self, call: Call) -> Steps:
        return perform(self._http, self._settings, call)

    def _run(self, steps: Steps) -> Any:
        outcome: Any = None
        try:
            while True:
                step = steps.send(outcome)
                if isinstance(step, Pause):
                    time.sleep(step.seconds)
                    outcome = None
                    continue
                try:
                    outcome = self._http.send(step, follow_redirects=False)
                except httpx.RequestError as error:
                    outcome = error
        except StopIteration as end:
            return end.value


class AsyncAgentEmail(AsyncResources[R]):
    """As AgentEmail, with `await`. Tasks may share it; cancelling a task cancels its call. It needs asyncio."""

    webhooks = Webhooks()

    @overload
    def __init__(
        self: AsyncAgentEmail[Never], api_key: Optional[str] = None, base_url: Optional[str] = None, *,
        receipts: Literal[False] = False, http_client: Optional[httpx.AsyncClient] = None, **options: Unpack[Options],
    ) -> None: ...

    @overload
    def __init__(
        self: AsyncAgentEmail[Receipt], api_key: Optional[str] = None, base_url: Optional[str] = None, *,
        receipts: Literal[True], http_client: Optional[httpx.AsyncClient] = None, **options: Unpack[Options],
    ) -> None: ...

    def __init__(
        self, api_key: Optional[str] = None, base_url: Optional[str] = None, *,
        receipts: bool = False, http_client: Optional[httpx.AsyncClient] = None, **options: Unpack[Options],
    ) -> None:
        self._settings = Settings.of(api_key, base_url, options)
        self._owns_http = http_client is None
        self._http = http_client or httpx.AsyncClient(limits=LIMITS)
        super().__init__(self)

    def with_options(self, **options: Unpack[Options]) -> Self:
        """As that of AgentEmail."""
        other = copy.copy(self)
        check_names("with_options", options, Options.__annotations__)
        other._settings = self._settings.having(options)
        other._owns_http = False
        AsyncResources.__init__(other, other)
        return other

    async def call(self, call: Call) -> Any:
        return await self._run(perform(self._http, self._settings, call))

    async def request(self, call: Call) -> httpx.Response:
        """As that of AgentEmail."""
        retries = self._settings.having(call.options or {}).max_retries
        return await self._run(exchange(self._build(call), retries))

    async def wait_for_message(self, id: str, *, timeout: float = WAIT_SECONDS, **filters: Unpack[WaitFilters]) -> AgentMessage:
        """As that of AgentEmail."""
        return await self._run(_waits.wait_for_message(self._perform, id, timeout, filters))

    async def wait_for_code(self, id: str, *, timeout: float = WAIT_SECONDS, **filters: Unpack[WaitFilters]) -> FoundCode:
        """As that of AgentEmail."""
        return await self._run(_waits.wait_for_code(self._perform, id, timeout, filters))

    async def wait_for_outcome(self, message_id: str, *, timeout: float = WAIT_SECONDS) -> AgentMessage:
        """As that of AgentEmail."""
        return await self._run(_waits.wait_for_outcome(self._perform, message_id, timeout))

    async def wait_for_decision(self, draft_id: str, *, timeout: float = WAIT_SECONDS) -> DraftOutcome:
        """As that of AgentEmail."""
        return await self._run(_waits.wait_for_decision(self._perform, draft_id, timeout))

    async def attach(
        self, inbox_id: str, files: Sequence[UploadInput], *, idempotency_key: Optional[str] = None
    ) -> List[AttachmentInput]:
        """As that of AgentEmail."""
        return [
            small or {"attachment_id": (await self.attachments.upload(inbox_id, file, idempotency_key=key)).id}
            for file, key, small in split_by_size(files, idempotency_key)
        ]

    async def list_tools(self) -> List[Tool]:
        """As that of AgentEmail."""
        return await self._run(_tools.list_tools(self._build, self._settings.max_retries))

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> str:
        """As that of AgentEmail."""
        return await self._run(_tools.call_tool(self._build, self._settings.max_retries, name, arguments))

    async def close(self) -> None:
        if self._owns_http:
            await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(base_url={self._settings.base_url!r})"

    def _build(self, call: Call) -> httpx.Request:
        return build_request(self._http, self._settings, call)

    def _perform(self, call: Call) -> Steps:
        return perform(self._http, self._settings, call)

    async def _run(self, steps: Steps) -> Any:
        outcome: Any = None
        try:
            while True:
                step = steps.send(outcome)
                if isinstance(step, Pause):
                    await asyncio.sleep(step.seconds)
                    outcome = None
                    continue
                try:
                    outcome = await self._http.send(step, follow_redirects=False)
                except httpx.RequestError as error:
                    outcome = error
        except StopIteration as end:
            return end.value
