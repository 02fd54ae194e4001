# SPDX-License-Identifier: Apache-2.0
"""Comments of C, C++, BPF and Python: a sentence names its actor, so none begins with "It", "Those", "What" and the like. Quoted words may."""
import io
import re
import tokenize

from sources import TOKEN

NAMELESS = re.compile(r"(?<![\w\"'`])(?:One|It|Those|Its|What|Who|That|Of)\b[^\n]{0,40}")
TOPS = ("daemon", "tools", "tests", "docs", "policies", "systemd")


def comments(path):
    """(first line, text) of each comment, or docstring."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and token.line.lstrip().startswith('"""')):
                yield token.start[0], token.string.replace('"""', "")
    else:
        yield from ((text.count("\n", 0, match.start()) + 1, match.group()) for match in TOKEN.finditer(text) if match.group().startswith("/"))


def complaints(root):
    for path in sorted(path for top in TOPS for path in (root / top).rglob("*") if path.suffix in (".cpp", ".hpp", ".c", ".h", ".py")):
        for line, text in comments(path):
            for match in NAMELESS.finditer(text):
                yield f"{path.relative_to(root)}:{line + text.count(chr(10), 0, match.start())}: a comment does not name its actor: {match.group()}"
