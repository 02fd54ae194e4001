# SPDX-License-Identifier: Apache-2.0
"""How large functions may be, and how many std::function members a class may have. Universal Ctags parses: it knows scopes, members and where
things end. Both are warnings: they are printed, and fail nothing."""
import collections
import json
import subprocess

FUNCTION_LINES = 80
CALLBACKS = 2
CTAGS = ["ctags", "-R", "--languages=C++", "--langmap=C++:.cpp.hpp", "--kinds-C++=+p", "--fields=+neKSZt", "--output-format=json", "-f", "-"]


def tags(root, files):
    done = subprocess.run(CTAGS + ["-L", "-"], input="\n".join(source.name for source in files), cwd=root, capture_output=True, text=True,
                          check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def of_functions(found):
    for tag in found:
        is_lambda = tag["name"].startswith("__anon")
        if tag["kind"] == "function" and not is_lambda and (lines := tag["end"] - tag["line"] + 1) > FUNCTION_LINES:
            yield f"{tag['path']}:{tag['line']}: {tag['name']} has {lines} lines, more than {FUNCTION_LINES}"


def of_classes(found):
    # A class is known by its file and scope, so that equal names in unnamed namespaces of two files stay apart.
    callbacks = collections.Counter((tag["path"], tag.get("scope")) for tag in found
                                    if tag["kind"] == "member" and "std::function<" in tag.get("typeref", ""))
    for tag in found:
        scope = f"{tag['scope']}::{tag['name']}" if "scope" in tag else tag["name"]
        if tag["kind"] in ("class", "struct") and (count := callbacks[tag["path"], scope]) > CALLBACKS:
            yield f"{tag['path']}:{tag['line']}: {tag['name']} has {count} std::function members, more than {CALLBACKS}"


def warnings(root, files):
    found = tags(root, files)
    yield from of_functions(found)
    yield from of_classes(found)
