#include "near_keys.h"

#include <torch/types.h>

#include <algorithm>
#include <map>
#include <set>

namespace lancet {
namespace {

/// How many columns of cosines are in memory at once.
constexpr int64_t kChunk = 1024;

/// Returns L^-1 K, or K if there is no L.
Tensor whitened(const Tensor& lower_FF, const Tensor& keys_FN) {
  if (!lower_FF.defined()) return keys_FN;
  if (lower_FF.dim() == 2) return at::linalg_solve_triangular(lower_FF, keys_FN, /*upper=*/false);
  const Tensor parts = keys_FN.unflatten(0, {lower_FF.size(0), -1});
  return at::linalg_solve_triangular(lower_FF, parts, /*upper=*/false).flatten(0, 1);
}

/// Returns columns of norm 1. Columns of zeros stay zeros.
Tensor unit_columns(const Tensor& columns) { return columns / columns.norm(2, 0, /*keepdim=*/true).clamp_min(1e-300); }

}  // namespace

NearKeys::NearKeys(std::span<const EditHistory* const> histories, const std::vector<ComparedEdit>& edits,
                   const ConflictOptions& options)
    : options_(options) {
  std::map<std::pair<size_t, size_t>, size_t> first_of_batch;
  for (size_t i = 0; i < edits.size(); ++i)
    first_of_batch.try_emplace({edits[i].place.history, edits[i].place.batch}, i);
  std::set<std::pair<WeightId, size_t>> taken;
  for (size_t h = 0; h < histories.size(); ++h)
    for (size_t b = 0; b < histories[h]->batches().size(); ++b)
      for (const SolvedSystem& system : histories[h]->batches()[b].systems)  // ordered by the changes
        for (size_t n = 0; n < system.edits.size(); ++n)
          for (const int64_t edit : system.edits[n]) {
            const size_t place = first_of_batch.at({h, b}) + static_cast<size_t>(edit);
            if (!taken.insert({system.id, place}).second) continue;
            Keys& keys = keys_[system.id];
            keys.edits.push_back(place);
            keys.keys_F.push_back(system.keys_FN.select(1, static_cast<int64_t>(n)));
            keys.residuals_D.push_back(system.residuals_DN.select(1, static_cast<int64_t>(n)));
          }
}

std::map<std::pair<size_t, size_t>, NearPair> NearKeys::find() {
  const torch::NoGradGuard no_grad;
  std::map<std::pair<size_t, size_t>, NearPair> found;
  for (const auto& [id, keys] : keys_) find_in(id, keys, found);
  return found;
}

void NearKeys::find_in(WeightId id, const Keys& keys, std::map<std::pair<size_t, size_t>, NearPair>& found) {
  const Tensor lower_FF = options_.factor ? options_.factor(id) : Tensor();
  metrics_.emplace_back(id, lower_FF.defined());
  const Tensor unit_FN = unit_columns(whitened(lower_FF, torch::stack(keys.keys_F, 1).to(torch::kDouble)));
  const Tensor residuals_DN = torch::stack(keys.residuals_D, 1).to(torch::kDouble);
  const Tensor norms_N = residuals_DN.norm(2, 0);
  for (int64_t begin = 0; begin < unit_FN.size(1); begin += kChunk) {
    const int64_t n = std::min(kChunk, unit_FN.size(1) - begin);
    const Tensor cosines_NM = torch::matmul(unit_FN.t(), unit_FN.narrow(1, begin, n));
    const Tensor places_P2 = (cosines_NM > options_.cosine).nonzero().contiguous();
    for (int64_t p = 0; p < places_P2.size(0); ++p) {
      const int64_t i = places_P2[p][0].item<int64_t>(), j = places_P2[p][1].item<int64_t>() + begin;
      if (i >= j) continue;
      const double apart = (residuals_DN.select(1, i) - residuals_DN.select(1, j)).norm().item<double>();
      const double longer = std::max(norms_N[i].item<double>(), norms_N[j].item<double>());
      if (!(apart > options_.residual_share * longer)) continue;
      const double cosine = cosines_NM[i][j - begin].item<double>();
      NearPair& pair = found[std::minmax(keys.edits[static_cast<size_t>(i)], keys.edits[static_cast<size_t>(j)])];
      if (cosine > pair.cosine) pair = {cosine, id.layer};
    }
  }
}

}  // namespace lancet
