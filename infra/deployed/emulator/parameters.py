"""Parameters of stacks. Without this correction, ministack differs from AWS: SAM sees the parameters' default values
there. It writes some values into what it makes, such as the pace of a gradual deployment.
"""

from functools import partial

from ministack.services.cloudformation import changesets, engine


def with_values(expand, template, provided=None, previous=None):
    """Expands a template as if its parameters had the values of this stack by default."""
    if "Parameters" not in template:
        return expand(template, provided, previous)
    values = engine._transform_parameters(template, provided, previous)
    declared = template["Parameters"]
    valued = {name: parameter | {"Default": values[name]} for name, parameter in declared.items() if name in values}
    expanded = expand(template | {"Parameters": declared | valued}, provided, previous)
    expanded["Parameters"] = declared
    return expanded


changesets._apply_transforms = partial(with_values, changesets._apply_transforms)
