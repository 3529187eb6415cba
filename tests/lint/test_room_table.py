"""docs/architecture.md has the rooms, what they decide and the drawing of their dependencies as CMake declares them."""
import importlib.util

import pytest
from cpp_source import REPOSITORY

SPEC = importlib.util.spec_from_file_location("room_table", REPOSITORY / "tools/room_table.py")
TABLE = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(TABLE)

CMAKE = """# core: errors
lancet_library(core SANITIZED DEPENDS yaml-cpp)
# io: files
lancet_library(io SANITIZED DEPENDS lancet_core ZLIB::ZLIB)
# edit: edits
lancet_library(edit TORCH SOURCES_IN edit DEPENDS lancet_io
  lancet_core)
# cli: the program
target_link_libraries(lancet PRIVATE lancet_edit)
"""


def test_the_page_has_what_cmake_declares():
    rooms = TABLE.read_rooms("\n".join((REPOSITORY / name).read_text() for name in TABLE.FILES))
    assert len(rooms) > 25 and {"cli", "python"} < set(rooms)
    page = TABLE.PAGE.read_text()
    assert TABLE.with_block(page, TABLE.block(rooms)) == page, "run: tools/room_table.py --write"


def test_rooms_are_read():
    rooms = TABLE.read_rooms(CMAKE)
    assert [(name, decides, below) for name, (decides, _, below) in rooms.items()] == [
        ("core", "errors", []), ("io", "files", ["core"]), ("edit", "edits", ["io", "core"]), ("cli", "the program", ["edit"])
    ]
    assert TABLE.below(rooms, "cli") == {"edit", "io", "core"} and TABLE.directly_below(rooms, "edit") == ["io"]
    text = TABLE.block(rooms)
    assert "| `io` | files | no |" in text and "| `edit` | edits | yes |" in text
    assert "  edit --> io\n" in text and "edit --> io & core" not in text


@pytest.mark.parametrize("cmake", ["lancet_library(io DEPENDS lancet_core)\n", "# core: errors\nlancet_library(io DEPENDS lancet_core)\n"])
def test_a_room_without_its_comment_is_refused(cmake):
    with pytest.raises(SystemExit):
        TABLE.read_rooms(cmake)
