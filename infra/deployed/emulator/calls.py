"""Calls of AWS's API. Without these corrections, ministack differs from AWS:

- It asks for separate permissions for SQS batches. In AWS the permissions for single messages include them.
- It is reached without TLS, which the bucket's policy refuses. Here every call counts as encrypted.
"""

from functools import partial

from ministack import app
from ministack.core import iam_actions


def without_batch(action_of, headers):
    """Returns the permission that a request needs."""
    action = action_of(headers)
    return action.removesuffix("Batch") if headers.get("x-amz-target", "").startswith("AmazonSQS.") else action


def as_encrypted(pin, address, _):
    pin(address, True)


iam_actions._action_from_target = partial(without_batch, iam_actions._action_from_target)
app.pin_request_origin = partial(as_encrypted, app.pin_request_origin)
