"""DescribeStackResources finds the stack of a resource by its physical id, as on AWS.

ministack needs the stack's name, and its stacks and queues call their host differently.
"""

from ministack.services.cloudformation import _stacks, handlers

ACTION = "DescribeStackResources"
by_name = handlers._ACTION_HANDLERS[ACTION]


def by_physical_id(params):
    if not (wanted := handlers._p(params, "PhysicalResourceId")):
        return by_name(params)
    for stack in _stacks.values():
        owned = stack.get("_resources", {}).values() if stack["StackStatus"] != "DELETE_COMPLETE" else ()
        if any(as_queues_have_it(resource.get("PhysicalResourceId") or "") == wanted for resource in owned):
            status, headers, body = by_name({"StackName": [stack["StackName"]]})
            return status, headers, as_queues_have_it(body.decode()).encode()
    return handlers._error("ValidationError", f"Stack for {wanted} does not exist")


def as_queues_have_it(text):
    return text.replace("http://localhost:", "http://127.0.0.1:")


handlers._ACTION_HANDLERS[ACTION] = by_physical_id
