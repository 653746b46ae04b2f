"""Answers as objects. What they hold is what the service sent: fields and values of newer versions are kept."""

from __future__ import annotations

import copy
import keyword
import types
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, List, Literal, Mapping, Optional, Type, Union, get_args, get_origin, get_type_hints

from ._errors import AgentEmailError

if TYPE_CHECKING:
    from typing_extensions import Never, TypeVar

    #: What write-only keys get besides resources: nothing, or a Receipt with AgentEmail(receipts=True).
    R = TypeVar("R", default=Never)
else:
    from typing import TypeVar

    R = TypeVar("R")

SECRETS = {"token", "secret", "password"}
MISSING: Any = object()
HINTS: Dict[Type[Model], Dict[str, Any]] = {}


@dataclass(frozen=True)
class HTTPResponse:
    """The HTTP response behind an answer."""

    status_code: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def request_id(self) -> Optional[str]:
        return self.headers.get("x-request-id")


class Model:
    """An object of an answer. Its attributes have the API's names; a name that is a Python keyword ends with an underscore
    (`from_`). A field that the answer leaves out is None. Fields that this version does not know are attributes, too."""

    def __init__(self, data: Dict[str, Any], http_response: Optional[HTTPResponse] = None) -> None:
        self.__dict__["_data"] = data
        self.__dict__["_http_response"] = http_response

    @property
    def http_response(self) -> HTTPResponse:
        """Status, headers and body. Only what a method returned has it, not an object within another, nor an event of a stream."""
        response: Optional[HTTPResponse] = self.__dict__["_http_response"]
        if response is None:
            raise AgentEmailError(
                f"This {type(self).__name__} is a part of an answer: http_response is that of the object (or Page) that the method returned."
            )
        return response

    def to_dict(self) -> Dict[str, Any]:
        """A copy of the JSON as the service sent it."""
        data: Dict[str, Any] = copy.deepcopy(self._data)
        return data

    if TYPE_CHECKING:
        _data: Dict[str, Any]
    else:
        # Hidden from type checkers, which shall find misspelled names.
        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            hints = hints_of(type(self))
            value = self._data.get(wire_name(name), MISSING)
            if value is MISSING:
                if name in hints:
                    return None
                raise AttributeError(f"{type(self).__name__} has no field {name!r}{self._explanation()}")
            decoded = decode(value, hints.get(name, Any))
            self.__dict__[name] = decoded
            return decoded

    def _explanation(self) -> str:
        if self._data.get("object") != "receipt":
            return ""
        return ": the key may not read this resource, so the answer is a receipt (see AgentEmail(receipts=True))"

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("Answers cannot be changed; to_dict() gives a copy that can")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and self._data == other._data

    def __dir__(self) -> List[str]:
        return sorted({*super().__dir__(), *map(attribute_name, self._data)})

    def __repr__(self) -> str:
        shown = (f"{attribute_name(name)}={show(name, value)}" for name, value in self._data.items())
        return f"{type(self).__name__}({', '.join(shown)})"


def show(name: str, value: object) -> str:
    if name in SECRETS and value:
        return "'***'"
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}…"


def wire_name(name: str) -> str:
    return name[:-1] if name.endswith("_") and keyword.iskeyword(name[:-1]) else name


def attribute_name(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) else name


def hints_of(model: Type[Model]) -> Dict[str, Any]:
    """The annotations of a class, which are read once."""
    hints = HINTS.get(model)
    if hints is None:
        hints = HINTS[model] = get_type_hints(model)
    return hints


def branches_of(hint: Any) -> List[Any]:
    if get_origin(hint) in (Union, types.UnionType):
        return [branch for one in get_args(hint) for branch in branches_of(one)]
    return [hint]


def decode(value: Any, hint: Any, response: Optional[HTTPResponse] = None) -> Any:
    """Wraps each object of the JSON into the class that the hint names for it, and others into Model."""
    if isinstance(value, list):
        items = next((get_args(one)[0] for one in branches_of(hint) if get_origin(one) is list), Any)
        return [decode(item, items) for item in value]
    if not isinstance(value, dict):
        return value
    branches = branches_of(hint)
    for branch in branches:
        if get_origin(branch) is dict:
            return {name: decode(item, get_args(branch)[1]) for name, item in value.items()}
    return choose(branches, value)(value, response)


def choose(branches: List[Any], value: Dict[str, Any]) -> Type[Model]:
    """The class for an object that may be of several: first by its kind, then by the fields that it has."""
    models = [branch for branch in branches if isinstance(branch, type) and issubclass(branch, Model)]
    fitting = [model for model in models if is_kind(model, value)]
    return max(fitting, key=lambda model: len(hints_of(model).keys() & set(map(attribute_name, value))), default=Model)


def is_kind(model: Type[Model], value: Dict[str, Any]) -> bool:
    hints = hints_of(model)
    return all(
        value.get(name) in get_args(hints[name])
        for name in ("object", "type")
        if get_origin(hints.get(name)) is Literal and len(get_args(hints[name])) == 1
    )
