# SPDX-License-Identifier: Apache-2.0
"""The sources of daemon/ and tools/ as the checks see them: where a file lives, what it includes, and its code without comments."""
import dataclasses
import pathlib
import re

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# Comments, string literals with prefixes, raw strings and character literals; digit separators (1'000) are no characters.
TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|R"([^\s()\\]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'""", re.DOTALL)


@dataclasses.dataclass(frozen=True)
class Source:
    """A file, named from the project's root: "daemon/policy/tree.cpp"."""
    name: str
    text: str
    code: list       # its lines without comments
    identifiers: list  # its lines without comments and literals
    includes: list   # (line number, header, whether in angle brackets)

    @property
    def folder(self):
        return self.name.rpartition("/")[0]

    @property
    def room(self):
        """The room of daemon/, or None for main.cpp, options.cpp and everything in tools/."""
        parts = self.name.split("/")
        return parts[1] if parts[0] == "daemon" and len(parts) > 2 else None

    @property
    def in_room(self):
        """The name inside daemon/ or tools/: "policy/tree.cpp"."""
        return self.name.partition("/")[2]


def without(text, drop_literals):
    """The same lines with comments, and on request the contents of literals, removed."""
    def replace(match):
        token = match.group(0)
        is_comment = token.startswith("/")
        if is_comment or (drop_literals and not is_comment):
            return "\n" * token.count("\n") if is_comment else '""' + "\n" * token.count("\n")
        return token
    return TOKEN.sub(replace, text).splitlines()


def read(root):
    """All sources below daemon/ and tools/ of the project, in the order of their names."""
    found = []
    for path in sorted(path for top in ("daemon", "tools") for path in (root / top).rglob("*") if path.suffix in (".cpp", ".hpp", ".c", ".h")):
        text = path.read_text(encoding="utf-8")
        includes = [(number, match.group(2), match.group(1) == "<") for number, line in enumerate(text.splitlines(), 1)
                    if (match := INCLUDE.match(line))]
        found.append(Source(pathlib.Path(path).relative_to(root).as_posix(), text, without(text, False), without(text, True), includes))
    return found


def resolve(source, header, names):
    """The file of the project that a quoted header names, or None."""
    parts = source.name.split("/")
    places = [source.folder, "daemon", "tools"] + ["/".join(parts[:2])] * (parts[0] == "tools")
    return next((name for place in places if (name := f"{place}/{header}") in names), None)
