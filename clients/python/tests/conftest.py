"""A server that misbehaves as told, and both clients behind one blocking face."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import struct
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Dict, Iterator, List, Optional

import httpx
import pytest

from agent_email import AgentEmail, AsyncAgentEmail

#: Reading the certificates of this machine takes longer than most tests.
TLS = ssl.create_default_context()


@dataclass
class Seen:
    method: str
    path: str
    headers: Dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Reply:
    status: int = 200
    body: Any = field(default_factory=dict)
    headers: Dict[str, str] = field(default_factory=dict)
    #: Reads the request, and then breaks the connection: before the answer, or after this many bytes of its body.
    cut_after: Optional[int] = None

    def encode(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


class FaultyServer:
    """Answers what `answer` returns for each request, and keeps the requests."""

    def __init__(self) -> None:
        self.seen: List[Seen] = []
        self.answer: Callable[[Seen], Reply] = lambda request: Reply()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", "0")))
                request = Seen(self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body)
                outer.seen.append(request)
                self.reply(outer.answer(request))

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any

            def reply(self, reply: Reply) -> None:
                content = reply.encode()
                if reply.cut_after == 0:
                    return self.cut()
                self.send_response(reply.status)
                if reply.status != 204:
                    headers = {"content-type": "application/json", "content-length": str(len(content)), **reply.headers}
                    for name, value in headers.items():
                        self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content[: reply.cut_after] if reply.status != 204 else b"")
                if reply.cut_after is not None:
                    self.wfile.flush()
                    self.cut()

            def cut(self) -> None:
                # A reset, as after kill -9.
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
                self.close_connection = True

            def log_message(self, *_: object) -> None:
                pass

            def finish(self) -> None:
                try:
                    super().finish()
                except (OSError, ValueError):
                    pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                pass

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def script(self, *replies: Reply) -> None:
        """One reply after another; the last one stays."""
        rest = list(replies)
        self.answer = lambda request: rest.pop(0) if len(rest) > 1 else rest[0]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    running = FaultyServer()
    yield running
    running.close()


class Runner:
    """Runs the same test for both clients: `run(lambda client: client.me.get())`."""

    def __init__(self, is_async: bool) -> None:
        self.is_async = is_async

    def run(self, use: Callable[[Any], Any], **options: Any) -> Any:
        if not self.is_async:
            with httpx.Client(verify=TLS) as http, AgentEmail(http_client=http, **options) as client:
                return use(client)

        async def main() -> Any:
            async with httpx.AsyncClient(verify=TLS) as http, AsyncAgentEmail(http_client=http, **options) as client:
                result = use(client)
                return await result if hasattr(result, "__await__") else result

        return asyncio.run(main())

    def collect(self, use: Callable[[Any], Any], **options: Any) -> List[Any]:
        """The items of what the function returns, which is iterated."""
        if not self.is_async:
            with httpx.Client(verify=TLS) as http, AgentEmail(http_client=http, **options) as client:
                return list(use(client))

        async def main() -> List[Any]:
            async with httpx.AsyncClient(verify=TLS) as http, AsyncAgentEmail(http_client=http, **options) as client:
                return [item async for item in use(client)]

        return asyncio.run(main())


@pytest.fixture(params=["sync", "async"])
def runner(request: pytest.FixtureRequest) -> Runner:
    return Runner(request.param == "async")


@pytest.fixture(autouse=True)
def no_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    """What this machine has set is none of the tests' business."""
    for name in ("AGENT_EMAIL_API_KEY", "AGENT_EMAIL_BASE_URL", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)



@pytest.fixture(autouse=True)
def quick(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests with a server wait a tenth of what the client waits otherwise; tests without one look at the real pauses."""
    if "server" in request.fixturenames:
        monkeypatch.setattr("agent_email._core.FIRST_DELAY_SECONDS", 0.05)
        monkeypatch.setattr("agent_email._waits.RESTART_PAUSE_SECONDS", 0.1)
        monkeypatch.setattr("agent_email._streams.DEFAULT_RETRY_SECONDS", 0.05)
