"""Every operation of the OpenAPI document: what its method sends, and what it makes of the answer."""

from __future__ import annotations

import inspect
import json
import os
import re
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple
from urllib.parse import parse_qsl, urlsplit

import pytest

from agent_email import AgentEmail, AsyncAgentEmail, Model, Page
from agent_email._resources import Group
from conftest import FaultyServer, Reply, Runner, Seen
from test_retries import options

FILE = os.environ.get("AGENT_EMAIL_OPENAPI", "")
DOCUMENT: Dict[str, Any] = json.loads(Path(FILE).read_text()) if FILE else {"paths": {}, "components": {}}
SHARED = {"x-org-id", "x-env-id", "idempotency-key", "last-event-id"}

pytestmark = pytest.mark.skipif(not FILE, reason="AGENT_EMAIL_OPENAPI names the OpenAPI document")


def snake(name: str) -> str:
    return re.sub("[A-Z]", lambda match: f"_{match[0].lower()}", name).replace("-", "_")


def resolve(schema: Dict[str, Any]) -> Dict[str, Any]:
    while "$ref" in schema:
        found: Any = DOCUMENT
        for part in schema["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        schema = {**found, **{name: value for name, value in schema.items() if name != "$ref"}}
    return schema


def operations() -> Iterator[Tuple[str, str, Dict[str, Any]]]:
    for path, item in DOCUMENT["paths"].items():
        for verb, operation in item.items():
            by_key = any("apiKey" in scheme for scheme in operation.get("security", [{"apiKey": []}]))
            if "x-alias-of" not in operation and "x-staff-role" not in operation and by_key:
                yield verb.upper(), path, operation


OPERATIONS = list(operations())


def example(schema: Dict[str, Any], name: str = "") -> Any:
    """A value that the schema allows, with every field."""
    schema = resolve(schema)
    if "const" in schema:
        return schema["const"]
    for known in ("enum", "x-known-values"):
        if known in schema:
            return schema[known][0]
    branches = schema.get("oneOf") or schema.get("anyOf")
    if branches:
        return example(branches[0], name)
    kinds = schema.get("type", "object")
    kind = kinds if isinstance(kinds, str) else next(one for one in kinds if one != "null")
    if kind == "object":
        return {key: example(value, key) for key, value in schema.get("properties", {}).items()}
    if kind == "array":
        return [example(schema["items"], name)]
    simple: Dict[str, Any] = {"string": f"a {name}", "integer": 7, "number": 0.5, "boolean": True, "null": None}
    return simple[kind]


def parameters(operation: Dict[str, Any], place: str) -> Dict[str, Dict[str, Any]]:
    given = [resolve(one) for one in operation.get("parameters", [])]
    return {one["name"]: one for one in given if one["in"] == place and one["name"] not in SHARED}


def good(operation: Dict[str, Any]) -> Tuple[int, str, Dict[str, Any]]:
    """Status, media type and schema of the first answer that is no error."""
    status, response = next((int(s), r) for s, r in operation["responses"].items() if s < "300")
    contents: Dict[str, Dict[str, Any]] = response.get("content", {})
    for media, content in contents.items():
        return status, media, content["schema"]
    return status, "", {}


def find(client: Any, operation: Dict[str, Any]) -> Any:
    group, method = operation["operationId"].split(".")
    return getattr(getattr(client, snake(group)), snake(method))


def test_the_client_has_these_operations_and_no_others() -> None:
    for client in (AgentEmail("k", "http://x"), AsyncAgentEmail("k", "http://x")):
        groups = {name: group for name, group in vars(client).items() if isinstance(group, Group) or hasattr(group, "_client")}
        methods = {
            f"{name}.{method}"
            for name, group in groups.items()
            for method, _ in inspect.getmembers(type(group), inspect.isfunction)
            if not method.startswith("_")
        }
        assert len(OPERATIONS) > 100
        assert methods == {".".join(map(snake, operation["operationId"].split("."))) for _, _, operation in OPERATIONS}


@pytest.mark.parametrize(("verb", "path", "operation"), OPERATIONS, ids=[o["operationId"] for _, _, o in OPERATIONS])
def test_each_sends_all_that_the_document_names_and_reads_the_answer(
    server: FaultyServer, verb: str, path: str, operation: Dict[str, Any]
) -> None:
    for is_async in (False, True):
        server.seen.clear()
        check(server, Runner(is_async), verb, path, operation)


def check(server: FaultyServer, runner: Runner, verb: str, path: str, operation: Dict[str, Any]) -> None:
    query = {name: example(one["schema"], name) for name, one in parameters(operation, "query").items()}
    headers = {name: f"a {name}" for name in parameters(operation, "header")}
    content = operation.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema")
    body = example(schema) if schema else {}
    status, media, answer = good(operation)
    if "view" in query:
        query["view"] = "agent"
    value = example(answer) if answer else {}
    is_page = media == "application/json" and "has_more" in value
    if is_page:
        value = {**value, "has_more": False, "next_cursor": None}
    is_stream = media == "text/event-stream"
    text = b'id: 1\ndata: {"type": "x"}\n\n' if is_stream else value if media == "application/json" else b"a text"
    server.script(Reply(status, text, {"content-type": media or "application/json"}))
    ids = [f"id/of {name}" for name in re.findall(r"{([^}]+)}", path)]
    files: List[Any] = [("a.txt", b"the file", "text/plain")] if "multipart/form-data" in content else []
    named = {python_name(name): item for name, item in {**query, **headers, **body}.items()}
    if is_stream:
        # One string in the API, a list in Python.
        named["types"] = [named["types"]]
    result = call(runner, server, operation, [*ids, *files], named, is_page, is_stream)

    [request] = server.seen
    assert request.method == verb
    pieces = iter(ids)
    wanted = re.sub(r"{[^}]+}", lambda _: next(pieces).replace("/", "%2F").replace(" ", "%20"), path)
    assert urlsplit(request.path).path == wanted
    check_request(request, operation, query, headers, body, bool(files), is_stream)
    check_answer(result, status, media, value, is_page)


def python_name(name: str) -> str:
    import keyword

    name = snake(name)
    return f"{name}_" if keyword.iskeyword(name) else name


def call(runner: Runner, server: FaultyServer, operation: Dict[str, Any], ids: List[Any], named: Dict[str, Any], is_page: bool, is_stream: bool) -> Any:
    if is_page:
        return runner.run(lambda client: find(client, operation)(*ids, **named).page(), **options(server))
    if not is_stream:
        return runner.run(lambda client: find(client, operation)(*ids, **named), **options(server))

    async def first_async(client: Any) -> Any:
        async with find(client, operation)(*ids, **named) as stream:
            async for event in stream:
                return event

    def first(client: Any) -> Any:
        with find(client, operation)(*ids, **named) as stream:
            return next(iter(stream))

    return runner.run(first_async if runner.is_async else first, **options(server))


def check_request(request: Seen, operation: Dict[str, Any], query: Dict[str, Any], headers: Dict[str, Any], body: Any, is_file: bool, is_stream: bool) -> None:
    sent = dict(parse_qsl(urlsplit(request.path).query))
    expected = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in query.items()}
    if is_stream:
        # The position is the header that each attempt sends.
        assert request.headers["last-event-id"] == expected.pop("after")
    assert sent == expected
    assert {name: request.headers[name] for name in headers} == headers
    takes_key = any(resolve(one)["name"] == "idempotency-key" for one in operation.get("parameters", []))
    assert ("idempotency-key" in request.headers) is takes_key
    assert request.headers["authorization"] == "Bearer ask_test_key"
    if is_file:
        assert b'filename="a.txt"' in request.body and b"\r\n\r\nthe file\r\n" in request.body
    elif operation.get("requestBody"):
        assert request.headers["content-type"] == "application/json" and request.json == body
    else:
        assert request.body == b""


def check_answer(result: Any, status: int, media: str, value: Any, is_page: bool) -> None:
    if status == 204:
        assert result is None
    elif media == "application/json":
        items = result.data if is_page else [result]
        originals = value["data"] if is_page else [value]
        assert isinstance(result, Page) is is_page and len(items) == len(originals) == 1
        for item, original in zip(items, originals):
            check_fields(item, original)
    elif media == "text/plain":
        assert result == "a text"


def check_fields(item: Any, original: Any) -> None:
    """Each object has a class of its own that knows all its fields."""
    if isinstance(original, list):
        for one, other in zip(item, original):
            check_fields(one, other)
    elif isinstance(original, dict) and isinstance(item, dict):
        assert item.keys() == original.keys()
    elif isinstance(original, dict):
        assert isinstance(item, Model) and type(item) is not Model, original
        for name, value in original.items():
            check_fields(getattr(item, python_name(name)), value)
    else:
        assert item == original

