"""The design's rules that a program can check: direction of dependencies, budgets, devices, format, tests that assert.

Every check is a function from sources to a list of offenders; below each stand examples that it must and must not find.
"""
import re
import shutil
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest
from cpp_source import FOLDER_ROOMS, LIBRARY, REPOSITORY, folders_of_rooms, load_sources, source


@pytest.fixture(scope="module")
def sources():
    found = load_sources(REPOSITORY)
    assert len(found) > 50, f"only {len(found)} C++ files under {REPOSITORY}"
    return found


def report(offenders):
    if offenders:
        pytest.fail("\n".join([f"{len(offenders)} offenders:", *offenders]), pytrace=False)


# ---- Direction of dependencies -------------------------------------------------------------------------------------------------

def declared_rooms(cmake):
    """CMakeLists.txt is what says which room may include which: room -> (rooms that it may include, whether it sees torch)."""
    rooms = {}
    for name, words in LIBRARY.findall(cmake):
        words = words.split()
        rooms[name] = ({word.removeprefix("lancet_") for word in words if word.startswith("lancet_")}, "TORCH" in words or "TENSORS" in words)
    return rooms


ROOMS = declared_rooms((REPOSITORY / "CMakeLists.txt").read_text())
MAY_INCLUDE = {name: rooms for name, (rooms, _) in ROOMS.items()} | {"cli": set(ROOMS), "python": set(ROOMS) - {"serve", "doctor"}}  # on top
WITHOUT_TORCH = {name for name, (_, torch) in ROOMS.items() if not torch}
TORCH = re.compile(r"(torch|ATen|c10)/")
STANDARD = re.compile(r"[a-z][a-z0-9_]*$")


def direction_problems(sources):
    for file in sources:
        if file.folder is None:
            continue
        if file.folder not in MAY_INCLUDE:
            yield f"{file.path}: the folder {file.folder} is no lancet_library of CMakeLists.txt"
            continue
        for include in file.includes:
            match = re.match(r"lancet/([^/]+)/", include.name)
            if match and match[1] != file.folder and match[1] not in MAY_INCLUDE[file.folder]:
                yield f"{file.path}:{include.line}: {file.folder} includes {include.name}"
            if file.folder in WITHOUT_TORCH and TORCH.match(include.name):
                yield f"{file.path}:{include.line}: {file.folder} includes <{include.name}>, which is torch"


# Tests of what no public header shows, and the room whose private headers they see.
SEES_PRIVATE = {
    PurePosixPath("tests/gpu"): PurePosixPath("src/distributed"),  # NCCL's groups: gpu_tests makes one by itself
    PurePosixPath("tests/unit/cli"): PurePosixPath("src/cli"),  # the program has no public headers
    PurePosixPath("tests/unit/serve"): PurePosixPath("src/serve"),  # what pages send
    PurePosixPath("tests/unit/push"): PurePosixPath("src/push"),  # a server that is put back
    PurePosixPath("tests/unit/models"): PurePosixPath("models"),  # a GPU's attention kernel, which they put another in the place of
}


def private_roots(file):
    """Folders that the compiler looks in besides the file's own."""
    if file.is_test:
        return [PurePosixPath("tests"), *(room for folder, room in SEES_PRIVATE.items() if file.path.parent == folder)]
    return [folder for folder, room in FOLDER_ROOMS.items() if room == file.folder and not file.is_public] or [PurePosixPath("src/cli")]


def target_problems(sources):
    """Public headers by their full name, private ones from their own room only, never all of torch."""
    paths = {str(file.path) for file in sources}
    for file in sources:
        for include in file.includes:
            where = f"{file.path}:{include.line}: {include.name}"
            if include.name == "torch/torch.h":
                yield f"{where}: takes 19 s to compile; <torch/types.h> or less"
            elif include.name.startswith("lancet/"):
                if not include.quoted:
                    yield f"{where}: expected in quotes"
                elif f"include/{include.name}" not in paths:
                    yield f"{where}: is no public header"
            elif include.quoted:
                places = [file.path.parent / include.name, *(root / include.name for root in private_roots(file))]
                if ".." in include.name or not any(str(place) in paths for place in places):
                    yield f"{where}: a private header is included from its own room only"


# Headers about another library's type.
SUBJECTS = {
    f"include/lancet/{name}.h": ("nlohmann/json.hpp",) for name in ("core/strict_json", "outcome/report_json", "tokenizer_files/json_node")
}


def public_header_problems(sources):
    for file in sources:
        if not file.is_public:
            continue
        for include in file.includes:
            is_ours = include.quoted and include.name.startswith("lancet/")
            is_standard = not include.quoted and STANDARD.match(include.name)
            is_subject = include.name in SUBJECTS.get(str(file.path), ())
            if not is_ours and not is_standard and not is_subject and include.name != "ATen/core/Tensor.h":
                yield f"{file.path}:{include.line}: {include.name}: a public header includes std, <ATen/core/Tensor.h> and lancet/ only"


def unused_header_problems(sources):
    """A header is in use when another folder or a test includes it, or a public header that is itself in use."""
    headers = {str(f.path.relative_to("include")): f for f in sources if f.is_public}
    used = {
        include.name
        for file in sources
        for include in file.includes
        if include.name in headers and (file.is_test or file.folder != headers[include.name].folder)
    }
    queue = sorted(used)
    while queue:
        added = {include.name for include in headers[queue.pop()].includes if include.name in headers} - used
        used |= added
        queue += sorted(added)
    for name in sorted(headers.keys() - used):
        yield f"{headers[name].path}: no other folder and no test needs it; it belongs beside its source"


def unused_dependency_problems(sources, rooms):
    """What a room names in CMake and never includes."""
    included = {}
    for file in sources:
        for include in file.includes:
            if match := re.match(r"lancet/([^/]+)/", include.name):
                included.setdefault(file.folder, set()).add(match[1])
    for room, (names, _) in rooms.items():
        for name in sorted(names - included.get(room, set())):
            yield f"CMakeLists.txt: {room} names lancet_{name}, and includes nothing of it"


def home_problems(sources):
    """A header whose source has another name says which: it is one of the same room."""
    names = {(file.folder, file.path.name) for file in sources}
    for file in sources:
        for home in re.findall(r"\bDefined in (\w+\.cpp)\b", file.text):
            if file.folder is not None and (file.folder, home) not in names:
                yield f"{file.path}: Defined in {home}: {file.folder} has no such file"


def folder_of(path, homes):
    """The folder that a file counts to: a public header's is its source's; one without a source is for itself."""
    return path.parent if path.parts[0] != "include" else homes.get((path.parts[2], path.stem), path)


def circle_problems(sources):
    """Folders that include each other, by however many others."""
    homes = {(file.folder, file.path.stem): file.path.parent for file in sources if file.path.suffix == ".cpp" and file.folder}
    paths = {file.path for file in sources}
    edges = {}
    for file in sources:
        if file.folder is None:
            continue
        for include in file.includes:
            places = [PurePosixPath("include") / include.name, file.path.parent / include.name, *(root / include.name for root in private_roots(file))]
            for place in places:
                if place in paths:
                    edges.setdefault(folder_of(file.path, homes), {}).setdefault(folder_of(place, homes), f"{file.path} includes {include.name}")
    for circle in circles({folder: set(found) - {folder} for folder, found in edges.items()}):
        if sum(place.suffix == "" for place in circle) > 1:
            yield " <-> ".join(map(str, circle)) + ": " + "; ".join(edges[a][b] for a in circle for b in circle if a != b and b in edges.get(a, {}))


def circles(edges):
    """Sets of nodes that reach each other, each sorted."""
    def reached(node):
        found, left = set(), [node]
        while left:
            for other in edges.get(left.pop(), ()):
                if other not in found:
                    found.add(other)
                    left.append(other)
        return found

    reach = {node: reached(node) for node in edges}
    return sorted({tuple(sorted({b for b in reach[a] if a in reach.get(b, ())})) for a in edges if a in reach[a]})


def test_dependencies_point_down(sources):
    report(list(direction_problems(sources)))


def test_named_dependencies_are_used(sources):
    report(list(unused_dependency_problems(sources, ROOMS)))


def test_folders_have_no_circles(sources):
    report(list(circle_problems(sources)))


def test_includes_name_public_or_own_headers(sources):
    report(list(target_problems(sources)))


def test_headers_name_their_source(sources):
    report(list(home_problems(sources)))


def test_public_headers_include_little(sources):
    report(list(public_header_problems(sources)))


def test_public_headers_are_used_elsewhere(sources):
    report(list(unused_header_problems(sources)))


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("src/core/a.cpp", '#include "lancet/io/files.h"'),
        ("src/io/a.cpp", '#include "lancet/text/prompt.h"'),
        ("models/a.cpp", '#include "lancet/training/values.h"'),
        ("include/lancet/kernels/a.h", '#include "lancet/models/hooks.h"'),
        ("editors/a.cpp", '#include "lancet/runtime/devices.h"'),
        ("editors/a.cpp", ' #  include "lancet/io/files.h"'),
        ("src/eval/a.cpp", '#include "lancet/editors/registry.h"'),
        ("src/job/a.cpp", '#include "lancet/cli/commands.h"'),
        ("src/text/a.cpp", "#include <torch/types.h>"),
        ("include/lancet/core/a.h", "#include <ATen/core/Tensor.h>"),
        ("src/io/a.cpp", "#include <c10/util/Half.h>"),
        ("src/utils/a.cpp", ""),
    ],
)
def test_direction_finds(path, line):
    assert len(list(direction_problems([source(path, line)]))) == 1


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("src/io/a.cpp", '#include "lancet/core/error.h"'),
        ("src/io/a.cpp", '#include "lancet/io/files.h"'),
        ("models/a.cpp", "#include <torch/types.h>"),
        ("src/cli/main.cpp", '#include "lancet/core/error.h"'),
        ("tests/unit/a.cpp", '#include "lancet/training/values.h"'),
        ("src/core/a.cpp", '// #include "lancet/io/files.h"'),
        ("src/core/a.cpp", '/*\n#include "lancet/io/files.h"\n*/'),
    ],
)
def test_direction_lets_pass(path, line):
    assert list(direction_problems([source(path, line)])) == []


def test_rooms_are_read_from_cmake():
    cmake = "lancet_library(io SANITIZED DEPENDS lancet_core ZLIB::ZLIB)\nlancet_library(run TENSORS DEPENDS lancet_core\n  lancet_io)\n# lancet_library(no)\n"
    assert declared_rooms(cmake) == {"io": ({"core"}, False), "run": ({"core", "io"}, True)}
    assert {"core", "editing", "pipeline"} <= ROOMS.keys() and "core" in MAY_INCLUDE["pipeline"] and "pipeline" not in MAY_INCLUDE["editing"]
    cmake += "lancet_library(models SOURCES_IN models DEPENDS lancet_core)\n"
    assert folders_of_rooms(cmake) == {PurePosixPath("src/io"): "io", PurePosixPath("src/run"): "run", PurePosixPath("models"): "models"}


def test_unused_dependencies_finds():
    rooms = {"io": ({"core", "text"}, False)}
    assert len(list(unused_dependency_problems([source("src/io/a.cpp", '#include "lancet/core/error.h"')], rooms))) == 1
    assert list(unused_dependency_problems([source("src/io/a.cpp", '#include "lancet/core/error.h"'), source("include/lancet/io/b.h", '#include "lancet/text/prompt.h"')], rooms)) == []


def test_circles_finds():
    below = source("src/io/tensors/npy.cpp", '#include "lancet/io/files.h"')
    above = source("src/io/files.cpp", '#include "tensors/zip_file.h"')
    header, private = source("include/lancet/io/files.h", ""), source("src/io/tensors/zip_file.h", "")
    assert len(list(circle_problems([below, above, header, private]))) == 1  # a folder and the one in it
    assert list(circle_problems([below, header, private, source("src/io/files.cpp", "")])) == []
    other = source("src/text/a.cpp", '#include "lancet/core/b.h"'), source("src/core/b.cpp", '#include "lancet/editing/c.h"'), source("src/editing/c.cpp", '#include "lancet/text/a.h"')
    headers = [source(f"include/lancet/{name}.h", "") for name in ("text/a", "core/b", "editing/c")]
    assert len(list(circle_problems([*other, *headers]))) == 1  # of three rooms
    assert list(circle_problems([*other[:2], *headers])) == []


def test_targets_finds():
    files = [
        source("src/io/handle.h", ""),
        source("include/lancet/io/files.h", ""),
        source("tests/support/tiny.h", ""),
        source("src/io/a.cpp", '#include "handle.h"\n#include "lancet/io/files.h"\n#include <yaml-cpp/yaml.h>'),
        source("tests/unit/a.cpp", '#include "support/tiny.h"'),
        source("src/io/folders/lock.cpp", '#include "handle.h"'),  # of the same room, from its root
        source("src/distributed/groups.h", ""),
        source("tests/gpu/a.cpp", '#include "groups.h"'),
    ]
    assert list(target_problems(files)) == []
    for path, line in [
        ("src/text/a.cpp", '#include "handle.h"'),
        ("src/text/a.cpp", '#include "../io/handle.h"'),
        ("src/text/a.cpp", '#include "io/handle.h"'),
        ("src/text/a.cpp", '#include "lancet/io/handle.h"'),
        ("src/text/a.cpp", "#include <lancet/io/files.h>"),
        ("src/text/a.cpp", '#include "support/tiny.h"'),
        ("tests/unit/b.cpp", "#include <torch/torch.h>"),
        ("tests/unit/b.cpp", '#include "groups.h"'),
    ]:
        assert len(list(target_problems([*files, source(path, line)]))) == 1, line


def test_homes_finds():
    header = source("include/lancet/io/a.h", "// Bytes. Defined in b.cpp.\n")
    assert list(home_problems([header, source("src/io/b.cpp", "")])) == []
    assert len(list(home_problems([header, source("src/text/b.cpp", "")]))) == 1


def test_public_headers_finds():
    def problems(line):
        return list(public_header_problems([source("include/lancet/editing/a.h", line)]))

    for line in ["#include <torch/types.h>", "#include <yaml-cpp/yaml.h>", '#include "a_private.h"', "#include <unistd.h>"]:
        assert len(problems(line)) == 1, line
    for line in ["#include <vector>", "#include <ATen/core/Tensor.h>", '#include "lancet/core/error.h"', "#include <cstdint>"]:
        assert problems(line) == [], line


def test_unused_headers_finds():
    header = source("include/lancet/io/a.h", "")
    own = source("src/io/a.cpp", '#include "lancet/io/a.h"')
    assert len(list(unused_header_problems([header, own]))) == 1
    assert list(unused_header_problems([header, own, source("tests/unit/a.cpp", own.text)])) == []
    assert list(unused_header_problems([header, source("src/editing/a.cpp", own.text)])) == []
    between = source("include/lancet/io/b.h", own.text)
    assert len(list(unused_header_problems([header, between]))) == 2
    assert list(unused_header_problems([header, between, source("src/editing/a.cpp", '#include "lancet/io/b.h"')])) == []


# ---- Budgets -------------------------------------------------------------------------------------------------------------------

HEADER_LINES, SOURCE_LINES, EDITOR_LINES, FUNCTION_LINES, PARAMETERS = 200, 400, 200, 70, 5


def size_problems(sources):
    for file in sources:
        budget = HEADER_LINES if file.is_header else EDITOR_LINES if file.folder == "editors" else SOURCE_LINES
        if file.n_lines > budget:
            yield f"{file.path}: {file.n_lines} lines, at most {budget}"


def function_problems(sources):
    for file in sources:
        for function in file.functions:
            if function.lines > FUNCTION_LINES:
                yield f"{file.path}:{function.line}: {function.lines} lines, at most {FUNCTION_LINES}: {function.head[:80]}"


def parameter_problems(sources):
    for file in sources:
        if not file.is_public:
            continue
        for declaration in file.declarations:
            name, parameters = declaration.signature or ("", [])
            where = f"{file.path}:{declaration.line}: {name}"
            if len(parameters) > PARAMETERS:
                yield f"{where}: {len(parameters)} parameters, at most {PARAMETERS}: an options struct"
            if any(re.match(r"(const\s+)?bool\b", parameter) for parameter in parameters):
                yield f"{where}: a bool parameter: an enum or an options struct"


def test_files_are_small(sources):
    report(list(size_problems(sources)))


def test_functions_are_short(sources):
    report(list(function_problems(sources)))


def test_public_functions_take_few_parameters_and_no_bool(sources):
    report(list(parameter_problems(sources)))


@pytest.mark.parametrize(
    ("path", "budget"),
    [("include/lancet/io/a.h", 200), ("src/io/a.h", 200), ("src/io/a.cpp", 400), ("editors/a.cpp", 200), ("tests/unit/a.cpp", 400)],
)
def test_size_finds(path, budget):
    assert list(size_problems([source(path, "x\n" * budget)])) == []
    assert len(list(size_problems([source(path, "x\n" * budget + "x\n")]))) == 1


LONG = "  f();\n" * FUNCTION_LINES


@pytest.mark.parametrize(
    "text",
    [
        f"void g() {{\n{LONG}}}\n",
        f"namespace a {{\nnamespace {{\n\nint g(int x,\n      int y = {{}}) const {{\n{LONG}}}\n}}\n}}\n",
        f"class A final : public B<int(char)> {{\n public:\n  void f() override {{\n{LONG}  }}\n}};\n",
        f"A::A(int x) : a_{{x}}, b_(x), c_{{1, 2}} {{\n{LONG}}}\n",
        f"template <typename T>\nstd::vector<T> g(std::function<void(T)> f) {{\n{LONG}}}\n",
        f"TEST(A, B) {{\n{LONG}}}\n",
        f"const auto g = [](int x) {{\n{LONG}}};\n",
        f"bool operator<(const A& a, const A& b) {{\n{LONG}}}\n",
        f"auto g() -> std::pair<int, int> {{\n{LONG}}}\n",
        f"struct A g() {{\n{LONG}}}\n",
        f"void g() {{\n  const char* s = \"}}\"; // }}\n  char c = '}}'; int n = 200'000;\n{LONG}}}\n",
        f"#define X {{\nvoid g() {{\n{LONG}}}\n",
    ],
)
def test_functions_finds(text):
    assert len(list(function_problems([source("src/io/a.cpp", text)]))) == 1, text[:100]


@pytest.mark.parametrize(
    "text",
    [
        "void g() {\n" + "  f();\n" * (FUNCTION_LINES - 2) + "}\n",
        f"namespace a {{\n{LONG}}}\n",
        f"class A : public B {{\n{LONG}}};\n",
        f"struct alignas(64) A {{\n{LONG}}};\n",
        "enum class A {\n" + "  x,\n" * 100 + "};\n",
        "const Row kRows[] = {\n" + '  {"a", f(1)},\n' * 100 + "};\n",
        "const std::vector<std::function<void(int)>> kRows{\n" + "  {f},\n" * 100 + "};\n",
        "// void g() {\n" * 100,
        'const char* kText = R"(void g() {\n' + "x\n" * 100 + '})";\n',
        "void f();\n" * 100,
        "void f() { g(); }\n" * 100,
        f"namespace a {{\nvoid f() {{}}\n{LONG}void g() {{}}\n}}\n",
    ],
)
def test_functions_lets_pass(text):
    assert list(function_problems([source("src/io/a.cpp", text)])) == [], text[:100]


@pytest.mark.parametrize(
    "text",
    [
        "void f(int a, int b, int c, int d, int e, int g);",
        "class A {\n public:\n  explicit A(int a, int b, int c, int d, int e, std::map<int, int> g = {});\n};",
        "void f(bool flag);",
        "void f(int a, const bool flag = false);",
        "class A {\n  virtual int f(bool x) const noexcept = 0;\n};",
        "template <typename T, int N>\nT f(std::function<void(int)> f, bool x) {\n  return {};\n}",
        "bool operator()(bool x) const;",
    ],
)
def test_parameters_finds(text):
    assert len(list(parameter_problems([source("include/lancet/io/a.h", text)]))) == 1, text


@pytest.mark.parametrize(
    "text",
    [
        "void f(int a, int b, int c, int d, std::map<int, std::pair<int, int>> e = {1, 2, 3});",
        "bool f(std::optional<bool> fallback = {});",
        "struct A {\n  bool flag = true;\n  std::function<bool(bool, int, int, int, int, int)> f;\n};",
        "explicit operator bool() const;",
        "inline constexpr int kA = f(1, 2, 3, 4, 5, 6);",
        "void f(Boolean x);\nbool operator<(const A& a, const A& b);\nbool g(void);",
        "A(int x) : a_{1, 2}, b_(1, 2, 3, 4, 5, 6) {}",
    ],
)
def test_parameters_lets_pass(text):
    assert list(parameter_problems([source("include/lancet/io/a.h", text)])) == [], text


# ---- Devices -------------------------------------------------------------------------------------------------------------------

# Placement, the devices it is given, and the memory they have left.
DEVICE_AUTHORITY = {"src/runtime/devices.cpp", "src/runtime/memory.cpp"}
DEVICE_NAMES = re.compile(
    r'\bk(?:CPU|CUDA|PrivateUse1|Meta|MPS|XPU)\b|"(?:cpu|cuda)(?:[:=][^"]*)?"|(?:\.|->)(?:cpu|cuda|is_cpu|is_cuda|is_privateuseone|is_meta)\(\)'
    r"|\bDevice\s*[({]|\bDeviceType\s*::|\bDeviceIndex\b|\b(?:at|c10|torch)::cuda::|\bcuda[A-Z]\w*\s*\(|\bget(?:CUDA|PrivateUse1)Hooks\b|\bhasCUDA\b"
)
# (file, what it may name, why nothing better is possible)
MAY_NAME_DEVICES = [
    ("src/runtime/gpu_driver.cpp", '"cuda:"', "names GPUs that torch may be unable to use, and for which there is no device object"),
    ("src/distributed/device_groups.cpp", ".is_cuda()", "NCCL, which it wraps, serves GPUs alone"),
    ("src/kernels/own_kernels.cpp", ".is_cuda()", "kernels compiled by NVRTC run on NVIDIA's GPUs alone"),
    ("src/runtime/cuda_graphs.cpp", ".is_cuda()", "graphs of torch's are captured on NVIDIA's GPUs alone"),
    ("src/runtime/cuda_graphs.cpp", "at::cuda::", "torch's graph, and the pool that graphs share, have no name of any device's"),
    ("src/runtime/cuda_graphs.cpp", "c10::cuda::", "torch's allocator for GPUs, which alone knows pools of graphs"),
    ("src/distributed/device_groups.cpp", "at::cuda::", "a GPU's UUID, by which NCCL tells devices apart; placement says where things lie"),
]


def device_problems(sources, allowed):
    used = set()
    for file in sources:
        if file.folder is None or str(file.path) in DEVICE_AUTHORITY:
            continue
        for match in DEVICE_NAMES.finditer(file.without_comments):
            if (str(file.path), match[0]) in allowed:
                used.add((str(file.path), match[0]))
            else:
                yield f"{file.path}:{file.line_of(match.start())}: names a device: {match[0]}; only {', '.join(sorted(DEVICE_AUTHORITY))} do"
    for path, name in sorted(allowed - used):
        yield f"MAY_NAME_DEVICES: {path} no longer names {name}"


def test_only_placement_names_devices(sources):
    assert all(reason for _, _, reason in MAY_NAME_DEVICES)
    report(list(device_problems(sources, {(path, name) for path, name, _ in MAY_NAME_DEVICES})))


@pytest.mark.parametrize(
    "text",
    ["at::kCPU", "torch::kCUDA", "c10::kCPU", 'x.to("cuda")', 'f("cuda:0")', 'f("cpu")', "x.cpu()", "x->cuda()", "at::Device(x)"]
    + ["at::Device{x, 0}", "c10::DeviceType::CUDA", "at::kPrivateUse1", "x.is_cuda()", "device.is_cpu()", 'f("cuda:0=20GiB")']
    + ["at::cuda::current_device()", "c10::cuda::device_count()", "cudaSetDevice (0)", "at::hasCUDA()", "c10::DeviceIndex i"],
)
def test_devices_finds(text):
    for path in ["src/editing/a.cpp", "models/a.cpp", "editors/a.cpp", "include/lancet/io/a.h", "src/runtime/a.cpp"]:
        assert len(list(device_problems([source(path, text)], set()))) == 1, path
    authority = [source(path, text) for path in DEVICE_AUTHORITY]
    assert list(device_problems([*authority, source("tests/unit/a.cpp", text)], set())) == []


def test_devices_lets_pass():
    text = 'check_device(x, expected); "runs on the cpu"; at::Device f(); // at::kCPU\nx.device(); kCpuThreads; "--device"'
    assert list(device_problems([source("src/editing/a.cpp", text)], set())) == []


def test_device_rows_are_exact_and_in_use():
    file = source("src/io/a.cpp", "at::kCPU at::kCPU")
    assert list(device_problems([file], {("src/io/a.cpp", "kCPU")})) == []
    assert len(list(device_problems([file], {("src/io/a.cpp", "kCUDA")}))) == 3
    assert len(list(device_problems([file], {("src/io/b.cpp", "kCPU")}))) == 3


# ---- Editors -------------------------------------------------------------------------------------------------------------------

# where an `editor:` becomes an editor
MAKES_EDITORS = {"editors/registry.cpp", "include/lancet/editors/registry.h", "src/job_setup/resolved_job.cpp"}


def made_editor_problems(sources):
    """Each job is read once: whoever needs its editor takes the job with it."""
    for file in sources:
        if file.is_test or str(file.path) in MAKES_EDITORS:
            continue
        for match in re.finditer(r"\bmake_editor\b", file.without_comments):
            yield f"{file.path}:{file.line_of(match.start())}: makes an editor: take a ResolvedJob, or resolve_editor()"


def changing_editor_problems(sources):
    """All runs of a job share its editor. What a method keeps for the next batch belongs to the run: EditContext::kept()."""
    for file in sources:
        if file.folder not in ("editors", "editor_parts"):
            continue
        for match in re.finditer(r"\bmutable\b", file.without_comments):
            yield f"{file.path}:{file.line_of(match.start())}: an editor that changes"


def test_editors_are_made_in_one_place(sources):
    report(list(made_editor_problems(sources)))


def test_editors_do_not_change(sources):
    report(list(changing_editor_problems(sources)))


def test_editors_finds():
    made = [source("src/plan/a.cpp", "int a;\nauto editor = make_editor(section);\n"), source("src/job_setup/resolved_job.cpp", "make_editor(section);\n")]
    assert [problem.split(": ")[0] for problem in made_editor_problems(made)] == ["src/plan/a.cpp:2"]
    changing = [source("editors/a.cpp", "mutable int kept_;\n"), source("src/plan/a.cpp", "mutable int kept_;\n")]
    assert [problem.split(": ")[0] for problem in changing_editor_problems(changing)] == ["editors/a.cpp:1"]


# ---- Format --------------------------------------------------------------------------------------------------------------------

CLANG_FORMAT_VERSION = "14."


def clang_format():
    """The wheel's, which is pinned; another version formats otherwise."""
    wheel = Path(sys.executable).parent / "clang-format"
    program = str(wheel) if wheel.exists() else shutil.which("clang-format")
    assert program, "clang-format is neither beside this Python nor on PATH: make setup"
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    assert f"version {CLANG_FORMAT_VERSION}" in version, f"{program}: expected {CLANG_FORMAT_VERSION}x, got {version}: make setup"
    return program


def format_problems(root, paths):
    style = f"--style=file:{REPOSITORY / '.clang-format'}"
    run = subprocess.run([clang_format(), "--dry-run", "-Werror", style, *paths], cwd=root, capture_output=True, text=True)
    offenders = sorted({m[1] for m in re.finditer(r"^(\S+?):\d+:\d+: error: code should be", run.stderr, re.M)})
    assert run.returncode == 0 or offenders, run.stderr
    return [f"{path}: clang-format -i {path}" for path in offenders]


def test_code_is_formatted(sources):
    report(format_problems(REPOSITORY, [str(file.path) for file in sources]))


def test_format_finds(tmp_path):
    (tmp_path / "good.cpp").write_text("int f() { return 1; }\n")
    (tmp_path / "bad.cpp").write_text("int  f( ) {return 1;}\n")
    assert format_problems(tmp_path, ["good.cpp"]) == []
    assert format_problems(tmp_path, ["good.cpp", "bad.cpp"]) == ["bad.cpp: clang-format -i bad.cpp"]


# ---- Tests ---------------------------------------------------------------------------------------------------------------------

ASSERTION = re.compile(r"\b(?:EXPECT|ASSERT)_\w+\s*\(|\b(?:ADD_FAILURE|FAIL|GTEST_FAIL)\s*\(")
TEST_HEAD = re.compile(r"\s*(?:TYPED_)?TEST(?:_[FP])?\s*\(")
TEST_FOLDERS = {"unit", "gpu", "editors", "pipeline", "distributed", "device", "golden"}


def asserting_helpers(sources):
    """Functions of tests that assert, by themselves or through another."""
    functions = [(f.signature[0], f.body) for file in sources if file.is_test for f in file.functions if f.signature]
    names, size = set(), -1
    while len(names) != size:
        size = len(names)
        calls = re.compile(r"\b(?:%s)\s*(?:<[^;(]*>)?\(" % "|".join(map(re.escape, sorted(names)))) if names else None
        names |= {n for n, body in functions if n != "TEST" and (ASSERTION.search(body) or (calls and calls.search(body)))}
        names -= {"TEST", "TEST_F", "TEST_P", "TYPED_TEST"}
    return names


def assertion_problems(sources):
    helpers = asserting_helpers(sources)
    calls = re.compile(r"\b(?:%s)\s*(?:<[^;(]*>)?\(" % "|".join(map(re.escape, sorted(helpers)))) if helpers else None
    for file in sources:
        if not file.is_test or file.is_header or file.path.parts[1] not in TEST_FOLDERS:
            continue
        tests = [f for f in file.functions if TEST_HEAD.match(f.head)]
        if not tests:
            yield f"{file.path}: has no TEST"
        for test in tests:
            if not ASSERTION.search(test.body) and not (calls and calls.search(test.body)):
                yield f"{file.path}:{test.line}: asserts nothing: {test.head}"


def test_every_test_asserts(sources):
    report(list(assertion_problems(sources)))


def test_assertions_finds():
    helper = source("tests/support/a.h", "inline void expect_x(int x) { EXPECT_EQ(x, 1); }\ninline void nothing(int x) { use(x); }\n")
    good = "TEST(A, B) {\n  EXPECT_EQ(1, 1);\n}\nTEST_F(C, D) { expect_x(3); }\nvoid twice() { expect_x(1); }\nTEST(A, C) { twice(); }\n"
    assert list(assertion_problems([helper, source("tests/unit/a.cpp", good)])) == []
    for bad in ["TEST(A, B) { nothing(1); }", "TEST(A, B) { /* EXPECT_EQ(1, 1); */ }", 'TEST_F(A, B) { f("EXPECT_EQ(1, 1)"); }']:
        assert len(list(assertion_problems([helper, source("tests/unit/a.cpp", good + bad)]))) == 1, bad
    assert len(list(assertion_problems([source("tests/unit/a.cpp", "void expect_x() { EXPECT_EQ(1, 1); }")]))) == 1
