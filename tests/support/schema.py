# SPDX-License-Identifier: Apache-2.0
"""A value against a JSON Schema, as far as affinityctl --json-schema uses one; a key that the schema does not name is a fault, too."""

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "number": (int, float), "integer": int, "null": type(None)}


def is_a(value, name):
    return isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def faults(value, schema, place="$"):
    """A line for each fault."""
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(is_a(value, name) for name in types):
        yield f"{place}: {value!r} is no {' or '.join(types)}"
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from faults(item, schema.get("items", {}), f"{place}[{number}]")
    elif isinstance(value, dict) and "properties" in schema:
        yield from (f"{place}: {key} is missing" for key in schema["required"] if key not in value)
        for key, item in value.items():
            if key in schema["properties"]:
                yield from faults(item, schema["properties"][key], f"{place}.{key}")
            else:
                yield f"{place}: {key} is not in the schema"
    elif isinstance(value, dict) and "additionalProperties" in schema:
        for key, item in value.items():
            yield from faults(item, schema["additionalProperties"], f"{place}.{key}")
