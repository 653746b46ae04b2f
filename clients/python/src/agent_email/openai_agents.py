"""The tools of the service for the OpenAI Agents SDK: `pip install "agent-email[openai-agents]"`."""

from __future__ import annotations

import asyncio
import json
from typing import Any, List, Union, cast

from agents import FunctionTool

from ._client import AgentEmail, AsyncAgentEmail
from ._tools import Tool


async def tools(client: Union[AgentEmail[Any], AsyncAgentEmail[Any]]) -> List[FunctionTool]:
    """For `Agent(tools=await tools(client))`: all that the key of the client permits, as over MCP."""
    if isinstance(client, AsyncAgentEmail):
        listed = await client.list_tools()
    else:
        listed = await asyncio.to_thread(client.list_tools)
    return [wrap(client, tool) for tool in listed]


def wrap(client: Union[AgentEmail[Any], AsyncAgentEmail[Any]], tool: Tool) -> FunctionTool:
    async def invoke(_: object, arguments: str) -> str:
        given = cast("dict[str, Any]", json.loads(arguments or "{}"))
        if isinstance(client, AsyncAgentEmail):
            return await client.call_tool(tool.name, given)
        return await asyncio.to_thread(client.call_tool, tool.name, given)

    # Strict schemas have no optional arguments.
    return FunctionTool(tool.name, tool.description, tool.parameters, invoke, strict_json_schema=False)
