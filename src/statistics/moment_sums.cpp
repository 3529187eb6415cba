#include "moment_sums.h"

#include <torch/types.h>

#include <cmath>
#include <optional>

#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/models/finite.h"

namespace lancet {
namespace {

/// One matrix is not copied.
Tensor together(const std::vector<Tensor>& blocks) {
  return blocks.size() == 1 ? blocks.front() : torch::stack(blocks);
}

}  // namespace

KeyShape moment_shape(const ModelConfig& config, MomentSide side, int64_t layer) {
  return side == MomentSide::kKeys ? config.key_shape(layer) : KeyShape{.width = config.d_model};
}

LayerSums::LayerSums(KeyShape rows, const Placement& placement, int64_t layer) {
  for (int64_t expert = 0; expert < rows.experts; ++expert)
    sums_.emplace_back(rows.width, placement.device_of(layer), placement.solve_device(layer));
}

void LayerSums::add(const Tensor& rows_NF, RowCounts& counts) {
  const std::vector<Tensor> parts = rows_NF.chunk(std::ssize(sums_), 1);
  for (size_t i = 0; i < sums_.size(); ++i) sums_[i].add(parts[i], counts);
}

Tensor LayerSums::panels() const {
  std::vector<Tensor> blocks;
  for (const GramAccumulator& sum : sums_) blocks.push_back(sum.panels());
  return together(blocks);
}

void LayerSums::restore(const Tensor& panels, int64_t rows) {
  if (sums_.size() == 1) return sums_.front().restore(panels, rows);
  for (size_t i = 0; i < sums_.size(); ++i) sums_[i].restore(panels[static_cast<int64_t>(i)].clone(), rows);
}

void LayerSums::sum_over(Communicator& communicator) {
  for (GramAccumulator& sum : sums_) sum.sum_over(communicator);
}

Tensor LayerSums::take_mean() && {
  std::vector<Tensor> blocks;
  for (GramAccumulator& sum : sums_) blocks.push_back(std::move(sum).take_mean());
  return together(blocks);
}

MomentSums::MomentSums(const CausalLM& model, MomentSide side, std::span<const int64_t> layers)
    : model_(model), side_(side), layers_(layers.begin(), layers.end()) {
  for (const int64_t layer : layers)
    sums_.emplace_back(moment_shape(model.config(), side, layer), model.placement(), layer);
}

SavedPass MomentSums::after(int64_t chunks) const {
  SavedPass pass{chunks, sums_.front().rows(), {}};
  for (const LayerSums& sum : sums_) pass.sums_FF.push_back(sum.panels());
  return pass;
}

int64_t MomentSums::go_on_from(const PartialSums* saves, int64_t tokens, Progress& progress) {
  if (saves == nullptr) return 0;
  std::vector<KeyShape> shapes;
  for (const int64_t layer : layers_) shapes.push_back(moment_shape(model_.config(), side_, layer));
  const std::optional<SavedPass> saved = saves->load(shapes);
  if (!saved) return 0;
  for (size_t i = 0; i < sums_.size(); ++i) sums_[i].restore(saved->sums_FF[i], saved->tokens);
  progress.expect_pieces(-saved->chunks);
  progress.skip(saved->tokens);
  log_line(
      cat("statistics: going on from ", saved->tokens, " of ", tokens, " tokens saved in ", saves->file().string()));
  return saved->chunks;
}

void MomentSums::sum_over(Communicator& communicator) {
  for (LayerSums& sum : sums_) sum.sum_over(communicator);
}

std::vector<Covariance> MomentSums::take() && {
  std::vector<Covariance> moments;
  for (size_t i = 0; i < sums_.size(); ++i) {
    const int64_t tokens = sums_[i].rows();
    moments.push_back({std::move(sums_[i]).take_mean(), tokens});
    // a number that is not finite shows on the diagonal
    if (const double trace = moments.back().moment_FF.diagonal(0, -2, -1).sum().item<double>(); !std::isfinite(trace))
      throw not_finite(model_,
                       cat("statistics of layer ", layers_[i], ": the trace of the ",
                           side_ == MomentSide::kKeys ? "covariance" : "gradients' moments", " is ", trace),
                       wider_dtype(model_));
  }
  return moments;
}

}  // namespace lancet
