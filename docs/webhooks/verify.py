"""Checks the two signatures of one saved delivery: WEBHOOK_SECRET=… python3 verify.py HEADERS.json < BODY

To install the library of Standard Webhooks: pip install standardwebhooks
"""

# region: plain
import hashlib
import hmac
# endregion
import json
import os
import sys

# region: library
from standardwebhooks import Webhook, WebhookVerificationError
# endregion


# region: plain
def is_genuine(secret: str, body: bytes, signature: str) -> bool:
    """`signature` is the value of X-Service-Signature, or "" if there is none."""
    expected = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected.encode(), signature.encode())
# endregion


# region: library
def is_genuine_and_recent(secret: str, body: bytes, headers) -> bool:
    """`headers` is anything like a dict of names and values."""
    verifier = Webhook(secret)
    try:
        verifier.verify(body, headers)
    except (WebhookVerificationError, ValueError):  # ValueError: a malformed header or body
        return False
    return True
# endregion


def main() -> None:
    secret = os.environ["WEBHOOK_SECRET"]
    with open(sys.argv[1], encoding="utf-8") as file:
        headers = {name.lower(): value for name, value in json.load(file).items()}
    body = sys.stdin.buffer.read()
    verdicts = {
        "X-Service-Signature": is_genuine(secret, body, headers.get("x-service-signature", "")),
        "webhook-signature": is_genuine_and_recent(secret, body, headers),
    }
    for header, valid in verdicts.items():
        print(f"{header}: {'valid' if valid else 'invalid'}")


if __name__ == "__main__":
    main()
