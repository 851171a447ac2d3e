"""Object stores and other places with an address, such as ``s3://bucket/folder``, through fsspec.

Every kind needs its package (``s3fs`` for s3://, ``gcsfs`` for gs://), which is imported when it is first asked for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ringleader.errors import SettingsError

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs"}
"""The extra that brings the package of a kind of store."""
LOCAL = ("file", "local")


def is_url(path: object) -> bool:
    """Whether a path is an address rather than a path of this machine."""
    return isinstance(path, str) and URL.match(path) is not None


def local_path(path: str | os.PathLike[str]) -> str | None:
    """The path on this machine; None where it is the address of another place. ``file://`` is this machine."""
    text = os.fspath(path)
    if not is_url(text):
        return text
    scheme, _, rest = text.partition("://")
    return rest if scheme in LOCAL else None


def open_store(url: str) -> tuple[Any, str]:
    """The file system of an address, and the path in it. Nothing is asked of the store yet."""
    scheme = url.partition("://")[0]
    extra = EXTRAS.get(scheme)
    hint = f"install it with: pip install 'ringleader[{extra}]'" if extra else "install the package that provides it"
    try:
        import fsspec
    except ImportError as error:
        raise SettingsError(f"{scheme}:// needs fsspec; {hint}") from error
    try:
        filesystem, path = fsspec.core.url_to_fs(url)
    except ImportError as error:
        raise SettingsError(f"{scheme}:// needs a package that is not installed; {hint}") from error
    except ValueError as error:
        raise SettingsError(f"{url[:200]!r} is not a readable address: {error}") from error
    return filesystem, str(path).rstrip("/")


@contextmanager
def as_os_errors() -> Iterator[None]:
    """Errors of a store's own library as OSError, with what it said in one line."""
    try:
        yield
    except (OSError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except Exception as error:
        said = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise OSError(f"{said[:300]}") from error
