"""docs/architecture.md has the rooms, what they decide and the drawing of their dependencies as CMake declares them."""
import importlib.util

import pytest
from cpp_source import REPOSITORY

SPEC = importlib.util.spec_from_file_location("room_table", REPOSITORY / "tools/room_table.py")
TABLE = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(TABLE)

CMAKE = """# base: errors
lancet_library(base SANITIZED DEPENDS yaml-cpp)
# disk: files
lancet_library(disk SANITIZED DEPENDS lancet_base ZLIB::ZLIB)
# change: edits
lancet_library(change TORCH SOURCES_IN made DEPENDS lancet_disk
  lancet_base)
# program: on top
target_link_libraries(lancet_commands PUBLIC lancet_change)
"""


def test_the_page_has_what_cmake_declares():
    rooms = TABLE.read_rooms("\n".join((REPOSITORY / name).read_text() for name in TABLE.FILES))
    assert len(rooms) > 25 and {"cli", "python"} < set(rooms)
    page = TABLE.PAGE.read_text()
    assert TABLE.with_block(page, TABLE.block(rooms)) == page, "run: python3 tools/room_table.py --write"


def test_rooms_are_read():
    rooms = TABLE.read_rooms(CMAKE)
    assert [(name, decides, below) for name, (decides, _, below) in rooms.items()] == [
        ("base", "errors", []), ("disk", "files", ["base"]), ("change", "edits", ["disk", "base"]), ("program", "on top", ["change"])
    ]
    assert TABLE.below(rooms, "program") == {"change", "disk", "base"} and TABLE.directly_below(rooms, "change") == ["disk"]
    text = TABLE.block(rooms)
    assert "| `disk` | files | no |" in text and "| `change` | edits | yes |" in text
    assert "  change --> disk\n" in text and "disk & base" not in text


@pytest.mark.parametrize("cmake", ["lancet_library(io DEPENDS lancet_core)\n", "# core: errors\nlancet_library(io DEPENDS lancet_core)\n"])
def test_a_room_without_its_comment_is_refused(cmake):
    with pytest.raises(SystemExit):
        TABLE.read_rooms(cmake)
