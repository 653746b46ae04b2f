"""Client of the agent email service: inboxes that software agents send and receive email with."""

from . import _error_codes, params, types, webhooks
from ._client import AgentEmail, AsyncAgentEmail
from ._core import NOT_GIVEN, Call, NotGiven, Options, RequestOptions
from ._error_codes import *  # noqa: F403 - a class for each code
from ._errors import (
    AgentEmailError,
    APIConnectionError,
    APIError,
    APITimeoutError,
    WaitTimeoutError,
    WebhookVerificationError,
)
from ._model import HTTPResponse, Model
from ._pages import AsyncPages, Page, Pages
from ._streams import AsyncEventStream, EventStream
from ._version import VERSION as __version__
from ._waits import FoundCode

__all__ = [
    "AgentEmail",
    "AgentEmailError",
    "APIConnectionError",
    "APIError",
    "APITimeoutError",
    "AsyncAgentEmail",
    "AsyncEventStream",
    "AsyncPages",
    "Call",
    "EventStream",
    "FoundCode",
    "HTTPResponse",
    "Model",
    "NOT_GIVEN",
    "NotGiven",
    "Options",
    "Page",
    "Pages",
    "RequestOptions",
    "WaitTimeoutError",
    "WebhookVerificationError",
    "__version__",
    "params",
    "types",
    "webhooks",
]
__all__ += _error_codes.__all__
