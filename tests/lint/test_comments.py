"""Doc comments stand alone: who sees one without what is around it learns what the thing does or holds.

So none begins with a word that says where, when, how or of what, and leaves the thing itself to the line above or below.
"""
import re

import pytest
from cpp_source import REPOSITORY, TOKEN, load_sources, source

PLACES = "above among at before behind below beside between beyond in into on over through to"  # "In front of a batch."
TIMES = "after once only since until when where while"  # "Until its end `to` is this thread's reporter."
RELATIONS = "also as by else for from not of per same with without"  # "Of both histories.", "As run_edit_job()."
OPENERS = set(f"{PLACES} {TIMES} {RELATIONS}".split())
PHRASES = ("the same", "all that")  # the same as what is said elsewhere, or nothing but that
FIRST_WORD = re.compile(r"[A-Za-z]+(?:[-'][A-Za-z]+)*")  # "by-product" is not "by"


def doc_blocks(file):
    """(line, text) of each /// block: whole lines of /// together; a ///< beside code with the ///< lines that go on from it."""
    blocks, last = [], (None, 0)  # the last block's mark and its last line
    for match in TOKEN.finditer(file.text):
        comment = match["comment"]
        if not comment or not comment.startswith("///"):
            continue
        mark = "///<" if comment.startswith("///<") else "///"
        line = file.line_of(match.start())
        has_line = not file.text[file.text.rfind("\n", 0, match.start()) + 1 : match.start()].strip()
        text = comment.removeprefix(mark).strip()
        if has_line and last == (mark, line - 1):
            blocks[-1] = (blocks[-1][0], f"{blocks[-1][1]} {text}")
        else:
            blocks.append((line, text))
        last = (mark, line)
    return blocks


def opener(text):
    """What a comment begins with that it must not begin with; None: nothing of the kind."""
    word = FIRST_WORD.match(text)
    if word and word[0].lower() in OPENERS:
        return word[0]
    return next((phrase for phrase in PHRASES if re.match(rf"{phrase}\b", text, re.I)), None)


def comment_problems(sources):
    for file in sources:
        for line, text in doc_blocks(file):
            if found := opener(text):
                yield f"{file.path}:{line}: begins with '{found}', not with what the thing does or holds: {text[:60]}"


def test_comments_stand_alone():
    offenders = list(comment_problems(load_sources(REPOSITORY)))
    if offenders:
        pytest.fail("\n".join([f"{len(offenders)} offenders:", *offenders]), pytrace=False)


@pytest.mark.parametrize(
    "text",
    [
        "/// Of those that did not take the first that holds.\nint f();",
        "/// As run_edit_job().\nint f();",
        "/// In front of a batch.\nint f();",
        "/// The same, of all weights.\nint f();",
        "/// All that a user sees.\nint f();",
        "/// Behind it,\n/// before anything else changes.\nint f();",
        "struct A {\n  int a = 0;  ///< of every rank\n};",
        "struct A {\n  int a = 0;  ///< bytes\n  int b = 0;  ///< per rank\n};",
        "int a = 0;  ///< bytes of a file\n/// For one of them.\nint f();",
        "/// Bytes.\n\n/// From any thread.\nint f();",
        'const char* a = "//";  ///< in JSON',
    ],
)
def test_comments_finds(text):
    for path in ["include/lancet/io/a.h", "src/io/a.cpp", "tests/unit/a.cpp", "bench/a.cpp"]:
        assert len(list(comment_problems([source(path, text)]))) == 1, path


@pytest.mark.parametrize(
    "text",
    [
        "/// Returns the first that holds,\n/// of those that did not take.\nint f();",
        "/// Collective: every rank gets all.\nint f();",
        "/// Throws: ConfigError for a file that is absent.\nint f();",
        "/// What open_tokenizer() may read.\nint f();",
        "/// All weights of a layer.\nint f();",
        "/// In-place sum.\nint f();",
        "enum A { kA };  ///< up projection",
        "/// `of`: the request.\nint f();",
        "/// \"as is\", \"none\".\nint f();",
        "struct A {\n  int a = 0;  ///< bytes of every\n              ///< rank\n              ///< of a job\n};",
        "struct A {\n  int* a = nullptr;  ///< null: of no rank\n};",
        "// Of no declaration.\nint f();  // as it is",
        'const char* a = "/// Of a text";',
        'const char* a = R"(\n/// Of a text\n)";',
    ],
)
def test_comments_lets_pass(text):
    assert list(comment_problems([source("src/io/a.cpp", text)])) == [], text
