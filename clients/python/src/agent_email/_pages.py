"""Lists, page by page. Only one page is in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, AsyncIterator, Generic, Iterator, List, Optional, TypeVar

from ._core import Call
from ._errors import AgentEmailError
from ._model import HTTPResponse, Model, decode

if TYPE_CHECKING:
    from ._client import AgentEmail, AsyncAgentEmail

T = TypeVar("T")


@dataclass(frozen=True)
class Page(Generic[T]):
    """One page of a list. Pass `next_cursor` as `cursor`, with the same filters, to get the next one."""

    data: List[T]
    has_more: bool
    next_cursor: Optional[str]
    http_response: HTTPResponse


def read_page(answer: Model, item: Any) -> Page[Any]:
    body = answer._data
    response = answer.http_response
    if not isinstance(body.get("data"), list):
        raise AgentEmailError("The answer is no page of a list: it is none of this API.")
    data = decode(body["data"], List[item])
    return Page(data, body.get("has_more") is True, body.get("next_cursor"), response)


def call_after(call: Call, page: Page[Any]) -> Optional[Call]:
    """The call of the next page, or None after the last one."""
    if not page.has_more or page.next_cursor is None:
        return None
    if page.next_cursor == call.query.get("cursor"):
        raise AgentEmailError("The service answers the same page again.")
    return replace(call, query={**call.query, "cursor": page.next_cursor})


class Pages(Generic[T]):
    """A list. Iterate over it to get every item, over `pages()` to get every page, or take one with `page()`. Requests are
    made as they are needed; `limit` is the size of a page."""

    def __init__(self, client: AgentEmail[Any], call: Call, item: Any) -> None:
        self._client = client
        self._call = replace(call, answer=Model)
        self._item = item

    def page(self) -> Page[T]:
        """The first page, or that of `cursor`."""
        return read_page(self._client.call(self._call), self._item)

    def pages(self) -> Iterator[Page[T]]:
        call: Optional[Call] = self._call
        while call is not None:
            page: Page[T] = read_page(self._client.call(call), self._item)
            yield page
            call = call_after(call, page)

    def __iter__(self) -> Iterator[T]:
        for page in self.pages():
            yield from page.data


class AsyncPages(Generic[T]):
    """As Pages: `async for item in …`, `async for page in ….pages()`, or `await ….page()`."""

    def __init__(self, client: AsyncAgentEmail[Any], call: Call, item: Any) -> None:
        self._client = client
        self._call = replace(call, answer=Model)
        self._item = item

    async def page(self) -> Page[T]:
        """The first page, or that of `cursor`."""
        return read_page(await self._client.call(self._call), self._item)

    async def pages(self) -> AsyncIterator[Page[T]]:
        call: Optional[Call] = self._call
        while call is not None:
            page: Page[T] = read_page(await self._client.call(call), self._item)
            yield page
            call = call_after(call, page)

    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.pages():
            for item in page.data:
                yield item
