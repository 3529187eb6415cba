"""C++ files as the lint sees them: a few regular expressions and a brace counter, no compiler.

Blanking keeps every character's place, so that positions and line numbers hold in all forms of a text.
"""
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

ROOTS = ("include", "src", "models", "editors", "tests", "bench", "examples")

REPOSITORY = Path(__file__).resolve().parents[2]
LIBRARY = re.compile(r"^lancet_library\((\w+)([^)]*)\)", re.M)


def folders_of_rooms(cmake):
    """Where a library's sources lie -> its name; the others are in src/NAME."""
    placed = {name: re.search(r"\bSOURCES_IN\s+(\S+)", words) for name, words in LIBRARY.findall(cmake)}
    return {PurePosixPath(place[1] if place else f"src/{name}"): name for name, place in placed.items()}


FOLDER_ROOMS = folders_of_rooms((REPOSITORY / "CMakeLists.txt").read_text())

# Numbers come before character literals: 200'000 has no quotes in it.
TOKEN = re.compile(
    r"(?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)"
    r'|(?P<raw>R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)")'
    r'|(?P<string>"(?:\\.|[^"\\\n])*")'
    r"|(?P<number>\b\d(?:'?[\w.])*)"
    r"|(?P<char>'(?:\\.|[^'\\\n])+')",
    re.S,
)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.M)
DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.M)
ACCESS = re.compile(r"^\s*(?:public|private|protected)\s*:(?!:)")
ATTRIBUTE = re.compile(r"\[\[.*?\]\]|\balignas\s*\([^()]*\)|\bnoexcept\s*\([^()]*\)", re.S)


def spaces(text):
    return re.sub(r"[^\n]", " ", text)


@dataclass(frozen=True)
class Include:
    name: str
    quoted: bool
    line: int


@dataclass(frozen=True)
class Declaration:
    """What stands at namespace or class level: a function with its body, or anything that ends in ';'."""

    head: str
    line: int
    last_line: int
    body: str | None  # None: no function body

    @property
    def signature(self):
        """(name, [parameters]) of a function, else None. Template arguments are left out: optional<bool> is no bool."""
        flat = without_templates(ATTRIBUTE.sub(" ", self.head))
        match = re.search(r"(operator\s*[^\w\s(]+|operator\s*\(\s*\)|~?\w+)\s*\(", flat)
        if not match or "=" in flat[: match.start()]:
            return None
        end = matching(flat, match.end() - 1)
        inside = flat[match.end() : end].strip()
        return match[1], split_parameters(inside) if inside not in ("", "void") else []

    @property
    def lines(self):
        return self.last_line - self.line + 1


def matching(code, at):
    """Where the bracket at `at` closes (the end when it does not)."""
    closes = {"(": ")", "{": "}", "[": "]"}[code[at]]
    depth = 0
    for i in range(at, len(code)):
        if code[i] == code[at]:
            depth += 1
        elif code[i] == closes:
            depth -= 1
            if depth == 0:
                return i
    return len(code) - 1


def without_templates(head):
    """Drops <...>, innermost first; operators that contain angle brackets are no brackets."""
    head = re.sub(r"operator\s*(<=>|<<=?|>>=?|<=?|>=?|->\*?)", lambda m: "operator" + "@" * len(m[1]), head)
    head = head.replace("->", "@@")
    before = None
    while before != head:
        before, head = head, re.sub(r"<[^<>;]*>", "", head)
    return head


def split_parameters(text):
    parts, depth, begin = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            parts.append(text[begin:i].strip())
            begin = i + 1
    return parts + [text[begin:].strip()]


def opens_scope(head):
    """A namespace, a class or an enumeration, whose inside is at declaration level."""
    head = ATTRIBUTE.sub(" ", head)
    if re.match(r'\s*(inline\s+)?namespace\b|\s*extern\s*"', head):
        return True
    plain = without_templates(head)
    return "(" not in plain and "=" not in plain and bool(re.match(r"\s*(template\s+)?(typedef\s+)?(class|struct|union|enum)\b", plain))


def opens_function(head):
    plain = without_templates(head)
    return "(" in plain and not plain.rstrip().endswith("=")


@dataclass(frozen=True)
class Source:
    path: PurePosixPath  # relative to the repository
    text: str

    @cached_property
    def without_comments(self):
        return TOKEN.sub(lambda m: spaces(m[0]) if m["comment"] else m[0], self.text)

    @cached_property
    def code(self):
        """Without comments, directives and what stands in quotes."""

        def blank(m):
            if m["comment"]:
                return spaces(m[0])
            if m["string"] or m["raw"] or m["char"]:
                return m[0][0] + spaces(m[0][1:-1]) + m[0][-1]
            return m[0]

        return DIRECTIVE.sub(lambda m: spaces(m[0]), TOKEN.sub(blank, self.text))

    @property
    def is_header(self):
        return self.path.suffix == ".h"

    @property
    def is_public(self):
        return self.path.parts[0] == "include"

    @property
    def is_test(self):
        return self.path.parts[0] == "tests"

    @property
    def folder(self):
        """The room that the file belongs to; None for tests and tools."""
        parts = self.path.parts
        if parts[0] == "include":
            return parts[2]
        for folder in self.path.parents:
            if folder in FOLDER_ROOMS:
                return FOLDER_ROOMS[folder]
        return parts[1] if parts[0] == "src" else None

    @property
    def n_lines(self):
        return len(self.text.splitlines())

    def line_of(self, position):
        return self.text.count("\n", 0, position) + 1

    @property
    def includes(self):
        text = self.without_comments
        return [Include(m[2], m[1] == '"', self.line_of(m.start(1))) for m in INCLUDE.finditer(text)]

    @cached_property
    def declarations(self):
        return list(self._declarations())

    @property
    def functions(self):
        return [d for d in self.declarations if d.body is not None]

    def _declarations(self):
        code = self.code
        at = begin = 0
        while at < len(code):
            c = code[at]
            if c == "(" or c == "[":
                at = matching(code, at)  # also over braces of default arguments
            elif c == ":" and ACCESS.match(code[begin : at + 1]):
                begin = at + 1
            elif c == ";":
                yield self._declaration(begin, at, None)
                begin = at + 1
            elif c == "}":
                begin = at + 1
            elif c == "{":
                head = code[begin:at]
                if opens_scope(head):
                    begin = at + 1
                else:
                    end = matching(code, at)
                    # a_{1}, b_{2} {...}: what a constructor initialises comes before its body
                    is_initialiser = code[end + 1 :].lstrip()[:1] in (",", "{") and code[end + 1 :].lstrip() != ""
                    if opens_function(head) and not is_initialiser:
                        yield self._declaration(begin, end, code[at : end + 1])
                        begin = end + 1
                    at = end
            at += 1

    def _declaration(self, begin, end, body):
        head = self.code[begin:end] if body is None else self.code[begin : end + 1 - len(body)]
        first = begin + len(head) - len(head.lstrip())
        return Declaration(" ".join(head.split()), self.line_of(first), self.line_of(end), body)


def load_sources(root):
    paths = [p for folder in ROOTS for p in sorted((root / folder).rglob("*")) if p.suffix in (".h", ".cpp")]
    return [Source(PurePosixPath(p.relative_to(root).as_posix()), p.read_text(encoding="utf-8")) for p in paths]


def source(path, text):
    """A file that is not on the disk, for the lint's own tests."""
    return Source(PurePosixPath(path), text)


