#include "lancet/editors/registry.h"

#include <string>
#include <vector>

#include "lancet/editor_parts/filtered_editor.h"
#include "lancet/spec/editor_spec.h"

// One row for each method: its name, the function in its file that reads its options, and one line that describes it.
#define LANCET_METHODS(ROW)                                                                                      \
  ROW("memit", make_memit, "many facts at once, in several layers (arXiv 2210.07229)")                           \
  ROW("rome", make_rome, "one fact at a time, by a rank-one change (arXiv 2202.05262)")                          \
  ROW("r-rome", make_r_rome, "ROME with the same key everywhere in its equation (arXiv 2403.07175)")             \
  ROW("emmet", make_emmet, "many facts at once, as equality constraints (arXiv 2403.14236)")                     \
  ROW("alphaedit", make_alphaedit, "many facts, by changes in the null space of text (arXiv 2410.02355)")        \
  ROW("pmet", make_pmet, "values at the MLP and at attention; only the MLP changes (arXiv 2308.08742)")          \
  ROW("nse", make_nse, "for streams: values of the unedited model, chosen neurons (arXiv 2410.04045)")           \
  ROW("evoedit", make_evoedit, "for streams: a null space that shrinks with each edit (RLSEdit)")                \
  ROW("betaedit", make_betaedit, "for streams: a null space that is computed again after many edits (BetaEdit)") \
  ROW("ultraedit", make_ultraedit, "one step from normalised gradients; needs no subject (arXiv 2505.14679)")    \
  ROW("stableedit", make_stableedit, "for streams: ultraedit with whitened gradients (StableEdit)")              \
  ROW("ft", make_ft, "fine-tuning, all target tokens at the prompt's last token (arXiv 2202.05262)")             \
  ROW("ft-l", make_ft_l, "ft with a limit on the change of each entry (arXiv 2202.05262)")                       \
  ROW("ft-m", make_ft_m, "fine-tuning on the target tokens (EasyEdit)")                                          \
  ROW("zerounlearn", make_zerounlearn, "removes facts from a layer's outputs, for lancet erase (ZeroUnlearn)")   \
  ROW("crispedit", make_crispedit, "fine-tuning that hardly changes the loss on text (arXiv 2602.15823)")

namespace lancet {

#define LANCET_DECLARE(NAME, MAKE, SUMMARY) std::unique_ptr<Editor> MAKE(ConfigSection& editor);
LANCET_METHODS(LANCET_DECLARE)
#undef LANCET_DECLARE

std::span<const EditorRow> editor_table() {
#define LANCET_ROW(NAME, MAKE, SUMMARY) EditorRow{NAME, SUMMARY, MAKE},
  static constexpr EditorRow kEditors[] = {LANCET_METHODS(LANCET_ROW)};
#undef LANCET_ROW
  return kEditors;
}

std::unique_ptr<Editor> make_editor(ConfigSection& editor) {
  std::vector<std::string> names;
  for (const EditorRow& row : editor_table()) names.emplace_back(row.name);
  const std::string method = editor.choice(EditorSpec::kMethod.key, names);
  for (const EditorRow& row : editor_table()) {
    if (row.name != method) continue;
    std::unique_ptr<Editor> made = with_filters(row.make(editor), editor);
    if (has_option(EditorSpec::kRepair, method)) made = with_repair(std::move(made), editor);
    editor.finish();
    return made;
  }
  editor.abandon(EditorSpec::kMethod.key);
  return nullptr;
}

}  // namespace lancet
