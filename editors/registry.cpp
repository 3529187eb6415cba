#include "lancet/editors/registry.h"

#include <array>
#include <string>
#include <vector>

#include "editors.h"

namespace lancet {

std::span<const EditorRow> editor_table() {
  static constexpr std::array<EditorRow, 1> kEditors{{
      {"memit", "many facts at once, spread over several layers (arXiv 2210.07229)", make_memit},
  }};
  return kEditors;
}

std::unique_ptr<Editor> make_editor(ConfigSection& editor) {
  std::vector<std::string> names;
  for (const EditorRow& row : editor_table()) names.emplace_back(row.name);
  const std::string method = editor.choice("method", names);
  for (const EditorRow& row : editor_table()) {
    if (row.name != method) continue;
    std::unique_ptr<Editor> made = row.make(editor);
    editor.finish();
    return made;
  }
  return nullptr;
}

}  // namespace lancet
