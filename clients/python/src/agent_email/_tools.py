"""The tools of the service (`POST /mcp`), for frameworks of agents: their names, schemas and answers come from the service, so
that they are the same as over MCP, and only those that the key permits."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional

import httpx

from ._core import Call, Steps, exchange
from ._errors import AgentEmailError, APIError
from ._streams import BlockReader

PROTOCOL = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}
#: A tool that waits ends after 50 s.
TOOL_SECONDS = 75.0
BuildRequest = Callable[[Call], httpx.Request]


@dataclass(frozen=True)
class Tool:
    name: str
    description: str
    #: JSON Schema of the arguments.
    parameters: Dict[str, Any]


def list_tools(build: BuildRequest, max_retries: int) -> Steps:
    tools: List[Tool] = []
    cursor: Optional[str] = None
    for _ in range(100):
        result = yield from invoke(build, max_retries, "tools/list", {} if cursor is None else {"cursor": cursor})
        tools += [Tool(one["name"], one.get("description", ""), one["inputSchema"]) for one in result["tools"]]
        cursor = result.get("nextCursor")
        if cursor is None:
            return tools
    raise AgentEmailError("The service lists tools without end.")


def call_tool(build: BuildRequest, max_retries: int, name: str, arguments: Mapping[str, Any]) -> Steps:
    """What the tool answers, as text for a model: JSON. A refusal is an answer, too, with `code` and `fix`. After a broken
    connection it is not repeated: of some tools, a repeat would act twice."""
    result = yield from invoke(build, max_retries, "tools/call", {"name": name, "arguments": dict(arguments)})
    return "\n".join(part["text"] for part in result["content"] if part.get("type") == "text")


def invoke(build: BuildRequest, max_retries: int, method: str, params: Mapping[str, Any]) -> Steps:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    call = Call("POST", "/mcp", body=body, headers=PROTOCOL, options={"timeout": TOOL_SECONDS})
    response = yield from exchange(build(call), max_retries, is_repeatable=method == "tools/list")
    message = read_message(response)
    if "error" in message:
        raise AgentEmailError(f"{method}: {message['error'].get('message', 'refused')}")
    return message["result"]


def read_message(response: httpx.Response) -> Dict[str, Any]:
    """The answer to the request: JSON, or the last message of a stream."""
    texts = [response.text]
    if response.headers.get("content-type", "").startswith("text/event-stream"):
        texts = [block["data"] for block in BlockReader().feed(response.content + b"\n\n") if "data" in block]
    try:
        messages = [json.loads(text) for text in texts]
        return next(one for one in reversed(messages) if one.get("id") == 1 and ("result" in one or "error" in one))
    except (ValueError, AttributeError, StopIteration):
        raise APIError(response) from None
