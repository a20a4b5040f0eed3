"""Tests of the comparison: each rule finds what it is for, and what clients survive is no finding."""

import copy
import unittest

from compatible import problems

RELEASED = {
    "info": {"version": "1.4.0"},
    "servers": [{"url": "/"}],
    "paths": {
        "/things/{id}": {
            "get": {
                "operationId": "getThing",
                "security": [{"Key": ["read"]}],
                "parameters": [
                    {"in": "path", "name": "id", "required": True, "schema": {"type": "string"}},
                    {
                        "in": "query",
                        "name": "size",
                        "schema": {"type": "integer", "minimum": 1, "maximum": 9, "default": 5},
                    },
                    {"in": "query", "name": "sort", "schema": {"type": "string", "enum": ["newest", "oldest"]}},
                ],
                "responses": {
                    "200": {
                        "headers": {"ETag": {"$ref": "#/components/headers/ETag"}},
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}},
                    },
                    "404": {"content": {"application/json": {"examples": {"thing.unknown": {}}}}},
                },
            }
        }
    },
    "webhooks": {
        "thing.sold": {
            "post": {
                "operationId": "onThingSold",
                "parameters": [{"in": "header", "name": "Signature", "required": True, "schema": {"type": "string"}}],
                "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Sale"}}}},
                "responses": {"2XX": {}},
            }
        }
    },
    "components": {
        "securitySchemes": {"Key": {"type": "http", "scheme": "bearer"}},
        "headers": {"ETag": {"required": True, "schema": {"type": "string", "pattern": "^a$"}}},
        "schemas": {
            "Thing": {
                "allOf": [
                    {"$ref": "#/components/schemas/Kind"},
                    {
                        "type": "object",
                        "required": ["id", "price", "tags", "wear"],
                        "properties": {
                            "id": {"type": "string", "format": "uuid"},
                            "price": {"type": ["string", "null"]},
                            "share": {"type": "integer", "maximum": 100},
                            "tags": {"type": "array", "items": {"type": "string"}},
                            "wear": {"oneOf": [{"type": "null"}, {"$ref": "#/components/schemas/Wear"}]},
                            "texts": {
                                "type": "object",
                                "propertyNames": {"enum": ["a"]},
                                "additionalProperties": {"type": "string"},
                            },
                            "other": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
                        },
                    },
                ]
            },
            "Kind": {"type": "object", "required": ["kind"], "properties": {"kind": {"type": "string"}}},
            "Wear": {"type": "string", "enum": ["new", "worn"]},
            "Sale": {
                "type": "object",
                "required": ["id"],
                "properties": {"id": {"type": "string"}},
            },
        },
    },
}

OPERATION = "/paths/~1things~1{id}/get"
SIZE, SORT = f"{OPERATION}/parameters/1/schema", f"{OPERATION}/parameters/2/schema"
THING = "/components/schemas/Thing/allOf/1"
GONE = object()
NEEDED = {"in": "query", "name": "key", "required": True, "schema": {"type": "string"}}

# What is changed to what.
INCOMPATIBLE = {
    "a path is removed": ("/paths/~1things~1{id}", GONE),
    "a method is removed": (OPERATION, GONE),
    "a method gets another name": (f"{OPERATION}/operationId", "thing"),
    "a scope is needed": (f"{OPERATION}/security/0/Key", ["read", "all"]),
    "a key is needed where nothing else is said": ("/security", [{"Key": ["read"]}]),
    "the key is sent otherwise": ("/components/securitySchemes/Key/scheme", "basic"),
    "a parameter is removed": (f"{OPERATION}/parameters/1", GONE),
    "a parameter is new and required": (f"{OPERATION}/parameters/3", NEEDED),
    "a parameter becomes required": (f"{OPERATION}/parameters/1/required", True),
    "a parameter's minimum rises": (f"{SIZE}/minimum", 2),
    "a parameter's maximum falls": (f"{SIZE}/maximum", 8),
    "a parameter gets a shortest length": (f"{SORT}/minLength", 1),
    "a parameter gets a pattern": (f"{SORT}/pattern", "^n"),
    "a parameter gets a format": (f"{SORT}/format", "uuid"),
    "a parameter has another type": (f"{SIZE}/type", "string"),
    "a parameter's value is removed": (f"{SORT}/enum", ["newest"]),
    "a parameter gets a list": (f"{SIZE}/enum", [5]),
    "a default changes": (f"{SIZE}/default", 6),
    "a status is removed": (f"{OPERATION}/responses/404", GONE),
    "a header is removed": (f"{OPERATION}/responses/200/headers/ETag", GONE),
    "a header may be absent": ("/components/headers/ETag/required", False),
    "a header has another pattern": ("/components/headers/ETag/schema/pattern", "^b$"),
    "a media type is removed": (f"{OPERATION}/responses/200/content/application~1json", GONE),
    "a property is removed": (f"{THING}/properties/share", GONE),
    "a property may be absent": (f"{THING}/required", ["id", "price", "tags"]),
    "a property may be null": (f"{THING}/properties/id/type", ["string", "null"]),
    "a property has another type": (f"{THING}/properties/id/type", "integer"),
    "a property loses its format": (f"{THING}/properties/id/format", GONE),
    "a property's maximum rises": (f"{THING}/properties/share/maximum", 200),
    "a property gains a value": ("/components/schemas/Wear/enum", ["new", "worn", "torn"]),
    "a property loses its list": ("/components/schemas/Wear/enum", GONE),
    "a list has other values": (f"{THING}/properties/tags/items/type", "integer"),
    "a map has other values": (f"{THING}/properties/texts/additionalProperties/type", "integer"),
    "a list may hold anything": (f"{THING}/properties/tags/items", GONE),
    "a map may hold anything": (f"{THING}/properties/texts/additionalProperties", True),
    "a map has other keys": (f"{THING}/properties/texts/propertyNames", {"enum": ["b"]}),
    "a parameter excludes its maximum": (f"{SIZE}/exclusiveMaximum", 9),
    "a parameter is sent otherwise": (f"{OPERATION}/parameters/2/style", "pipeDelimited"),
    "a parameter of the whole path is new and required": ("/paths/~1things~1{id}/parameters", [NEEDED]),
    "a body is needed": (f"{OPERATION}/requestBody", {"required": True, "content": {}}),
    "a delivery loses its body": ("/webhooks/thing.sold/post/requestBody", GONE),
    "an error is removed": (f"{OPERATION}/responses/404/content/application~1json/examples", {"thing.lost": {}}),
    "the service moves": ("/servers/0/url", "/new"),
    "a choice has one more": (f"{THING}/properties/other/oneOf/2", {"type": "array"}),
    "a choice has another one": (f"{THING}/properties/other/oneOf/1/type", "array"),
    "an event is removed": ("/webhooks/thing.sold", GONE),
    "a delivery loses a header": ("/webhooks/thing.sold/post/parameters/0", GONE),
    "a delivery's header may be absent": ("/webhooks/thing.sold/post/parameters/0/required", False),
}

COMPATIBLE = {
    "a path is new": ("/paths/~1others", {}),
    "an optional parameter is new": (f"{OPERATION}/parameters/3", NEEDED | {"required": False}),
    "a parameter takes more": (f"{SIZE}/maximum", 10),
    "a parameter has one more value": (f"{SORT}/enum", ["newest", "oldest", "price"]),
    "a scope is no longer needed": (f"{OPERATION}/security/0/Key", []),
    "no key is needed": (f"{OPERATION}/security", []),
    "an optional parameter of the whole path is new": (
        "/paths/~1things~1{id}/parameters", [NEEDED | {"required": False}]),
    "an error is new": (f"{OPERATION}/responses/404/content/application~1json/examples/thing.lost", {}),
    "a property is new": (f"{THING}/properties/more", {"type": "string"}),
    "a property is never null": (f"{THING}/properties/price/type", "string"),
    "a property gets a pattern": (f"{THING}/properties/price/pattern", "^1$"),
    "a property is always there": (f"{THING}/required", ["id", "price", "tags", "wear", "share"]),
    "a property loses a value": ("/components/schemas/Wear/enum", ["new"]),
    "a status is new": (f"{OPERATION}/responses/410", {}),
    "a header is new": (f"{OPERATION}/responses/200/headers/Vary", {"schema": {"type": "string"}}),
    "a text is another": (f"{OPERATION}/description", "Other words."),
}


def changed(pointer, value, version="1.5.0"):
    """Returns the released description with one value changed, and this version."""
    document = copy.deepcopy(RELEASED)
    document["info"]["version"] = version
    *parts, last = (part.replace("~1", "/") for part in pointer[1:].split("/"))
    at = document
    for part in parts:
        at = at[int(part)] if isinstance(at, list) else at[part]
    if isinstance(at, list):
        at[int(last):int(last) + 1] = [] if value is GONE else [value]
    elif value is GONE:
        del at[last]
    else:
        at[last] = value
    return document


class ComparisonTest(unittest.TestCase):
    def test_each_incompatible_difference_is_found(self):
        for name, (pointer, value) in INCOMPATIBLE.items():
            with self.subTest(name):
                self.assertTrue(problems(RELEASED, changed(pointer, value)))

    def test_a_word_that_it_does_not_know_ends_it(self):
        for pointer, value in ((f"{SIZE}/not", {"const": 3}), ("/components/schemas/Sale/additionalProperties", False)):
            with self.assertRaises(SystemExit):
                problems(RELEASED, changed(pointer, value))

    def test_what_clients_survive_is_no_finding(self):
        for name, (pointer, value) in COMPATIBLE.items():
            with self.subTest(name):
                self.assertEqual(problems(RELEASED, changed(pointer, value)), [])

    def test_a_new_first_number_allows_everything(self):
        self.assertEqual(problems(RELEASED, changed(OPERATION, GONE, "2.0.0")), [])

    def test_any_difference_needs_a_higher_version(self):
        for version in ("1.4.0", "1.3.9"):
            found = problems(RELEASED, changed(f"{OPERATION}/description", "Other words.", version))
            self.assertEqual(found, ["the version must be higher than that of the released description"])

    def test_the_released_description_itself_is_fine(self):
        self.assertEqual(problems(RELEASED, copy.deepcopy(RELEASED)), [])


if __name__ == "__main__":
    unittest.main()
