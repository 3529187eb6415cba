// The course of a batch that locate-then-edit methods share: find the values; then, for each layer in ascending order,
// take the keys and the remaining residual, solve, and apply the change. Source: MEMIT (arXiv 2210.07229, algorithm 1).
// ROME is the case of one request and one layer.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <vector>

#include "lancet/editor_parts/layer_passes.h"
#include "lancet/editor_parts/layered_options.h"

namespace lancet {

class LayeredEditor : public Editor {
 public:
  explicit LayeredEditor(LayeredOptions options) : options_(std::move(options)) {}

  EditorNeeds needs() const override {
    return {.subject = options_.values.chunk_tokens == 0,
            .statistics = true,
            .entity_weight = options_.entity_weight,
            .history = options_.keeps_history || options_.keeps_solved_keys || options_.text_budget,
            .changes = options_.passes,
            .solve_matrices = options_.text_budget ? 3 : 0};  // a system, its vectors, and the weight's changes
  }
  const ContextOptions* contexts() const override { return &options_.contexts; }
  const ValueOptions* values() const override { return &options_.values; }
  TargetRule target_rule() const override { return options_.target_rule; }
  std::vector<WeightId> targets(const ModelConfig& config) const override;
  std::vector<int64_t> value_layers(const ModelConfig& config) const override;
  EditOutcome edit(const EditContext& context, std::span<const EditRequest> requests, EditorState& state,
                   WeightTransaction& transaction) const override;
  GivenSolution solve_given(const EditContext& context, const GivenSystem& given, EditorState& state) const override;

 protected:
  /// Returns the change of the layer's down projection.
  virtual LayerSolution solve(const EditContext& context, const LayerProblem& problem) const = 0;
  /// Returns each key's s, for methods with a SolveWeight: a single key gets the share s / (weight + s) of its
  /// residual.
  virtual Tensor leverages(const EditContext& context, const LayerProblem& problem) const;

 private:
  struct SubBatch;

  int64_t edit_round(const SubBatch& sub_batch, const KeyGroups& groups, std::span<const int64_t> layers) const;
  void on_value_weights(const SubBatch& batch, const std::function<void()>& use) const;
  void measure_anchors(const SubBatch& batch, std::span<const int64_t> layers) const;
  OptimizedValues find_values(const SubBatch& sub_batch, std::span<const PreparedRequest> requests,
                              int64_t layer) const;
  std::map<int64_t, Tensor> targets_of(const SubBatch& sub_batch, std::span<const PreparedRequest> requests,
                                       const Tensor& z_ND, std::span<const int64_t> layers) const;

  LayeredOptions options_;
};

}  // namespace lancet
