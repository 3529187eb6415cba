// Reasons why edits did not take that the losses of their values do not tell: another request of the job came in the
// way, or a number of the editor that has a model's scale kept all changes too small for this model.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "lancet/core/config_tree.h"

namespace lancet {

struct EditReport;

/// Returns the request whose target the model writes in place of this one's, and did not write before; nullopt: none.
std::optional<size_t> collides_with(const EditReport& report, size_t request);

/// A change that was held back.
struct HeldChange {
  std::string reason;  ///< "editor.norm_constraint: 5e-05 lets no entry of a weight change by more, which ..."
  std::string remedy;  ///< "raise editor.norm_constraint, as to 0.01"
};

/// Whether most edits did not take, and the weights moved so little that a limit (`norm_constraint`) or the length of
/// the only step (`lr` of a method without `steps`) is the reason; nullopt: not so. `editor`: resolved.
std::optional<HeldChange> held_change(const EditReport& report, const ConfigTree& editor);

/// What the method leaves undone of every value; empty: nothing.
std::string left_undone(const ConfigTree& editor);

}  // namespace lancet
