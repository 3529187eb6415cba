#include "merged_state.h"

#include <torch/types.h>

#include <set>
#include <string>

#include "history_keys.h"

namespace lancet {

StateStep MergedState::next(const StateStep& step) {
  StateStep merged{.edits = step.edits};
  const auto put_columns = [&](const std::string& name, const Tensor& columns_FN) {
    (known_.insert(name).second ? merged.replaced : merged.appended)[name] = columns_FN;
    own_.insert(name);
  };
  for (const auto& [name, columns] : step.appended) put_columns(name, columns);
  for (const auto& [name, tensor] : step.replaced) {
    const bool is_first = !own_.contains(name);
    if (is_history(name, tensor) && is_first) {
      put_columns(name, tensor);
    } else if (!known_.contains(name) || (!is_first && !shared_.contains(name))) {
      known_.insert(name);
      own_.insert(name);
      merged.replaced[name] = tensor;
    } else {
      left_out_ = left_out_ || !is_first;
    }
  }
  return merged;
}

void MergedState::begin_history() {
  shared_ = known_;
  own_.clear();
}

bool has_one_method(std::span<const EditHistory* const> histories) {
  std::set<std::string> methods;
  for (const EditHistory* history : histories)
    for (const BatchEntry& entry : history->journal().batches())
      methods.insert(history->journal().settings()[entry.setting].method);
  return methods.size() <= 1;
}

}  // namespace lancet
