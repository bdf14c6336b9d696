"""One byte string for each value: the form in which decisions are compared, hashed and stored.

Keys are sorted, tuples keep their order, enums are their value, absent stays ``null``; no float ever enters. Two
processes with different hash seeds must agree on every byte.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any


def plain(value: Any) -> Any:
    """Turn frozen dataclasses, enums and tuples into what JSON knows.

    A dataclass with a ``kind`` class attribute carries it, so that unions (actions) can be read back.
    """
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        public = {field.name: plain(getattr(value, field.name)) for field in fields(value) if field.init}
        kind = getattr(type(value), "kind", None)
        return {"kind": kind, **public} if isinstance(kind, str) else public
    raise TypeError(f"{type(value).__name__} has no canonical form")


def canonical_bytes(value: Any) -> bytes:
    """UTF-8 JSON with sorted keys and no spaces."""
    return json.dumps(plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def fingerprint(value: Any) -> str:
    """Content hash (SHA-256, first 16 hex digits) of the canonical form: the id under which it is stored."""
    return hashlib.sha256(canonical_bytes(value)).hexdigest()[:16]
