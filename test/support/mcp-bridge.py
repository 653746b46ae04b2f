"""Lets a test use the official Python client: argument 1 is the URL of /mcp, 2 the mode, AGENT_EMAIL_API_KEY the key.

Each line of standard input is a call, as JSON with `name` and `arguments`; each line of standard output is its result.
"""

import asyncio
import json
import os
import sys

from mcp import Client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client


async def serve(url: str, mode: str, key: str) -> None:
    http_client = create_mcp_http_client(headers={"Authorization": f"Bearer {key}"})
    async with Client(streamable_http_client(url, http_client=http_client), mode=mode) as client:
        # A client that knows the schemas checks each answer.
        await client.list_tools()
        while line := await asyncio.to_thread(sys.stdin.readline):
            call = json.loads(line)
            result = await client.call_tool(call["name"], call["arguments"])
            text = result.content[0].text
            print(json.dumps({"isError": result.is_error, "answer": result.structured_content, "text": text}), flush=True)


asyncio.run(serve(sys.argv[1], sys.argv[2], os.environ["AGENT_EMAIL_API_KEY"]))
