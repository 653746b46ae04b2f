"""The tools of the service for LangChain: `pip install "agent-email[langchain]"`."""

from __future__ import annotations

import asyncio
from typing import Any, List

from langchain_core.tools import StructuredTool

from ._client import AgentEmail, AsyncAgentEmail
from ._tools import Tool


def tools(client: AgentEmail[Any]) -> List[StructuredTool]:
    """For `create_agent(model, tools(client))`: all that the key of the client permits, as over MCP."""
    return [wrap(client, tool) for tool in client.list_tools()]


async def async_tools(client: AsyncAgentEmail[Any]) -> List[StructuredTool]:
    """As `tools`. They can only be awaited."""
    return [wrap_async(client, tool) for tool in await client.list_tools()]


def wrap(client: AgentEmail[Any], tool: Tool) -> StructuredTool:
    def invoke(**arguments: Any) -> str:
        return client.call_tool(tool.name, arguments)

    async def invoke_async(**arguments: Any) -> str:
        return await asyncio.to_thread(client.call_tool, tool.name, arguments)

    return StructuredTool(
        name=tool.name, description=tool.description, args_schema=tool.parameters, func=invoke, coroutine=invoke_async
    )


def wrap_async(client: AsyncAgentEmail[Any], tool: Tool) -> StructuredTool:
    async def invoke(**arguments: Any) -> str:
        return await client.call_tool(tool.name, arguments)

    return StructuredTool(name=tool.name, description=tool.description, args_schema=tool.parameters, coroutine=invoke)
