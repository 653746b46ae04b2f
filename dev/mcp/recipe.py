"""What an agent does with its inbox, by the official Python client: argument 1 is the URL, AGENT_EMAIL_API_KEY the key."""

import asyncio
import os
import sys

from mcp import Client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client


async def work(url: str, key: str, mode: str) -> None:
    http_client = create_mcp_http_client(headers={"Authorization": f"Bearer {key}"})
    async with Client(streamable_http_client(url, http_client=http_client), mode=mode) as client:

        async def call(name: str, **arguments: object) -> dict:
            result = await client.call_tool(name, arguments)
            assert not result.is_error, result.content
            return result.structured_content

        names = [tool.name for tool in (await client.list_tools()).tools]
        assert len(names) == 23, names
        inbox = await call("create_inbox")
        other = await call("create_inbox")
        letter = {"inbox_id": inbox["id"], "to": [other["email"]], "subject": "Code", "text_body": "Your code is 482913."}
        sent = await call("send_message", **letter)
        assert (await call("send_message", **letter))["replayed"]
        found = await call("wait_for_code", inbox_id=other["id"])
        assert found["codes"][0]["value"] == "482913", found
        assert "<untrusted " in found["subject"], found
        reply = await call("reply", message_id=found["id"], text_body="Thank you")
        assert reply["to"][0]["email"] == inbox["email"], reply
        status = await call("delivery_status", message_id=sent["id"], wait_seconds=50)
        assert status["status"] == "delivered", status
        assert (await call("get_thread", thread_id=found["thread_id"]))["message_count"] == 2
        refused = await client.call_tool("get_message", {"message_id": "msg_none"})
        assert refused.is_error and refused.structured_content["fix"], refused
    print(f"python {mode}: done")


async def main() -> None:
    for mode in ("auto", "legacy"):
        await work(sys.argv[1], os.environ["AGENT_EMAIL_API_KEY"], mode)


asyncio.run(main())
