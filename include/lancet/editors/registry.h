// The editing methods, as an explicit table. To add a method: one file in editors/, one row in registry.cpp.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "lancet/core/config_section.h"
#include "lancet/core/config_tree.h"
#include "lancet/editing/editor.h"

namespace lancet {

struct EditorRow {
  std::string_view name;
  std::string_view summary;  ///< one line for --help
  /// Reads the method's options from `editor:`; problems go to the section. Does not finish() it.
  std::unique_ptr<Editor> (*make)(ConfigSection& editor);
};

std::span<const EditorRow> editor_table();

/// Makes the editor that `editor.method` names; null after a problem (unknown method). Finishes the section.
std::unique_ptr<Editor> make_editor(ConfigSection& editor);
/// Makes that of an `editor:` that stands alone. Throws: ConfigError with every problem.
std::unique_ptr<Editor> make_editor(const ConfigTree& editor);

}  // namespace lancet
