"""Documents for people: lines of a width that reads well, links that lead somewhere, and names that the code has.

Every check is a function from (path, text) to a list of offenders; below each stand examples that it must and must not find.
"""
import itertools
import re
from pathlib import PurePosixPath

import pytest
from cpp_source import REPOSITORY, load_sources

# Beside the sources of a room: for its authors.
ROOM_PAGES = sorted(page for room in ("src", "models", "editors") for page in (REPOSITORY / room).rglob("README.md"))
PAGES = sorted(
    [*(REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")), *(REPOSITORY / "docs").rglob("*.md"), *ROOM_PAGES]
)
WIDTH = 120  # lines are shorter
FENCE = re.compile(r"\s*(```|~~~)")
LINK = re.compile(r"!?\[[^\]]*\]\(\s*([^)\s]+)[^)]*\)")


def name_of(page):
    return page.relative_to(REPOSITORY).as_posix()


def report(offenders):
    if offenders:
        pytest.fail("\n".join([f"{len(offenders)} offenders:", *offenders]), pytrace=False)


def prose(text):
    """(number, line) of what stands outside code blocks."""
    in_block = False
    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line):
            in_block = not in_block
        elif not in_block:
            yield number, line


def width_problems(name, text):
    """A table's row is one line by its syntax, and neither a link nor an address can be cut."""
    for number, line in prose(text):
        without_links = re.sub(r"\bhttps?://\S+", "", re.sub(r"\]\([^)]*\)", "]", line))
        if len(without_links) >= WIDTH and not line.lstrip().startswith("|"):
            yield f"{name}:{number}: {len(line)} characters, expected fewer than {WIDTH}"


def anchors(text):
    """Of headings, as GitHub makes them."""
    heads = [re.match(r"#+\s+(.*)", line) for _, line in prose(text)]
    plain = [re.sub(r"[^\w\- ]", "", LINK.sub(lambda m: m[0], head[1]).lower()) for head in heads if head]
    return {title.replace(" ", "-") for title in plain}


def link_problems(name, text, read):
    """`read`: the text of a file of the repository by its path, or None."""
    for number, line in prose(text):
        for target in LINK.findall(re.sub(r"`[^`]*`", "", line)):
            path, _, anchor = target.partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            folder, parts = PurePosixPath(name).parent, []
            for part in (folder / path).parts if path else PurePosixPath(name).parts:
                parts = parts[:-1] if part == ".." else [*parts, part]
            found = read("/".join(parts))
            if found is None:
                yield f"{name}:{number}: {target}: no such file"
            elif anchor and anchor not in anchors(found):
                yield f"{name}:{number}: {target}: no heading of that name"


def table_problems(name, text):
    """A table is a head, a line of dashes, and rows with as many cells, without an empty line between them: rows behind
    one are text with bars. A bar within a cell is written \\|, also in code."""
    for is_table, lines in itertools.groupby(prose(text), key=lambda numbered: numbered[1].startswith("|")):
        if not is_table:
            continue
        table = [(number, line, len(re.findall(r"(?<!\\)\|", line)) - 1) for number, line in lines]
        (head, _, expected), *rows = table
        if not rows or not re.fullmatch(r"[|:\- ]+", rows[0][1]):
            yield f"{name}:{head}: expected a line of dashes below a table's head"
        for number, _, found in rows:
            if found != expected:
                yield f"{name}:{number}: {found} cells, where the table's head has {expected}"


NAMED_FILE = re.compile(r"[\w./-]*\w\.(?:h|cpp|cu|py|cmake|txt|sh|ya?ml|md)")
NAMED_TYPE = re.compile(r"[A-Z][a-z]\w*[a-z]\w*(?:::\w+)*")
FILES_LIE_IN = ("", "include/lancet/", "src/", "models/", "editors/", "docs/")


def name_problems(name, text, words, exists):
    """What `code` names: files, from the root, the page's folder or those above, and C++ types with their members. `NAME` stands for any."""
    for number, line in prose(text):
        for code in re.findall(r"`([^`]+)`", line):
            if NAMED_FILE.fullmatch(code) and "/" in code and "NAME" not in code:
                if not any(exists(folder + code) for folder in (*FILES_LIE_IN, f"{PurePosixPath(name).parent}/")):
                    yield f"{name}:{number}: {code}: no such file"
            elif NAMED_TYPE.fullmatch(code) and code != "PascalCase":
                missing = [word for word in code.split("::") if word not in words]
                if missing:
                    yield f"{name}:{number}: {code}: the sources have no {missing[0]}"


def read_file(path):
    file = REPOSITORY / path
    if not file.exists():
        return None
    return file.read_text(encoding="utf-8") if file.suffix == ".md" else ""


def test_lines_are_short():
    assert len(PAGES) > 15
    report([problem for page in PAGES for problem in width_problems(name_of(page), page.read_text())])


def test_links_lead_to_files_and_headings():
    report([problem for page in PAGES for problem in link_problems(name_of(page), page.read_text(), read_file)])


def test_tables_are_whole():
    report([problem for page in PAGES for problem in table_problems(name_of(page), page.read_text())])


def test_names_of_the_code_are_the_codes():
    words = {word for source in load_sources(REPOSITORY) for word in re.findall(r"\w+", source.without_comments)}
    pages = [REPOSITORY / "docs/architecture.md", REPOSITORY / "CONTRIBUTING.md", *ROOM_PAGES]
    assert len(pages) > 15 and len(words) > 5000
    report([problem for page in pages for problem in name_problems(name_of(page), page.read_text(), words, lambda path: (REPOSITORY / path).exists())])


def test_the_version_is_the_same_everywhere():
    version = re.search(r"project\(lancet VERSION ([\d.]+)", (REPOSITORY / "CMakeLists.txt").read_text())[1]
    citation = dict(re.findall(r"^([a-z-]+): (.+)$", (REPOSITORY / "CITATION.cff").read_text(), re.M))
    assert citation["version"] == version and citation["cff-version"] == "1.2.0" and citation["license"] == "Apache-2.0"
    assert re.search(r"^## \[([\d.]+)\]", (REPOSITORY / "CHANGELOG.md").read_text(), re.M)[1] == version


@pytest.mark.parametrize("text", ["x" * 120, "* " + "word " * 30, "```\ncode\n```\n" + "x" * 120, "[name](" + "u" * 10 + ") " + "x" * 120])
def test_width_finds(text):
    assert len(list(width_problems("a.md", text))) == 1


@pytest.mark.parametrize("text", ["x" * 119, "| " + "x" * 200 + " |", "```\n" + "x" * 200 + "\n```", "[name](" + "u" * 200 + ")", "https://" + "u" * 200])
def test_width_lets_pass(text):
    assert list(width_problems("a.md", text)) == []


FILES = {"docs/a.md": "# A head: `of` it, two\n```\n# code\n```\n", "docs/guides/b.md": "", "data/c.yaml": ""}


@pytest.mark.parametrize("link", ["b.md", "guides/c.md", "#code", "a.md#b", "../docs/guides/a.md"])
def test_links_finds(link):
    assert len(list(link_problems("docs/a.md", FILES["docs/a.md"] + f"[x]({link})", FILES.get))) == 1


@pytest.mark.parametrize("link", ["a.md", "guides/b.md", "../data/c.yaml", "#a-head-of-it-two", "a.md#a-head-of-it-two", "https://x.org/y.md"])
def test_links_lets_pass(link):
    assert list(link_problems("docs/a.md", FILES["docs/a.md"] + f"[x]({link}) `[y](none.md)`", FILES.get)) == []


TABLE = "| a | b |\n|---|:-:|\n| 1 | `x \\| y` |\n"


@pytest.mark.parametrize("text", [TABLE + "| 2 |\n", TABLE + "| 2 | `x | y` |\n", "| a |\n| 1 |\n", TABLE + "\n| 2 | 3 |\n"])
def test_tables_finds(text):
    assert len(list(table_problems("a.md", text))) == 1


@pytest.mark.parametrize("text", [TABLE, TABLE + "\n" + TABLE, "```\n| a\n| b | c\n```\n", "a | b\n"])
def test_tables_lets_pass(text):
    assert list(table_problems("a.md", text)) == []


SPOKEN, NAMED = {"Editor", "targets"}, {"src/io/a.h", "include/lancet/io/b.h"}


@pytest.mark.parametrize("code", ["io/c.h", "src/io/b.h", "Editors", "Editor::target", "ModelConfig"])
def test_names_finds(code):
    assert len(list(name_problems("src/io/README.md", f"`{code}`", SPOKEN, NAMED.__contains__))) == 1


@pytest.mark.parametrize("code", ["io/b.h", "src/io/a.h", "a.h", "Editor::targets", "editors/NAME.cpp", "make lint", "NAME", "None of it"])
def test_names_lets_pass(code):
    assert list(name_problems("src/io/README.md", f"`{code}`", SPOKEN, NAMED.__contains__)) == []
