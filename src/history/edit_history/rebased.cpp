#include "lancet/edit_history/rebased.h"

#include <torch/types.h>

#include <algorithm>
#include <map>

namespace lancet {
namespace {

/// The key and the residual of one edit at one weight.
struct KeyAndResidual {
  Tensor key_F, residual_D;
};
using EditKeys = std::map<WeightId, KeyAndResidual>;

std::vector<std::pair<std::string, EditKeys>> keys_by_edit(const EditHistory& history) {
  std::vector<std::pair<std::string, EditKeys>> all;
  for (size_t i = 0; i < history.batches().size(); ++i) {
    const BatchEntry& entry = history.journal().batches()[i];
    const size_t first = all.size();
    for (const EditRecord& edit : entry.edits) all.emplace_back(edit.request.id, EditKeys{});
    for (const SolvedSystem& system : history.batches()[i].systems)
      for (size_t key = 0; key < system.edits.size(); ++key)
        for (const int64_t edit : system.edits[key]) {
          const auto column = static_cast<int64_t>(key);
          all[first + static_cast<size_t>(edit)].second.try_emplace(
              system.id, KeyAndResidual{system.keys_FN.select(1, column), system.residuals_DN.select(1, column)});
        }
  }
  return all;
}

}  // namespace

std::vector<RebasedEdit> compare_edits(const EditHistory& here, const EditHistory& there) {
  const auto all_here = keys_by_edit(here);
  const std::map<std::string, EditKeys> keys_here(all_here.begin(), all_here.end());
  std::vector<RebasedEdit> compared;
  for (const auto& [id, keys] : keys_by_edit(there)) {
    const auto known = keys_here.find(id);
    if (known == keys_here.end() || known->second.empty() || keys.empty()) continue;
    RebasedEdit edit{.id = id, .key_cosine = 1};
    double squares_here = 0, squares_there = 0;
    for (const auto& [weight, other] : keys) {
      const auto own = known->second.find(weight);
      if (own == known->second.end()) continue;
      const auto& [key_F, residual_D] = own->second;
      const double norms = key_F.norm().item<double>() * other.key_F.norm().item<double>();
      edit.key_cosine = std::min(edit.key_cosine, norms > 0 ? key_F.dot(other.key_F).item<double>() / norms : 0);
      squares_here += residual_D.square().sum().item<double>();
      squares_there += other.residual_D.square().sum().item<double>();
    }
    edit.residual_ratio = squares_here > 0 ? std::sqrt(squares_there / squares_here) : 0;
    compared.push_back(edit);
  }
  return compared;
}

}  // namespace lancet
