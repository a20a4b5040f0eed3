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
                "additionalProperties": False,
                "properties": {"id": {"type": "string"}},
            },
        },
    },
}

OPERATION = "/paths/~1things~1{id}/get"
SIZE, SORT = f"{OPERATION}/parameters/1/schema", f"{OPERATION}/parameters/2/schema"
THING = "/components/schemas/Thing/allOf/1"
THERE = "GET /things/{id}"
GONE = object()
NEEDED = {"in": "query", "name": "key", "required": True, "schema": {"type": "string"}}

# What is changed to what, and the finding.
INCOMPATIBLE = {
    "a path is removed": ("/paths/~1things~1{id}", GONE, "paths: was removed: /things/{id}"),
    "a method is removed": (OPERATION, GONE, "paths /things/{id}: was removed: get"),
    "a method gets another name": (f"{OPERATION}/operationId", "thing", f"{THERE}: has another operationId"),
    "a scope is needed": (f"{OPERATION}/security/0/Key", ["read", "all"], f"{THERE}: needs another key or scope"),
    "a key is needed where nothing else is said": (
        "/security", [{"Key": ["read"]}], "POST thing.sold: needs another key or scope"),
    "the key is sent otherwise": (
        "/components/securitySchemes/Key/scheme", "basic", "security scheme Key: is another one",
    ),
    "a parameter is removed": (f"{OPERATION}/parameters/1", GONE, f"{THERE}: lost the parameter: query size"),
    "a parameter is new and required": (
        f"{OPERATION}/parameters/3", NEEDED, f"{THERE}, query key: is new and required",
    ),
    "a parameter becomes required": (
        f"{OPERATION}/parameters/1/required", True, f"{THERE}, query size: became required",
    ),
    "a parameter's minimum rises": (
        f"{SIZE}/minimum", 2, f"{THERE}, query size: no longer takes values by its minimum",
    ),
    "a parameter's maximum falls": (
        f"{SIZE}/maximum", 8, f"{THERE}, query size: no longer takes values by its maximum",
    ),
    "a parameter gets a shortest length": (
        f"{SORT}/minLength", 1, f"{THERE}, query sort: no longer takes values by its minLength",
    ),
    "a parameter gets a pattern": (
        f"{SORT}/pattern", "^n", f"{THERE}, query sort: no longer takes values by its pattern",
    ),
    "a parameter gets a format": (
        f"{SORT}/format", "uuid", f"{THERE}, query sort: no longer takes values by its format",
    ),
    "a parameter has another type": (
        f"{SIZE}/type", "string", f"{THERE}, query size: no longer takes the type integer",
    ),
    "a parameter's value is removed": (
        f"{SORT}/enum", ["newest"], f"{THERE}, query sort: no longer takes the values ['oldest']",
    ),
    "a parameter gets a list": (f"{SIZE}/enum", [5], f"{THERE}, query size: no longer takes values by its list"),
    "a default changes": (f"{SIZE}/default", 6, f"{THERE}, query size: has another default"),
    "a status is removed": (f"{OPERATION}/responses/404", GONE, f"{THERE}: lost the status: 404"),
    "a header is removed": (f"{OPERATION}/responses/200/headers/ETag", GONE, f"{THERE} 200: lost the header: ETag"),
    "a header may be absent": (
        "/components/headers/ETag/required", False, f"{THERE} 200, header ETag: is no longer always there",
    ),
    "a header has another pattern": (
        "/components/headers/ETag/schema/pattern", "^b$",
        f"{THERE} 200, header ETag: no longer excludes values by its pattern"),
    "a media type is removed": (
        f"{OPERATION}/responses/200/content/application~1json", GONE,
        f"{THERE} 200: lost the media type: application/json"),
    "a property is removed": (f"{THING}/properties/share", GONE, f"{THERE} 200: lost the property: share"),
    "a property may be absent": (f"{THING}/required", ["id", "price", "tags"], f"{THERE} 200: may lack wear"),
    "a property may be null": (
        f"{THING}/properties/id/type", ["string", "null"], f"{THERE} 200.id: no longer excludes the type null",
    ),
    "a property has another type": (
        f"{THING}/properties/id/type", "integer", f"{THERE} 200.id: no longer excludes the type integer",
    ),
    "a property loses its format": (
        f"{THING}/properties/id/format", GONE, f"{THERE} 200.id: no longer excludes values by its format",
    ),
    "a property's maximum rises": (
        f"{THING}/properties/share/maximum", 200, f"{THERE} 200.share: no longer excludes values by its maximum"),
    "a property gains a value": (
        "/components/schemas/Wear/enum", ["new", "worn", "torn"],
        f"{THERE} 200.wear: no longer excludes the values ['torn']"),
    "a property loses its list": (
        "/components/schemas/Wear/enum", GONE, f"{THERE} 200.wear: no longer excludes values by its list",
    ),
    "a list has other values": (
        f"{THING}/properties/tags/items/type", "integer", f"{THERE} 200.tags[]: no longer excludes the type integer"),
    "a map has other values": (
        f"{THING}/properties/texts/additionalProperties/type", "integer",
        f"{THERE} 200.texts.*: no longer excludes the type integer"),
    "a list may hold anything": (
        f"{THING}/properties/tags/items", GONE,
        f"{THERE} 200.tags[]: no longer excludes the type array, boolean, integer, null, number, object"),
    "a map may hold anything": (
        f"{THING}/properties/texts/additionalProperties", True,
        f"{THERE} 200.texts.*: no longer excludes the type array, boolean, integer, null, number, object"),
    "a map has other keys": (
        f"{THING}/properties/texts/propertyNames", {"enum": ["b"]},
        f"{THERE} 200.texts: no longer excludes values by its propertyNames"),
    "a parameter excludes its maximum": (
        f"{SIZE}/exclusiveMaximum", 9, f"{THERE}, query size: no longer takes values by its exclusiveMaximum"),
    "a parameter is sent otherwise": (
        f"{OPERATION}/parameters/2/style", "pipeDelimited", f"{THERE}, query sort: is written otherwise"),
    "a parameter of the whole path is new and required": (
        "/paths/~1things~1{id}/parameters", [NEEDED], f"{THERE}, query key: is new and required"),
    "a body is needed": (
        f"{OPERATION}/requestBody", {"required": True, "content": {}}, f"{THERE}: needs a body"),
    "a delivery loses its body": ("/webhooks/thing.sold/post/requestBody", GONE, "POST thing.sold: lost its body"),
    "an error is removed": (
        f"{OPERATION}/responses/404/content/application~1json/examples", {"thing.lost": {}},
        f"{THERE} 404: lost the error: thing.unknown"),
    "the service moves": ("/servers/0/url", "/new", "servers: lack one that there was"),
    "an unknown word is used": (
        f"{SIZE}/not", {"const": 3}, f"{THERE}, query size: says not, which this comparison does not know"),
    "a choice has one more": (
        f"{THING}/properties/other/oneOf/2", {"type": "array"},
        f"{THERE} 200.other: is a choice of another number of schemas"),
    "a choice has another one": (
        f"{THING}/properties/other/oneOf/1/type", "array", f"{THERE} 200.other(1): no longer excludes the type array"),
    "an event is removed": ("/webhooks/thing.sold", GONE, "webhooks: was removed: thing.sold"),
    "a delivery loses a header": (
        "/webhooks/thing.sold/post/parameters/0", GONE, "POST thing.sold: lost the parameter: header Signature"),
    "a delivery's header may be absent": (
        "/webhooks/thing.sold/post/parameters/0/required", False,
        "POST thing.sold, header Signature: is no longer always there"),
    "strict data gain a property": (
        "/components/schemas/Sale/properties/price", {"type": "string"},
        "POST thing.sold, body: may have properties that it excluded"),
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
    def test_each_incompatible_difference_is_found_once(self):
        for name, (pointer, value, finding) in INCOMPATIBLE.items():
            with self.subTest(name):
                self.assertEqual(problems(RELEASED, changed(pointer, value)), [finding])

    def test_what_clients_survive_is_no_finding(self):
        for name, (pointer, value) in COMPATIBLE.items():
            with self.subTest(name):
                self.assertEqual(problems(RELEASED, changed(pointer, value)), [])

    def test_a_new_first_number_allows_everything(self):
        self.assertEqual(problems(RELEASED, changed(OPERATION, GONE, "2.0.0")), [])

    def test_any_difference_needs_a_higher_version(self):
        for version in ("1.4.0", "1.3.9"):
            found = problems(RELEASED, changed(f"{OPERATION}/description", "Other words.", version))
            self.assertEqual(found, ["the version: must be higher than that of the released description"])

    def test_the_released_description_itself_is_fine(self):
        self.assertEqual(problems(RELEASED, copy.deepcopy(RELEASED)), [])


if __name__ == "__main__":
    unittest.main()
