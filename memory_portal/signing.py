"""Signs what leaves and checks what comes back: Ed25519 over the canonical bytes of the export's `memory`.

The key pair is derived from EXPORT_SIGNING_KEY; the public half is published at /.well-known/memory-portal-key, and with it those
of former keys (EXPORT_SIGNING_KEY_FALLBACKS), by which files of their days are recognised.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any

import orjson
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.conf import settings

ALGORITHM = "Ed25519"
SEED_TEXT = b"memory-portal export v1\0"


class Verdict(Enum):
    GENUINE = "genuine"
    CHANGED = "changed"
    UNSIGNED = "unsigned"
    FOREIGN = "foreign"
    """Signed with a key that is not this site's, so that nothing can be said about it."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    raw: bytes

    @property
    def text(self) -> str:
        return base64.b64encode(self.raw).decode()

    @property
    def id(self) -> str:
        """16 hex digits by which a file names the key it was signed with."""
        return hashlib.sha256(self.raw).hexdigest()[:16]

    @classmethod
    def of(cls, text: str) -> PublicKey:
        """Raises ValueError for what is not 32 bytes in base64."""
        raw = base64.b64decode(text, validate=True)
        if len(raw) != 32:
            raise ValueError("a public key has 32 bytes")
        return cls(raw)


@lru_cache(maxsize=8)
def _private(secret: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(hashlib.sha256(SEED_TEXT + secret.encode()).digest())


def public_key() -> PublicKey:
    return _public(settings.EXPORT_SIGNING_KEY)


def former_keys() -> list[PublicKey]:
    return [_public(secret) for secret in settings.EXPORT_SIGNING_KEY_FALLBACKS]


def _public(secret: str) -> PublicKey:
    return PublicKey(_private(secret).public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))


def canonical(memory: Any) -> bytes:
    """The bytes that are signed: UTF-8, keys in order, no space between."""
    return orjson.dumps(memory, option=orjson.OPT_SORT_KEYS)


def signed(memory: Any) -> dict[str, Any]:
    """The file: what is kept, and who vouches for it."""
    signature = _private(settings.EXPORT_SIGNING_KEY).sign(canonical(memory))
    return {
        "memory": memory,
        "signature": {
            "algorithm": ALGORITHM,
            "key_id": public_key().id,
            "value": base64.b64encode(signature).decode(),
        },
    }


def checked(envelope: Any, key: PublicKey | None = None) -> Verdict:
    """What the signature says about the file, by `key` or by this site's own, of today or of former days."""
    if not isinstance(envelope, dict) or not isinstance(signature := envelope.get("signature"), dict):
        return Verdict.UNSIGNED
    known = [key] if key else [public_key(), *former_keys()]
    key = next((one for one in known if one.id == signature.get("key_id")), None)
    if signature.get("algorithm") != ALGORITHM or key is None:
        return Verdict.FOREIGN
    try:
        value = base64.b64decode(str(signature.get("value")), validate=True)
        Ed25519PublicKey.from_public_bytes(key.raw).verify(value, canonical(envelope.get("memory")))
    except (InvalidSignature, ValueError, TypeError):
        return Verdict.CHANGED
    return Verdict.GENUINE
