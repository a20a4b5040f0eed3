"""Makes the OpenAPI 3.0 rendition of the description, for tools that do not know OpenAPI 3.1."""

import json

from tools import run

NULL = {"type": "null"}


def render(description, rendition):
    run("openapi-down-convert", "--input", description, "--output", rendition)
    rendition.write_text(json.dumps(nullable(json.loads(rendition.read_text())), indent=2))


def nullable(node):
    """Returns the document with each choice between a record and null as OpenAPI 3.0 has it. The converter leaves these."""
    if isinstance(node, list):
        return [nullable(one) for one in node]
    if not isinstance(node, dict):
        return node
    if NULL in node.get("oneOf", []):
        others = [one for one in node["oneOf"] if one != NULL]
        node = {name: value for name, value in node.items() if name != "oneOf"} | {"nullable": True, "allOf": others}
    return {name: nullable(value) for name, value in node.items()}
