"""Client of the agent email service: inboxes that software agents send and receive email with."""

# `as` makes each name a part of the package for type checkers.
from . import params as params
from . import types as types
from . import webhooks as webhooks
from ._client import AgentEmail as AgentEmail, AsyncAgentEmail as AsyncAgentEmail
from ._core import NOT_GIVEN as NOT_GIVEN, Call as Call, NotGiven as NotGiven, Options as Options, RequestOptions as RequestOptions
from ._error_codes import *  # noqa: F403 - a class for each code
from ._errors import (
    AgentEmailError as AgentEmailError,
    APIConnectionError as APIConnectionError,
    APIError as APIError,
    APITimeoutError as APITimeoutError,
    WaitTimeoutError as WaitTimeoutError,
    WebhookVerificationError as WebhookVerificationError,
)
from ._model import HTTPResponse as HTTPResponse, Model as Model
from ._pages import AsyncPages as AsyncPages, Page as Page, Pages as Pages
from ._streams import AsyncEventStream as AsyncEventStream, EventStream as EventStream
from ._version import VERSION as __version__
from ._waits import FoundCode as FoundCode
