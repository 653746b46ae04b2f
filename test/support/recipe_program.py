"""Stands in for `print` in the samples of docs/recipes.md in Python: what they print goes to the test, and they wait for what
others do. The test is the parent process, and speaks as Node does: a JSON value a line."""

from __future__ import annotations

import json
import os
import socket
from typing import Any

from agent_email import Model, Page

channel = socket.socket(fileno=int(os.environ["NODE_CHANNEL_FD"]))
answers = channel.makefile("r")


def send(message: Any) -> None:
    channel.sendall((json.dumps(message) + "\n").encode())


def plain(value: Any) -> Any:
    if isinstance(value, Page):
        return {"data": plain(value.data), "has_more": value.has_more, "next_cursor": value.next_cursor}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value.to_dict() if isinstance(value, Model) else value


def print(*values: object) -> None:
    send({"printed": [plain(value) for value in values]})


def meanwhile(mark: str) -> None:
    send({"meanwhile": mark})
    answers.readline()


def recipe_ends(title: str) -> None:
    send({"ends": title})
    answers.readline()
