// Reasons for failed edits that the losses of their values do not show: another request of the job interfered, or a
// number of the editor that depends on a model's scale kept all changes too small for this model.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "lancet/core/config_tree.h"

namespace lancet {

struct EditReport;

/// Returns the request whose target the model writes instead of this one's, and did not write before; nullopt if there
/// is none.
std::optional<size_t> collides_with(const EditReport& report, size_t request);

/// A limit that kept changes too small.
struct HeldChange {
  std::string reason;  ///< "editor.norm_constraint: 5e-05 lets no entry of a weight change by more, which ..."
  std::string remedy;  ///< "raise editor.norm_constraint, as to 0.01"
};

/// Returns a limit (`norm_constraint`) or the length of the only step (`lr` of a method without `steps`) if it is the
/// reason why most edits failed and the weights moved very little; else nullopt. `editor`: resolved.
std::optional<HeldChange> held_change(const EditReport& report, const ConfigTree& editor);

/// Returns which part of every value the method does not write; empty if there is none.
std::string left_undone(const ConfigTree& editor);

}  // namespace lancet
