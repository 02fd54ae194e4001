# SPDX-License-Identifier: Apache-2.0
"""How large files, functions and classes may be. Universal Ctags parses: it knows scopes, members and where things end."""
import collections
import json
import statistics
import subprocess

FILE_LINES = 400
FUNCTION_LINES = 60
MEDIAN_LINES = 70
DATA_MEMBERS = 12
MEMBER_FUNCTIONS = 25
CTAGS = ["ctags", "-R", "--languages=C++", "--langmap=C++:.cpp.hpp", "--kinds-C++=+p", "--fields=+neKSZ", "--fields-C++=+{properties}",
         "--output-format=json", "-f", "-"]


def tags(root, files):
    done = subprocess.run(CTAGS + ["-L", "-"], input="\n".join(source.name for source in files), cwd=root, capture_output=True, text=True,
                          check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def properties(tag):
    return tag.get("properties", "").split(",")


def is_lambda(tag):
    return tag["name"].startswith("__anon") and tag["kind"] == "function"


def of_functions(found):
    for tag in found:
        if tag["kind"] != "function" or is_lambda(tag):
            continue
        lines = tag["end"] - tag["line"] + 1
        if lines > FUNCTION_LINES:
            yield f"{tag['path']}:{tag['line']}: {tag['name']} has {lines} lines, more than {FUNCTION_LINES}"


def counted(tag):
    """"data", "functions", or None for what the limits do not count: constants, lambdas, friends, and functions that the compiler writes."""
    if "friend" in tag["pattern"].split():
        return None
    if tag["kind"] == "member":
        return None if "static" in properties(tag) else "data"
    if tag["kind"] in ("prototype", "function") and not is_lambda(tag):
        return None if {"delete", "default"} & set(properties(tag)) else "functions"
    return None


def of_classes(found):
    # A class is known by its file and scope, so that equal names in unnamed namespaces of two files stay apart.
    classes = {}
    counts = collections.defaultdict(collections.Counter)
    for tag in found:
        scope = f"{tag['scope']}::{tag['name']}" if "scope" in tag else tag["name"]
        if tag["kind"] in ("class", "struct"):
            classes[tag["path"], scope] = tag
    for tag in found:
        owner = classes.get((tag["path"], tag.get("scope")))
        # Definitions outside of the class body were counted where they are declared.
        if owner and owner["line"] <= tag["line"] <= owner["end"] and (kind := counted(tag)):
            counts[tag["path"], tag["scope"]][kind] += 1
    for key, tag in classes.items():
        for kind, limit, noun in (("data", DATA_MEMBERS, "data members"), ("functions", MEMBER_FUNCTIONS, "member functions")):
            if counts[key][kind] > limit:
                yield f"{tag['path']}:{tag['line']}: {tag['name']} has {counts[key][kind]} {noun}, more than {limit}"


def of_files(files):
    lengths = {source.name: len(source.text.splitlines()) for source in files}
    for name, lines in lengths.items():
        if lines > FILE_LINES:
            yield f"{name}: {lines} lines, more than {FILE_LINES}"
    median = statistics.median(lengths.values())
    if median > MEDIAN_LINES:
        yield f"daemon, tools: the median file has {median:g} lines, more than {MEDIAN_LINES}"


def complaints(root, files):
    found = tags(root, files)
    yield from of_files(files)
    yield from of_functions(found)
    yield from of_classes(found)
