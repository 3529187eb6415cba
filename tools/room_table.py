"""Prints the table of rooms and the drawing of their dependencies for docs/architecture.md: `tools/room_table.py --write` puts them there.

A room, its rooms below and what it decides stand in CMake: a comment `# NAME: what it decides` right above the call that names them.
tests/lint/test_room_table.py compares what is printed with what stands in the page.
"""
import argparse
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILES = ("CMakeLists.txt", "cmake/PythonPackage.cmake")
PAGE = ROOT / "docs/architecture.md"
BEGIN, END = "<!-- begin: tools/room_table.py --write -->", "<!-- end -->"
# A library, or a program, which is on top of libraries.
CALL = re.compile(r"^(?:# (?P<told>\w+): (?P<decides>[^\n]+)\n)?(?:lancet_library\((?P<room>\w+)|target_link_libraries\(lancet_(?:commands PUBLIC|python PRIVATE))(?P<words>[^)]*)\)", re.M)


def read_rooms(cmake):
    """{room: (what it decides, its flags, the rooms that it names)} in the order of the text, which is lowest first."""
    rooms = {}
    for call in CALL.finditer(cmake):
        name, words = call["room"] or call["told"], call["words"].split()
        if call["told"] != name or name is None:
            raise SystemExit(f"{call[0].splitlines()[0]}: expected a comment `# {name or 'ROOM'}: what it decides` on the line above")
        rooms[name] = (call["decides"], words, [word.removeprefix("lancet_") for word in words if word.startswith("lancet_")])
    return rooms


def below(rooms, name):
    """All rooms that a room stands on."""
    found, left = set(), [name]
    while left:
        for other in rooms[left.pop()][2]:
            if other not in found:
                found.add(other)
                left.append(other)
    return found


def directly_below(rooms, name):
    """Without those that another one stands on."""
    named = rooms[name][2]
    return [room for room in named if not any(room in below(rooms, other) for other in named)]


def torch_of(words):
    if "SANITIZED" in words:
        return "no"
    return "hands on" if "TENSORS" in words else "yes"


def folder_of(name, words):
    folder = words[words.index("SOURCES_IN") + 1] if "SOURCES_IN" in words else f"src/{name}"
    return f"[`{name}`](../{folder}/README.md)" if (ROOT / folder / "README.md").exists() else f"`{name}`"


def block(rooms):
    table = [f"| {folder_of(name, words)} | {decides} | {torch_of(words)} |" for name, (decides, words, _) in rooms.items()]
    edges = [f"  {name} --> {' & '.join(under)}" for name in reversed(rooms) if (under := directly_below(rooms, name))]
    return "\n".join(["| room | decides | torch |", "|---|---|---|", *table, "", "```mermaid", "flowchart TD", *edges, "```"])


def with_block(page, text):
    head, rest = page.split(BEGIN)
    return f"{head}{BEGIN}\n{text}\n{END}{rest.split(END, 1)[1]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.relative_to(ROOT)}")
    write = parser.parse_args().write
    text = block(read_rooms("\n".join((ROOT / name).read_text() for name in FILES)))
    if write:
        PAGE.write_text(with_block(PAGE.read_text(), text))
    else:
        print(text)


if __name__ == "__main__":
    main()
