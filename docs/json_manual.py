#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run by the build: writes affinityctl-json(5) from `affinityctl VERB --json-schema` of every verb."""
import json
import re
import subprocess
import sys

HEAD = r"""
.\" SPDX-License-Identifier: Apache-2.0
.\" Written by the build from the schemas of the verbs.
.TH AFFINITYCTL\-JSON 5 2026-11-28 affinityd "File formats"
.SH NAME
affinityctl\-json \- answers of affinityctl(1) in JSON
.SH DESCRIPTION
Each verb of \fBaffinityctl\fP(1) prints one JSON document with \fB\-\-json\fP, and its JSON Schema with \fB\-\-json\-schema\fP.
The methods of the bus answer the same documents.
A verb that fails prints {"ok": false, "message": "..."} and has an exit status other than 0.
.PP
Later versions add keys and rename none: skip keys that you do not know.
Bytes that are not UTF\-8 are replaced.
Sizes are in bytes and durations in seconds unless a key says otherwise.
A point in time is a text in ISO 8601, or a number of seconds since 1970.
CPUs are a text such as "0\-3,8".
A key that ends in [] here is a list, and one that ends in {} is a map by name.
Users other than root see details of their own processes only.
"""
TAIL = r"""
.SH SEE ALSO
.BR affinityctl (1),
.BR affinityctl\-measure (1),
.BR affinityd (8)
"""
TYPES = {"string": "text", "integer": "number", "number": "number", "boolean": "true or false"}


def escaped(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def body(schema):
    """The schema of one element of a list or map, and how the name of its key ends."""
    if "items" in schema:
        return body(schema["items"])[0], "[]"
    if "additionalProperties" in schema:
        return body(schema["additionalProperties"])[0], "{}"
    return schema, ""


def shape(schema):
    """A schema without its texts: two keys of the same shape are explained once."""
    if isinstance(schema, dict):
        return json.dumps({key: shape(value) for key, value in schema.items() if key != "description"}, sort_keys=True)
    return schema


def entries(schema, place, seen):
    """The keys of an object: those that are always there in the order in which they are printed, then the others."""
    keys = schema.get("required", [])
    lines = []
    for key in [*keys, *sorted(set(schema["properties"]) - set(keys))]:
        value = schema["properties"][key]
        element, ending = body(value)
        below = place + [key + ending]
        types, inner = (kind if isinstance(kind, list) else [kind] for kind in (value.get("type", []), element.get("type", [])))
        facts = [TYPES[name] for name in inner if name in TYPES]
        if "null" in types:
            facts.append("or null")
        if key not in keys:
            facts.append("may be missing")
        text = escaped(value["description"]) + (f" ({', '.join(facts).replace(', or null', ' or null')})" if facts else "")
        lines.append(f".TP\n.B {escaped(key + ending)}\n{text}")
        if "properties" not in element:
            continue
        known = seen.setdefault(shape(element), below)
        if known is below:
            lines += [".RS", *entries(element, below, seen), ".RE"]
        else:
            lines[-1] += f"; keys as in {escaped('.'.join(known[1:]))}" + (f" of {known[0]}" if known[0] != below[0] else "")
    return lines


def main(affinityctl):
    def ask(*words):
        return subprocess.run([affinityctl, *words], capture_output=True, text=True, timeout=60, check=False)

    def verbs(words=()):
        below = ask(*words, "--help").stdout.partition("\nSubcommands:\n")[2]
        for word in re.findall(r"^ {2}([a-z][a-z-]*)", below, re.MULTILINE):
            yield (*words, word)
            yield from verbs((*words, word))

    found = {}
    for words in verbs():
        done = ask(*words, "--json-schema")
        if done.returncode == 0 and done.stdout.startswith("{"):
            found.setdefault(done.stdout, []).append(" ".join(words))
    if not found:
        sys.exit(f"{affinityctl}: no verb has a schema")
    print(HEAD.strip())
    seen = {}
    for text, names in found.items():
        schema, ending = body(json.loads(text))
        print(f".SH {escaped(', '.join(names).upper())}")
        if ending:
            print("A list; each of its elements has these keys.")
        print(".PD 0")
        print("\n".join(entries(schema, [names[0].upper()], seen)))
    print(TAIL.strip())


main(sys.argv[1])
