#include "lancet/deltas/delta_file.h"

#include <torch/types.h>

#include <nlohmann/json.hpp>

#include "lancet/models/tensor_io.h"

namespace lancet {
namespace {

constexpr SealedFormat kDeltaFormat{"lancet-delta-2"};

Tensor to_host_f32(const Tensor& tensor) { return tensor.to(Placement::host(), at::kFloat); }

/// One delta per weight: low-rank changes side by side, anything else summed up.
WeightDelta merged(const std::vector<WeightDelta>& deltas) {
  std::vector<Tensor> left, right;
  for (const WeightDelta& delta : deltas) {
    const auto* low_rank = std::get_if<LowRankDelta>(&delta);
    if (low_rank == nullptr) break;
    left.push_back(low_rank->left_OR);
    right.push_back(low_rank->right_RI);
  }
  if (left.size() == deltas.size()) return LowRankDelta{torch::cat(left, 1), torch::cat(right, 0)};
  Tensor sum = to_dense(deltas.front());
  for (size_t i = 1; i < deltas.size(); ++i) sum = sum + to_dense(deltas[i]);
  return DenseDelta{sum};
}

/// In the orientation that the weight is stored in.
WeightDelta as_stored(WeightDelta delta, Layout layout) {
  if (layout != Layout::kColumns) return delta;
  if (const auto* low_rank = std::get_if<LowRankDelta>(&delta))
    return LowRankDelta{low_rank->right_RI.t(), low_rank->left_OR.t()};
  return DenseDelta{std::get<DenseDelta>(delta).full_OI.t()};
}

}  // namespace

void write_delta(const std::filesystem::path& path, const ModelConfig& config,
                 std::span<const WeightTransaction::Entry> entries, const DeltaProvenance& provenance) {
  NamedTensors tensors;
  for (const WeightTransaction::Entry& entry : entries) {
    const WeightSpec spec = weight_spec(config, entry.id);
    const std::string& name = spec.name;
    const WeightDelta delta = as_stored(merged(entry.deltas), spec.stored.layout);
    if (const auto* low_rank = std::get_if<LowRankDelta>(&delta)) {
      tensors.emplace_back(name + ".left", to_host_f32(low_rank->left_OR));
      tensors.emplace_back(name + ".right", to_host_f32(low_rank->right_RI));
    } else {
      tensors.emplace_back(name + ".full", to_host_f32(std::get<DenseDelta>(delta).full_OI));
    }
  }
  write_tensors(path, kDeltaFormat, tensors,
                {{"base_hash", provenance.base_hash},
                 {"method", provenance.method},
                 {"requests", nlohmann::json(provenance.request_ids).dump()}});
}

}  // namespace lancet
