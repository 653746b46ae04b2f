"""Both clients against the running service: test/clients/python.e2e.test.ts starts it, and says in AGENT_EMAIL_TEST where it is."""

from __future__ import annotations

import asyncio
import io
import json
import os
import smtplib
import threading
import time
import urllib.request
from datetime import datetime, timedelta, timezone
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Dict, List, Tuple

import pytest

from agent_email import AgentEmail, AsyncAgentEmail, NotFoundError, PermissionDeniedError, WaitTimeoutError, types
from conftest import Runner

PLACES: Dict[str, Any] = json.loads(os.environ.get("AGENT_EMAIL_TEST", "{}"))
pytestmark = pytest.mark.skipif(not PLACES, reason="AGENT_EMAIL_TEST names the service")


def where(**more: Any) -> Dict[str, Any]:
    return {"api_key": PLACES["api_key"], "base_url": PLACES["base_url"], **more}


def control(path: str) -> None:
    urllib.request.urlopen(urllib.request.Request(f"{PLACES['control_url']}/{path}", method="POST"), timeout=60).read()


def deliver(to: str, subject: str, text: str, **headers: str) -> None:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "Ada <ada@people.example>", to, subject
    for name, value in headers.items():
        mail[name.replace("_", "-")] = value
    mail.set_content(text)
    with smtplib.SMTP(PLACES["inbound_smtp"]["host"], PLACES["inbound_smtp"]["port"]) as smtp:
        smtp.send_message(mail)


@pytest.fixture(scope="module")
def client() -> Any:
    with AgentEmail(**where()) as shared:
        yield shared


class Receiver:
    """A server for webhooks that keeps what it gets."""

    def __init__(self) -> None:
        self.got: List[Tuple[bytes, Dict[str, str]]] = []
        got = self.got

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                got.append((self.rfile.read(int(self.headers["content-length"])), dict(self.headers.items())))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/hook"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def test_the_story_of_the_demo(client: AgentEmail) -> None:
    receiver = Receiver()
    inbox = client.inboxes.create(display_name="Demo agent")
    endpoint = client.webhook_endpoints.create(
        url=receiver.url, events=["message.sent", "message.delivered", "message.received"], inbox_ids=[inbox.id]
    )
    try:
        draft = client.drafts.create(inbox.id, to=[{"email": "ada@people.example", "name": "Ada"}])
        written = client.drafts.update(
            draft.id, subject="The report", text_body="Dear Ada,\n\nshall I send it?", if_match=f'"{draft.version}"'
        )
        assert written.version > draft.version
        sent = client.drafts.send(draft.id)
        assert sent.object == "message"
        assert client.wait_for_outcome(sent.id).status == "delivered"
        deliver(inbox.email, "Re: The report", "Yes, please send it.\n\nOn Monday, the agent wrote:\n> Dear Ada,", In_Reply_To=f"<{sent.rfc_message_id}>")
        answer = client.wait_for_message(sent.thread_id, from_="people.example")
        assert (answer.text, answer.from_.name) == ("Yes, please send it.", "Ada")
        reply = client.messages.reply(answer.id, text_body="Here it is.", view="agent")
        assert reply.object == "message" and reply.to is not None and reply.to[0].email == "ada@people.example"
        thread = client.threads.get(sent.thread_id)
        assert thread.message_count == 3
        deadline = time.monotonic() + 20
        while len(receiver.got) < 3 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert endpoint.secret
        events = [client.webhooks.unwrap(body, headers, endpoint.secret) for body, headers in receiver.got]
        assert {event.type for event in events} >= {"message.sent", "message.delivered", "message.received"}
    finally:
        client.webhook_endpoints.delete(endpoint.id)
        receiver.close()


def test_a_send_whose_answers_are_lost_is_sent_once(client: AgentEmail, runner: Runner) -> None:
    inbox = client.inboxes.create()
    behind = where(base_url=PLACES["proxy_url"])
    control("lose/2")
    sent = runner.run(lambda one: one.messages.send(inbox.id, to=["ada@people.example"], subject="Once"), **behind)
    assert [message.id for message in client.messages.list(inbox.id, direction="outbound")] == [sent.id]
    control("lose/1")
    upload = runner.run(lambda one: one.attachments.upload(inbox.id, ("a.txt", b"a" * 100, "text/plain")), **behind)
    assert upload.size_bytes == 100
    control("lose/1")
    assert runner.run(lambda one: one.messages.delete(sent.id), **behind) is None
    with pytest.raises(NotFoundError):
        client.messages.get(sent.id)


def test_a_stream_goes_on_after_kill_9_of_its_api(client: AgentEmail, runner: Runner) -> None:
    """The control server kills the API behind the proxy, and starts another one."""
    inbox = client.inboxes.create()
    query: Any = {"types": ["message.sent"], "inbox_id": inbox.id}
    got: List[str] = []
    connected, done = threading.Event(), threading.Event()
    expected = 9

    def take(event: Any, stream: Any) -> bool:
        assert stream.last_event_id
        got.append(event.data.message_id)
        return len(got) >= expected

    def follow(one: AgentEmail) -> None:
        with one.events.stream(**query) as stream:
            threading.Thread(target=watch, args=(stream,), daemon=True).start()
            for event in stream:
                if take(event, stream):
                    return

    async def follow_async(one: AsyncAgentEmail) -> None:
        async with one.events.stream(**query) as stream:
            threading.Thread(target=watch, args=(stream,), daemon=True).start()
            async for event in stream:
                if take(event, stream):
                    return

    def watch(stream: Any) -> None:
        while stream.last_event_id is None:
            time.sleep(0.01)
        connected.set()

    def run() -> None:
        use: Any = follow_async if runner.is_async else follow
        runner.run(use, **where(base_url=PLACES["proxy_url"]))
        done.set()

    threading.Thread(target=run, daemon=True).start()
    assert connected.wait(20)
    sent: List[str] = []

    def send(count: int) -> None:
        results = client.messages.send_batch(inbox.id, messages=[{"to": ["ada@people.example"], "subject": f"No. {i}"} for i in range(count)])
        sent.extend(one.message_id for one in results.data if one.message_id)

    send(3)
    while not got:
        time.sleep(0.02)
    control("kill")
    send(5)
    for id in sent:
        client.wait_for_outcome(id)
    control("start")
    send(1)
    assert done.wait(40), f"{len(got)} of {expected} came"
    assert sorted(got) == sorted(sent)


def test_codes_decisions_files_labels_and_pages(client: AgentEmail, runner: Runner) -> None:
    inbox = client.inboxes.create()
    deliver(inbox.email, "Your code", "Your code is 481516. It expires in 10 minutes.")
    code = runner.run(lambda one: one.wait_for_code(inbox.id, from_="people.example", timeout=30), **where())
    assert (code.value, code.message.subject) == ("481516", "Your code")
    with pytest.raises(WaitTimeoutError) as caught:
        runner.run(lambda one: one.wait_for_message(inbox.id, since=code.message.id, timeout=1), **where())
    assert caught.value.since == code.message.id
    results = client.messages.change_labels(ids=[code.message.id, "msg_unknown"], add=[f"done {inbox.id}"])
    assert [one.error and one.error.code for one in results.data] == [None, "not_found"]
    labeled = runner.collect(lambda one: one.messages.list_all(label=f"done {inbox.id}", view="agent", limit=1), **where())
    assert [message.id for message in labeled] == [code.message.id]
    first, files = [
        runner.run(
            lambda one: one.attach(
                inbox.id, [("small.txt", b"small", "text/plain"), io.BytesIO(b"x" * 1_500_000)], idempotency_key=inbox.id
            ),
            **where(),
        )
        for _ in range(2)
    ]
    # The service returns the same id, so that the send is the same, too.
    assert first == files
    assert ["content" in file for file in files] == [True, False]
    later = client.messages.send(
        inbox.id,
        to=["ada@people.example"],
        subject="Later",
        attachments=files,
        send_at=datetime.now(timezone.utc) + timedelta(seconds=1),
    )
    assert later.object == "draft"
    decision = runner.run(lambda one: one.wait_for_decision(later.id, timeout=30), **where())
    assert decision.outcome == "sent" and decision.message_id
    attachments = client.messages.get(decision.message_id, view="agent").attachments or []
    assert [(file.filename, file.size_bytes) for file in attachments] == [("small.txt", 5), ("file", 1_500_000)]


def test_receipts_and_permissions(client: AgentEmail, runner: Runner) -> None:
    inbox = client.inboxes.create()
    key = client.api_keys.create(name="Writer", inbox_id=inbox.id, permissions=["messages:send", "drafts:write"])
    writer = where(api_key=key.token)
    receipt = runner.run(lambda one: one.messages.send(inbox.id, to=["ada@people.example"]), receipts=True, **writer)
    assert isinstance(receipt, types.Receipt) and receipt.id and receipt.status
    with pytest.raises(PermissionDeniedError) as caught:
        runner.run(lambda one: one.messages.list(inbox.id).page(), **writer)
    assert caught.value.problem["permission"] == "messages:read" and caught.value.fix
    client.api_keys.delete(key.id)


def test_every_list_answers_a_page(client: AgentEmail) -> None:
    """What the service answers is what the types say, also where a list is empty."""
    inbox = client.inboxes.create()
    lists: List[Any] = [client.inboxes.list(), client.messages.list_all(view="full"), client.threads.list(inbox.id), client.drafts.list_all()]
    lists += [client.domains.list(), client.webhook_endpoints.list(), client.events.list(), client.suppressions.list()]
    lists += [client.refusals.list(), client.requests.list(), client.api_keys.list(), client.members.list(), client.lists.list("send", "block")]
    for one in lists:
        page: Any = one.page()
        assert isinstance(page.data, list) and page.http_response.request_id
    assert client.me.get().kind == "api_key" and client.usage.get().object == "usage"


def test_tools_for_openai_agents_and_langchain(client: AgentEmail) -> None:
    from agents.tool_context import ToolContext

    from agent_email import langchain, openai_agents

    inbox = client.inboxes.create()
    names = [tool.name for tool in client.list_tools()]
    assert {"whoami", "send_message", "wait_for_code"} <= set(names)
    [whoami] = [tool for tool in langchain.tools(client) if tool.name == "whoami"]
    assert json.loads(whoami.invoke({}))["kind"] == "api_key"
    by_name = {tool.name: tool for tool in langchain.tools(client)}
    assert list(by_name) == names
    sent = json.loads(by_name["send_message"].invoke({"inbox_id": inbox.id, "to": ["ada@people.example"], "subject": "By a tool"}))
    assert client.messages.get(sent["id"]).subject == "By a tool"
    refused = json.loads(by_name["get_message"].invoke({"message_id": "msg_unknown"}))
    assert refused["code"] == "not_found" and refused["fix"]

    async def with_agents() -> None:
        async with AsyncAgentEmail(**where()) as one:
            for given in (one, client):
                tools = {tool.name: tool for tool in await openai_agents.tools(given)}
                assert list(tools) == names
                schema = tools["get_message"].params_json_schema
                assert schema["required"] == ["message_id"] and schema == by_name["get_message"].args_schema
                arguments = json.dumps({"message_id": sent["id"]})
                context = ToolContext(None, tool_name="get_message", tool_call_id="1", tool_arguments=arguments)
                answer = json.loads(await tools["get_message"].on_invoke_tool(context, arguments))
                assert answer["id"] == sent["id"] and "By a tool" in answer["subject"]
            for tool in await langchain.async_tools(one):
                if tool.name == "whoami":
                    assert json.loads(await tool.ainvoke({}))["kind"] == "api_key"

    asyncio.run(with_agents())
