"""Files of a room, and of a test program, are compiled together (cmake/LancetLibrary.cmake, compile_together): what one of them
names in its anonymous namespace, the next one sees. So each such name is the room's, and none is another one that a header declares:
a constant would silently take the other's place.

And a type that two files define under one name is undefined behaviour, though each sees but its own: the linker keeps one of two
inline functions of the same name, such as a destructor.
"""
import re
from collections import defaultdict

import pytest
from cpp_source import REPOSITORY, load_sources, source
from test_lint import MAY_INCLUDE, report

ANONYMOUS = re.compile(r"^namespace \{$(.*?)^\}", re.S | re.M)
TYPE = re.compile(r"(?:struct|class|enum class|enum|union)\s+(?:alignas\(\w+\) )?(\w+)[^;]*$")
CONSTANT = re.compile(r"(?:inline |static |thread_local )*(?:constexpr|const)\b")
CONSTANT_NAME = re.compile(r"\b(k[A-Z]\w*)(?:\[\w*\])?\s*[={]")
FUNCTION = re.compile(r"[\w:<>,&*\s\[\]()]*?\s[&*]?(\w+)\(")
OVERLOADED = {"PrintTo"}  # by types of the file's own


def declared(code):
    """Functions, types and constants declared in lines that begin at the margin. An alias may stand in several files."""
    names = set()
    for line in code.splitlines():
        if not re.match(r"[A-Za-z]", line) or re.match(r"(template|namespace|extern|using|public|private|friend)\b", line):
            continue
        if match := TYPE.match(line):
            names.add(match[1])
        elif CONSTANT.match(line) and (constants := CONSTANT_NAME.findall(line)):
            names.update(constants)
        elif match := FUNCTION.match(line):
            names.add(match[1])
    return {name for name in names if not name.startswith("TEST") and name not in OVERLOADED}


def anonymous_names(file):
    return set().union(*(declared(match[1]) for match in ANONYMOUS.finditer(file.code)))


def named_types(file):
    """Types that are defined outside anonymous namespaces: "lancet::cli::Table"."""
    within = []
    for line in file.text.splitlines():
        if opened := re.match(r"namespace ([\w:]*) ?\{", line):
            within.append(opened[1])
        elif line.startswith("}  // namespace"):
            within.pop()
        elif "" not in within and (defined := re.match(r"(?:struct|class|enum class) (\w+)(?: final)?(?: : [^;]*)?(?: ?\{|$)", line)):
            yield "::".join([*within, defined[1]])


def type_problems(sources):
    first = {}
    for file in sources:
        if file.path.parts[0] not in ("include", "src", "models", "editors"):
            continue
        for name in named_types(file):
            known = first.setdefault(name, file.path)
            if known != file.path:
                yield f"{file.path}: {name} is defined in {known} too"


def can_see(file, header):
    """Tests see all that is public; a room what it may include, and its own."""
    if header.is_test or file.is_test:
        return header.is_public
    if header.folder == file.folder:
        return True
    return header.is_public and header.folder in MAY_INCLUDE[file.folder]


def compiled_with(file):
    """What is compiled as one: a room, or the folders of a test program."""
    program = file.path.parts[1]
    return file.folder or ("device" if program == "pipeline" else program)


def shared_name_problems(sources):
    headers = [(header, declared(header.code)) for header in sources if header.is_header]
    owners = defaultdict(dict)
    for file in sources:
        if file.path.suffix != ".cpp" or file.path.parts[0] in ("bench", "examples"):
            continue
        for name in sorted(anonymous_names(file)):
            known = owners[compiled_with(file)].setdefault(name, file.path)
            if known != file.path:
                yield f"{file.path}: {name} is in {known} too: the two are compiled together"
            for header, names in headers:
                if name in names and can_see(file, header):
                    yield f"{file.path}: {name} hides the one of {header.path} in the files compiled with it"


def test_names_of_a_room_are_one_thing_each():
    report(sorted(shared_name_problems(load_sources(REPOSITORY))))


def test_types_are_one_thing_each():
    report(sorted(type_problems(load_sources(REPOSITORY))))


def test_finds_types_of_one_name():
    text = "namespace lancet {{\n{0}struct Keys {{\n}};\nclass Later;\n{1}}}  // namespace lancet\n"
    plain, hidden = text.format("", ""), text.format("namespace {\n", "}  // namespace\n")
    one, two = source("include/lancet/io/keys.h", plain), source("src/text/keys.h", plain)
    assert list(type_problems([one, two])) == ["src/text/keys.h: lancet::Keys is defined in include/lancet/io/keys.h too"]
    elsewhere = source("src/text/keys.h", plain.replace("namespace lancet", "namespace lancet::cli"))
    for other in (source("src/text/keys.cpp", hidden), elsewhere, source("tests/unit/io/keys_test.cpp", plain)):
        assert not list(type_problems([one, other]))


FORMAT = source("include/lancet/io/format.h", "namespace lancet {\ninline constexpr uint64_t kLengthBytes = 8;\nstd::string title(int n);\n}\n")


@pytest.mark.parametrize(
    "text, named",
    [
        ("constexpr size_t kBytes = 2, kLengthBytes = 2;", "kLengthBytes"),
        ("std::string title(const Page& page) {\n  return {};\n}", "title"),
        ("struct Page {\n  int title = 0;\n};", None),
        ("using Json = nlohmann::json;", None),
    ],
)
def test_finds_what_hides_a_header(text, named):
    file = source("src/io/npy.cpp", f"namespace lancet {{\nnamespace {{\n{text}\n}}  // namespace\n}}\n")
    found = list(shared_name_problems([FORMAT, file]))
    assert [named in problem for problem in found] == [True] * (named is not None), found


def test_finds_what_two_files_name():
    files = [source(f"src/io/{name}.cpp", "namespace lancet {\nnamespace {\nconstexpr int kTile = 2;\n}  // namespace\n}\n") for name in "ab"]
    assert list(shared_name_problems(files)) == ["src/io/b.cpp: kTile is in src/io/a.cpp too: the two are compiled together"]
    assert not list(shared_name_problems([files[0], source("src/text/b.cpp", files[1].text)]))
