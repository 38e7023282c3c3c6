# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks JSON against the schemas of doc/schema: as much of JSON Schema as they use.

    complain(value, "status")   yields a line for each place where it does not fit

Known words: $ref (to a file beside it, with a fragment #/$defs/NAME, or #/$defs/NAME alone),
type, enum, const, properties, required, additionalProperties, items, minimum, pattern, anyOf.
An unknown word is an error: a check that does not happen would be worse.
"""

import json
import os
import re

FOLDER = os.path.join(os.environ["PROFD_SOURCE"], "doc", "schema")
WORDS = {"$ref", "type", "enum", "const", "properties", "required", "additionalProperties",
         "items", "minimum", "pattern", "anyOf", "$schema", "$id", "$defs", "title",
         "description"}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int,
         "number": (int, float), "null": type(None)}


def load(file):
    with open(os.path.join(FOLDER, file), encoding="utf-8") as f:
        return json.load(f)


def resolve(ref, file):
    name, _, fragment = ref.partition("#")
    schema = load(name or file)
    for part in fragment.strip("/").split("/") if fragment else []:
        schema = schema[part]
    return schema, name or file


def is_of(value, kind):
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, TYPES[kind])


def members(value, schema, file, place):
    properties = schema.get("properties", {})
    for name in schema.get("required", []):
        if name not in value:
            yield f"{place} lacks {name}"
    for name, member in value.items():
        rule = properties.get(name, schema.get("additionalProperties", True))
        if rule is False:
            yield f"{place} has {name}, which is not documented"
        elif rule is not True:
            yield from check(member, rule, file, f"{place}.{name}")


def scalars(value, schema, place):
    kinds = schema.get("type", [])
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if kinds and not any(is_of(value, kind) for kind in kinds):
        yield f"{place} is {value!r}, not {' or '.join(kinds)}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{place} is {value!r}, none of {schema['enum']}"
    if "const" in schema and value != schema["const"]:
        yield f"{place} is {value!r}, not {schema['const']!r}"
    if "minimum" in schema and not isinstance(value, (str, type(None))) and value < schema["minimum"]:
        yield f"{place} is {value}, less than {schema['minimum']}"
    if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
        yield f"{place} is {value!r}, which does not match {schema['pattern']}"


def check(value, schema, file, place):
    unknown = set(schema) - WORDS
    if unknown:
        yield f"{file} says {', '.join(sorted(unknown))}, which nothing checks"
    if "$ref" in schema:
        yield from check(value, *resolve(schema["$ref"], file), place)
    if "anyOf" in schema and all(list(check(value, s, file, place)) for s in schema["anyOf"]):
        yield f"{place} fits none of the alternatives"
    yield from scalars(value, schema, place)
    if isinstance(value, dict):
        yield from members(value, schema, file, place)
    if isinstance(value, list) and "items" in schema:
        for i, item in enumerate(value):
            yield from check(item, schema["items"], file, f"{place}[{i}]")


def complain(value, name):
    file = f"{name}.json"
    return list(check(value, load(file), file, "$"))
