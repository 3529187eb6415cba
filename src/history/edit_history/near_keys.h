// Finds keys that are close to each other but should get different values.
#pragma once

#include <map>
#include <span>
#include <utility>
#include <vector>

#include "compared_edit.h"

namespace lancet {

struct NearPair {
  double cosine = 0;
  int64_t layer = 0;
};

class NearKeys {
 public:
  NearKeys(std::span<const EditHistory* const> histories, const std::vector<ComparedEdit>& edits,
           const ConflictOptions& options);

  /// Finds pairs of near keys, with the layer of the largest cosine. Edits are given by their indices in `edits`, the
  /// earlier one first.
  std::map<std::pair<size_t, size_t>, NearPair> find();

  /// Returns ConflictReport::metrics, after find().
  std::vector<std::pair<WeightId, bool>> metrics() const { return metrics_; }

 private:
  /// The keys of one weight: a column for each edit that has a key there.
  struct Keys {
    std::vector<size_t> edits = {};
    std::vector<Tensor> keys_F = {}, residuals_D = {};
  };

  void find_in(WeightId id, const Keys& keys, std::map<std::pair<size_t, size_t>, NearPair>& found);

  const ConflictOptions& options_;
  std::map<WeightId, Keys> keys_;
  std::vector<std::pair<WeightId, bool>> metrics_;
};

}  // namespace lancet
