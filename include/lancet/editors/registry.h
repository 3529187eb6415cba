// The table of editing methods. To add a method, add one file in editors/ and one row in registry.cpp.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "lancet/core/config_section.h"
#include "lancet/editing/editor.h"

namespace lancet {

struct EditorRow {
  std::string_view name;
  std::string_view summary;  ///< one line for --help
  /// Reads the method's options from `editor:` and adds problems to the section. Does not call finish() on it.
  std::unique_ptr<Editor> (*make)(ConfigSection& editor);
};

std::span<const EditorRow> editor_table();

/// Makes the editor that `editor.method` names; null after a problem (unknown method). Calls finish() on the section.
std::unique_ptr<Editor> make_editor(ConfigSection& editor);

}  // namespace lancet
