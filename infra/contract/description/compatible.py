"""Compares the description of the last tag with the current one, and fails if a client of the released one could break.

A difference is incompatible if the service may refuse a request that it accepted before, if it may send what no client
had to expect, or if generated code would get other names for its methods. An incompatible difference needs a new first
number of the version. Any difference needs a higher version, so that a client can tell the two apart.
"""

import subprocess
import sys
from enum import Enum

import yaml

DESCRIPTION = "functions/openapi/openapi.yaml"

# Of each pair, the first bounds from below and the second from above.
BOUNDS = [
    ("minimum", "maximum"),
    ("exclusiveMinimum", "exclusiveMaximum"),
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
]
# These are not taken apart: a value that is another one counts as narrower.
WHOLE = ["format", "pattern", "propertyNames", "multipleOf", "uniqueItems"]
# What else a schema may say. About any other word the comparison could not tell whether a client breaks.
OTHERS = [
    "type", "enum", "const", "properties", "required", "additionalProperties", "items", "default",
    "nullable", "choices", "title", "description", "deprecated", "example", "examples",
]
METHODS = ["get", "put", "post", "delete", "options", "head", "patch", "trace"]


class Side(Enum):
    """Who makes a value. Clients may make no less than before, the service no more."""

    CLIENT = "client"
    SERVICE = "service"


class Comparison:
    """Walks through both documents at the same time, and collects the incompatible differences."""

    def __init__(self, released, current):
        self.released, self.current, self.found = released, current, []

    def run(self):
        for kind, parameters, body in [("paths", Side.CLIENT, Side.CLIENT), ("webhooks", Side.SERVICE, Side.SERVICE)]:
            for name, old, new in self.pairs(self.released.get(kind), self.current.get(kind), kind, "was removed"):
                old, new = operations(self.released, old), operations(self.current, new)
                for method, before, after in self.pairs(old, new, f"{kind} {name}", "was removed"):
                    self.operation(before, after, parameters, body, f"{method.upper()} {name}")
        urls = [{server["url"] for server in one.get("servers", [])} for one in (self.released, self.current)]
        if urls[0] - urls[1]:
            self.say("servers", "lack one that there was")
        for name, old, new in self.components("securitySchemes"):
            if (old["type"], old.get("scheme")) != (new["type"], new.get("scheme")):
                self.say(f"security scheme {name}", "is another one")
        return self.found

    def components(self, kind):
        old, new = (document.get("components", {}).get(kind) for document in (self.released, self.current))
        return self.pairs(old, new, kind, "was removed")

    def operation(self, old, new, parameters, body, where):
        if old.get("operationId") != new.get("operationId"):
            self.say(where, "has another operationId")
        self.security(old["security"], new["security"], where)
        self.parameters(old, new, parameters, where)
        self.body(old.get("requestBody"), new.get("requestBody"), body, where)
        for status, before, after in self.pairs(old["responses"], new["responses"], where, "lost the status"):
            before, after = self.resolved(before, after)
            at = f"{where} {status}"
            for name, was, now in self.pairs(before.get("headers"), after.get("headers"), at, "lost the header"):
                self.value(*self.resolved(was, now), Side.SERVICE, f"{at}, header {name}")
            self.content(before, after, Side.SERVICE, at)
            if status[0] in "45":
                self.codes(before, after, at)

    def body(self, old, new, side, where):
        if old and new:
            self.content(*self.resolved(old, new), side, f"{where}, body")
        elif old:
            self.say(where, "lost its body")
        elif new and resolve(self.current, new).get("required"):
            self.say(where, "needs a body")

    def codes(self, old, new, where):
        """Clients match on the codes of errors. Each one is shown by an example of its name."""
        for media, was in (old.get("content") or {}).items():
            now = (new.get("content") or {}).get(media, {})
            self.pairs(was.get("examples"), now.get("examples"), where, "lost the error")

    def security(self, old, new, where):
        """Each way in which a client could call must still do, without more scopes."""
        for way in old or [{}]:
            enough = (all(set(scopes) <= set(way.get(name, [])) and name in way for name, scopes in other.items())
                      for other in new or [{}])
            if not any(enough):
                self.say(where, "needs another key or scope")

    def parameters(self, old, new, side, where):
        before, after = named_parameters(self.released, old), named_parameters(self.current, new)
        for (place, name), was, now in self.pairs(before, after, where, "lost the parameter"):
            self.value(was, now, side, f"{where}, {place} {name}")
        for key in after.keys() - before.keys():
            if side is Side.CLIENT and after[key].get("required"):
                self.say(f"{where}, {' '.join(key)}", "is new and required")

    def value(self, old, new, side, where):
        """Compares two parameters or headers."""
        if side is Side.CLIENT and new.get("required") and not old.get("required"):
            self.say(where, "became required")
        if side is Side.SERVICE and old.get("required") and not new.get("required"):
            self.say(where, "is no longer always there")
        if any(old.get(word) != new.get(word) for word in ("style", "explode", "allowReserved")):
            self.say(where, "is written otherwise")
        self.schema(old.get("schema", {}), new.get("schema", {}), side, where)

    def content(self, old, new, side, where):
        for media, was, now in self.pairs(old.get("content"), new.get("content"), where, "lost the media type"):
            self.schema(was.get("schema", {}), now.get("schema", {}), side, where)

    def schema(self, old, new, side, where):
        old, new = flat(self.released, old), flat(self.current, new)
        known = {*(word for pair in BOUNDS for word in pair), *WHOLE, *OTHERS}
        for word in sorted((old.keys() | new.keys()) - known):
            if not word.startswith("x-"):
                self.say(where, f"says {word}, which this comparison does not know")
        # What clients could send before must be taken now. What is sent now must be what clients knew before.
        narrow, wide = (old, new) if side is Side.CLIENT else (new, old)
        if missing := types(narrow) - types(wide):
            self.say(where, f"{verb(side)} the type {', '.join(sorted(missing))}")
        self.values(narrow, wide, side, where)
        for word in WHOLE:
            if word in wide and narrow.get(word) != wide[word]:
                self.say(where, f"{verb(side)} values by its {word}")
        self.bounds(narrow, wide, side, where)
        if side is Side.CLIENT and old.get("default") != new.get("default"):
            self.say(where, "has another default")
        self.properties(old, new, side, where)
        # Without a schema, a member may be anything.
        for word, member in (("items", "[]"), ("additionalProperties", ".*")):
            before, after = (schema.get(word) for schema in (old, new))
            if isinstance(before, dict) or isinstance(after, dict):
                before, after = (schema if isinstance(schema, dict) else {} for schema in (before, after))
                self.schema(before, after, side, f"{where}{member}")
        self.choices(old, new, side, where)

    def values(self, narrow, wide, side, where):
        if "enum" not in wide:
            return
        if "enum" not in narrow:
            self.say(where, f"{verb(side)} values by its list")
        elif extra := [value for value in narrow["enum"] if value not in wide["enum"]]:
            self.say(where, f"{verb(side)} the values {extra}")

    def bounds(self, narrow, wide, side, where):
        for low, high in BOUNDS:
            if low in wide and narrow.get(low, float("-inf")) < wide[low]:
                self.say(where, f"{verb(side)} values by its {low}")
            if high in wide and narrow.get(high, float("inf")) > wide[high]:
                self.say(where, f"{verb(side)} values by its {high}")

    def properties(self, old, new, side, where):
        before, after = old.get("properties", {}), new.get("properties", {})
        for name, was, now in self.pairs(before, after, where, "lost the property"):
            self.schema(was, now, side, f"{where}.{name}")
        required, needed = set(old.get("required", [])), set(new.get("required", []))
        if side is Side.CLIENT and (more := needed - required):
            self.say(where, f"needs {', '.join(sorted(more))}")
        if side is Side.SERVICE and (fewer := (required - needed) & after.keys()):
            self.say(where, f"may lack {', '.join(sorted(fewer))}")
        if side is Side.SERVICE and old.get("additionalProperties") is False:
            if new.get("additionalProperties") is not False or after.keys() - before.keys():
                self.say(where, "may have properties that it excluded")

    def choices(self, old, new, side, where):
        """Compares the members of a choice in their order."""
        before, after = old.get("choices", []), new.get("choices", [])
        if len(before) != len(after):
            self.say(where, "is a choice of another number of schemas")
        for number, (was, now) in enumerate(zip(before, after)):
            self.schema(was, now, side, f"{where}({number})")

    def resolved(self, old, new):
        return resolve(self.released, old), resolve(self.current, new)

    def pairs(self, old, new, where, lost):
        """Returns what both have, with its name. What only the released description has is a finding."""
        old, new = old or {}, new or {}
        for name in old.keys() - new.keys():
            self.say(where, f"{lost}: {name if isinstance(name, str) else ' '.join(name)}")
        return [(name, old[name], new[name]) for name in old if name in new]

    def say(self, where, what):
        self.found.append(f"{where}: {what}")


def verb(side):
    return "no longer takes" if side is Side.CLIENT else "no longer excludes"


def resolve(document, value):
    while "$ref" in value:
        target = document
        for part in value["$ref"].removeprefix("#/").split("/"):
            target = target[part.replace("~1", "/").replace("~0", "~")]
        value = target
    return value


def operations(document, path):
    """Returns the operations of a path, each with what the path or the document says for all."""
    shared = {"security": document.get("security", [])}
    found = {method: shared | path[method] for method in METHODS if method in path}
    for operation in found.values():
        own = named_parameters(document, operation)
        operation["parameters"] = list((named_parameters(document, path) | own).values())
    return found


def named_parameters(document, operation):
    parameters = [resolve(document, parameter) for parameter in operation.get("parameters", [])]
    return {(parameter["in"], parameter["name"]): parameter for parameter in parameters}


def flat(document, schema):
    """Returns a schema without references and `allOf`. A choice between it and null becomes a nullable schema."""
    schema = resolve(document, schema)
    own = {word: value for word, value in schema.items() if word not in ("allOf", "oneOf", "anyOf")}
    if "const" in own:
        own["enum"] = [own["const"]]
    for part in schema.get("allOf", []):
        part = flat(document, part)
        for word, value in part.items():
            if word == "properties":
                own[word] = own.get(word, {}) | value
            elif word == "required":
                own[word] = sorted({*own.get(word, []), *value})
            else:
                own.setdefault(word, value)
    choices = [flat(document, choice) for choice in schema.get("oneOf", schema.get("anyOf", []))]
    others = [choice for choice in choices if choice.get("type") != "null"]
    if len(others) < len(choices):
        own["nullable"] = True
    if len(others) == 1:
        return others[0] | own | {"nullable": own.get("nullable", False) or others[0].get("nullable", False)}
    return own | ({"choices": others} if others else {})


def types(schema):
    """Returns the types of JSON that a schema accepts."""
    named = schema.get("type", [])
    if not named and "choices" not in schema:
        named = ["object", "array", "string", "number", "boolean", "null"]
    kinds = {named} if isinstance(named, str) else set(named)
    if "number" in kinds:
        kinds.add("integer")
    return kinds | ({"null"} if schema.get("nullable") else set())


def version(document):
    return [int(number) for number in document["info"]["version"].split(".")]


def problems(released, current):
    """Returns what speaks against the current description, given its version."""
    if version(current)[0] > version(released)[0]:
        return []
    found = Comparison(released, current).run()
    if released != current and version(current) <= version(released):
        found.append("the version: must be higher than that of the released description")
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
