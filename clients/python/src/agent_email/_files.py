"""Files of requests: small ones stand in the request, larger ones are uploaded first."""

from __future__ import annotations

import base64
import mimetypes
import os
from typing import BinaryIO, Iterator, Optional, Sequence, Tuple, Union

from .params import AttachmentInput

#: A path, the bytes, or an open file.
FileInput = Union[str, "os.PathLike[str]", bytes, BinaryIO]
#: Name, bytes, media type.
NamedFile = Tuple[str, bytes, str]
UploadInput = Union[FileInput, NamedFile]

#: Of all files of a request together.
LARGEST_INLINE_BYTES = 1024 * 1024
#: What the service takes.
LARGEST_BYTES = 25 * 1024 * 1024


def read_file(file: UploadInput) -> NamedFile:
    """Into memory, so that a repeat sends the same. Raises ValueError for more than the service takes."""
    if isinstance(file, tuple):
        return file
    if isinstance(file, (str, os.PathLike)):
        with open(file, "rb") as opened:
            return read_file(opened)
    content = bytes(file) if isinstance(file, (bytes, bytearray, memoryview)) else file.read(LARGEST_BYTES + 1)
    if not isinstance(content, bytes):
        raise TypeError("The file must be open for reading bytes: open(path, 'rb')")
    if len(content) > LARGEST_BYTES:
        raise ValueError(f"A file may have at most {LARGEST_BYTES} bytes")
    path = getattr(file, "name", None)
    name = os.path.basename(path) if isinstance(path, str) else "file"
    return name, content, mimetypes.guess_type(name)[0] or "application/octet-stream"


def split_by_size(files: Sequence[UploadInput]) -> Iterator[Tuple[NamedFile, Optional[AttachmentInput]]]:
    """Each file, and how it stands in the request; None if it must be uploaded first."""
    size = 0
    for name, content, content_type in map(read_file, files):
        file = (name, content, content_type)
        if size + len(content) > LARGEST_INLINE_BYTES:
            yield file, None
            continue
        size += len(content)
        yield file, {"filename": name, "content_type": content_type, "content": base64.b64encode(content).decode()}
