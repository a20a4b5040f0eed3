"""The functions by which ministack makes, changes and imports the resources of stacks."""

from functools import partial

from ministack.services.cloudformation import provisioners

HANDLERS = provisioners._RESOURCE_HANDLERS


def put_in(kind, action="create"):
    """Puts the decorated function in place of ministack's own, which becomes its first argument."""

    def put(function):
        handler = HANDLERS[kind]
        handler[action] = partial(function, handler.get(action))

    return put
