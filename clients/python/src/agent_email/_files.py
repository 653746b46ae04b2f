"""Files of requests: small ones stand in the request, larger ones are uploaded first."""

from __future__ import annotations

import base64
import mimetypes
import os
from typing import Any, BinaryIO, Iterator, Optional, Sequence, Tuple, Union

from ._core import listed
from .params import AttachmentInput

#: A path, the bytes, or an open file.
FileInput = Union[str, "os.PathLike[str]", bytes, BinaryIO]
#: Name, bytes, media type.
NamedFile = Tuple[str, bytes, str]
UploadInput = Union[FileInput, NamedFile]

FORM = "a tuple (name, bytes, media type)"
#: Of all files of a request together.
LARGEST_INLINE_BYTES = 1024 * 1024
#: What the service takes.
LARGEST_BYTES = 25 * 1024 * 1024


def read_file(file: UploadInput) -> NamedFile:
    """Into memory, so that a repeat sends the same. Raises ValueError for more than the service takes."""
    if isinstance(file, tuple):
        return read_tuple(file)
    if isinstance(file, (str, os.PathLike)):
        with open(file, "rb") as opened:
            return read_file(opened)
    if not isinstance(file, (bytes, bytearray, memoryview)) and not hasattr(file, "read"):
        raise TypeError(f"A file must be a path, bytes, an open file or {FORM}, not {type(file).__name__}")
    content = bytes(file) if isinstance(file, (bytes, bytearray, memoryview)) else file.read(LARGEST_BYTES + 1)
    path = getattr(file, "name", None)
    name = os.path.basename(path) if isinstance(path, str) else "file"
    if not isinstance(content, bytes):
        raise TypeError(f"{name!r} must be open for reading bytes: open(path, 'rb')")
    return check_size((name, content, mimetypes.guess_type(name)[0] or "application/octet-stream"))


def read_tuple(file: Tuple[Any, ...]) -> NamedFile:
    kinds: Tuple[Any, ...] = (str, (bytes, bytearray, memoryview), str)
    if len(file) != len(kinds) or not all(isinstance(part, kind) for part, kind in zip(file, kinds)):
        found = ", ".join(type(part).__name__ for part in file)
        name = repr(file[0]) if file and isinstance(file[0], str) else "A file"
        raise TypeError(f"{name} is a tuple ({found}), and must be {FORM}, such as ('note.txt', b'Thanks!', 'text/plain')")
    return check_size((file[0], bytes(file[1]), file[2]))


def check_size(file: NamedFile) -> NamedFile:
    if len(file[1]) > LARGEST_BYTES:
        raise ValueError(f"{file[0]!r} is too large: a file may have at most {LARGEST_BYTES} bytes")
    return file


def split_by_size(
    files: Sequence[UploadInput], idempotency_key: Optional[str]
) -> Iterator[Tuple[NamedFile, Optional[str], Optional[AttachmentInput]]]:
    """Each file, the key of its upload, and how it stands in the request; None if it must be uploaded first."""
    size = 0
    for number, file in enumerate(map(read_file, listed("files", files)), 1):
        name, content, content_type = file
        if size + len(content) > LARGEST_INLINE_BYTES:
            # Two files under one key would be two requests under one key, which the service refuses.
            yield file, f"{idempotency_key}:file-{number}" if idempotency_key else None, None
            continue
        size += len(content)
        inline: AttachmentInput = {"filename": name, "content_type": content_type, "content": base64.b64encode(content).decode()}
        yield file, None, inline
