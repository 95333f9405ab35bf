"""Signatures of webhooks, as by Standard Webhooks (https://www.standardwebhooks.com)."""

import base64
import binascii
import hashlib
import hmac

from gateway.errors import ConfigError

PREFIX = "whsec_"
"""A secret that begins so is base64, as the standard has it. Any other is taken as it is."""


def signing_key(secret: str) -> bytes:
    """Return the key that a secret stands for; `ConfigError` if it begins with `whsec_` and is no base64."""
    if not secret.startswith(PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ConfigError("the secret begins with whsec_, and what follows is not base64") from error


def signed_headers(message_id: str, at: int, body: bytes, secret: str) -> dict[str, str]:
    """Return `webhook-id`, `webhook-timestamp` and `webhook-signature`; without a secret no signature.

    `at` is Unix seconds.
    """
    headers = {"webhook-id": message_id, "webhook-timestamp": str(at)}
    if secret:
        digest = hmac.digest(signing_key(secret), f"{message_id}.{at}.".encode() + body, hashlib.sha256)
        headers["webhook-signature"] = f"v1,{base64.b64encode(digest).decode()}"
    return headers
