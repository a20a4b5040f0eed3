"""Compares the description of the last tag with the current one, and fails if a client of the released one could break.

A difference is incompatible if the service may refuse a request that it accepted before, if it may send what no client
had to expect, or if generated code would get other names for its methods. An incompatible difference needs a new first
number of the version. Any difference needs a higher version, so that a client can tell the two apart.

Both documents are first brought into one plain form, without references and texts. Then they are compared word by word.
"""

import subprocess
import sys

import yaml

DESCRIPTION = "functions/openapi/openapi.yaml"

FROM_BELOW = {"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"}
FROM_ABOVE = {"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"}
# These are not taken apart: a value that is another one counts as narrower.
WHOLE = {"format", "pattern", "propertyNames", "multipleOf", "uniqueItems"}
# What else a schema may say. About any other word the comparison could not tell whether a client breaks.
OTHERS = {"type", "enum", "properties", "required", "additionalProperties", "items", "default", "choices"}
TEXTS = {"title", "description", "deprecated", "example", "examples"}
METHODS = ["get", "put", "post", "delete", "options", "head", "patch", "trace"]
TYPES = ["array", "boolean", "integer", "null", "number", "object", "string"]


class Plain:
    """Brings a document into the form that is compared."""

    def __init__(self, document):
        self.document = document

    def whole(self):
        schemes = self.document.get("components", {}).get("securitySchemes", {})
        return {
            "servers": {server["url"]: {} for server in self.document.get("servers", [])},
            "schemes": {name: {word: one.get(word) for word in ("type", "scheme")} for name, one in schemes.items()},
        } | {kind: {name: self.path(path) for name, path in self.document.get(kind, {}).items()}
             for kind in ("paths", "webhooks")}

    def path(self, path):
        return {method: self.operation(path, path[method]) for method in METHODS if method in path}

    def operation(self, path, operation):
        security = operation.get("security", self.document.get("security", []))
        found = {
            "operationId": operation.get("operationId"),
            "security": {str(way): way for way in security or [{}]},
            "parameters": self.parameters(path) | self.parameters(operation),
            "responses": {status: self.message(response) for status, response in operation["responses"].items()},
        }
        return found | ({"body": self.message(operation["requestBody"])} if "requestBody" in operation else {})

    def parameters(self, holder):
        all_of_them = [self.resolved(parameter) for parameter in holder.get("parameters", [])]
        return {f"{parameter['in']} {parameter['name']}": self.value(parameter) for parameter in all_of_them}

    def value(self, value):
        """Returns a parameter or a header."""
        style = [value.get(word) for word in ("style", "explode", "allowReserved")]
        return {"required": bool(value.get("required")), "style": style, "schema": self.schema(value.get("schema", {}))}

    def message(self, message):
        """Returns a body or a response. Clients match on the codes of errors, each shown by an example of its name."""
        message = self.resolved(message)
        content = {
            media: {"schema": self.schema(one.get("schema", {})), "codes": dict.fromkeys(one.get("examples", {}), {})}
            for media, one in message.get("content", {}).items()
        }
        headers = {name: self.value(self.resolved(header)) for name, header in message.get("headers", {}).items()}
        return {"required": bool(message.get("required")), "content": content, "headers": headers}

    def schema(self, schema):
        found = self.flat(schema)
        named = found.get("type", [] if "choices" in found else TYPES)
        kinds = {named} if isinstance(named, str) else set(named)
        if "number" in kinds:
            kinds.add("integer")
        found["type"] = sorted(kinds | ({"null"} if found.pop("nullable", False) else set()))
        return found

    def flat(self, schema):
        """Returns a schema without `allOf`. A choice between a schema and null becomes one that may be null."""
        schema = self.resolved(schema)
        own = {word: value for word, value in schema.items() if word not in TEXTS and not word.startswith("x-")}
        parts, choices = own.pop("allOf", []), own.pop("oneOf", own.pop("anyOf", []))
        if "const" in own:
            own["enum"] = [own.pop("const")]
        unknown = own.keys() - FROM_BELOW - FROM_ABOVE - WHOLE - OTHERS
        if unknown or own.get("additionalProperties") is False:
            sys.exit(f"this comparison does not know {sorted(unknown) or 'additionalProperties: false'}")
        own["properties"] = {name: self.schema(one) for name, one in own.get("properties", {}).items()}
        for word in ("items", "additionalProperties"):
            if word in own:
                own[word] = self.schema(own[word] if isinstance(own[word], dict) else {})
        for part in map(self.flat, parts):
            own["required"] = [*own.get("required", []), *part.get("required", [])]
            own = part | own | {"properties": part["properties"] | own["properties"]}
        others = [choice for choice in choices if self.resolved(choice).get("type") != "null"]
        if len(others) < len(choices):
            own["nullable"] = True
        if len(others) == 1:
            own = self.flat(others[0]) | own | {"properties": self.flat(others[0])["properties"] | own["properties"]}
        elif others:
            own["choices"] = {str(number): self.schema(choice) for number, choice in enumerate(others)}
        return own

    def resolved(self, value):
        while "$ref" in value:
            target = self.document
            for part in value["$ref"].removeprefix("#/").split("/"):
                target = target[part.replace("~1", "/").replace("~0", "~")]
            value = target
        return value


def breaks(old, new, taken, at):
    """Yields what could break. What the service takes may not become less, what it sends may not become more."""
    narrow, wide = (old, new) if taken else (new, old)
    for word in sorted(old.keys() | new.keys()):
        was, now, small, large = old.get(word), new.get(word), narrow.get(word), wide.get(word)
        here = f"{at} {word}".strip()
        if word in ("items", "additionalProperties"):
            was, now = ({"type": TYPES} if one is None else one for one in (was, now))
        if word in FROM_BELOW:
            bad = large is not None and (small is None or small < large)
        elif word in FROM_ABOVE:
            bad = large is not None and (small is None or small > large)
        elif word in WHOLE:
            bad = large is not None and small != large
        elif word == "enum":
            bad = large is not None and (small is None or any(value not in large for value in small))
        elif word == "type" and isinstance(was, list):
            bad = not set(small) <= set(large)
        elif word == "required" and isinstance(was if now is None else now, list):
            bad = not set(large or []) & new.get("properties", {}).keys() <= set(small or [])
        elif word == "required":
            bad = large and not small
        elif word == "default":
            bad = taken and was != now
        elif word == "security":
            bad = not all(any(is_enough(way, other) for other in now.values()) for way in was.values())
        elif isinstance(was, dict) and isinstance(now, dict):
            bad = word == "choices" and len(was) != len(now)
            yield from [] if bad else breaks(was, now, taken and word != "responses", here)
        elif was is None and isinstance(now, dict):
            # What is new may be left out, if it is not required.
            bad = taken and now.get("required") is True
        else:
            bad = was != now
        if bad:
            yield f"{here}: was {shown(was)}, is {shown(now)}"


def is_enough(way, other):
    """Returns whether a client that calls in this way has what the other one needs."""
    return all(name in way and set(scopes) <= set(way[name]) for name, scopes in other.items())


def shown(value):
    return "nothing" if value is None else "there" if isinstance(value, dict) else value


def version(document):
    return [int(number) for number in document["info"]["version"].split(".")]


def problems(released, current):
    """Returns what speaks against the current description, given its version."""
    if version(current)[0] > version(released)[0]:
        return []
    old, new = Plain(released).whole(), Plain(current).whole()
    found = [one for kind in old for one in breaks(old[kind], new[kind], kind == "paths", kind)]
    if released != current and version(current) <= version(released):
        found.append("the version must be higher than that of the released description")
    return found


def git(*arguments):
    """Returns what git prints, or None if it fails."""
    done = subprocess.run(["git", *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def main():
    tag = (git("describe", "--tags", "--abbrev=0") or "").strip()
    if not tag:
        print("nothing is compared, because there is no tag yet")
        return
    released = git("show", f"{tag}:{DESCRIPTION}")
    if released is None:
        sys.exit(f"{tag} has no {DESCRIPTION}")
    with open(DESCRIPTION) as current:
        found = problems(yaml.safe_load(released), yaml.safe_load(current))
    for problem in found:
        print(problem)
    print(f"{len(found)} incompatible differences from {tag}")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
