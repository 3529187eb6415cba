// The course of a batch that locate-then-edit methods share: values on the weights as they are, then for each layer,
// ascending: keys and the residual that is left, the method's solve, the change. Source: MEMIT (arXiv 2210.07229,
// algorithm 1); ROME is its case of one request and one layer.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "equal_keys.h"
#include "lancet/edit/editor.h"
#include "norm_anchor.h"

namespace lancet {

/// How much of the residual that is left one of n remaining layers takes.
enum class Spread {
  kEven,  ///< 1 / n (MEMIT)
  kRoot   ///< 1 / sqrt(n) (PMET)
};

/// What the values are found for and applied to.
enum class Course {
  kTogether,      ///< all requests, once, at the last layer; every layer then takes its share
  kLayerByLayer,  ///< all requests, at each layer, on the weights as edited so far; it takes the whole residual (BLUE)
  kOneByOne       ///< the same for one request after another (ROME)
};

struct LayeredOptions {
  std::vector<int64_t> layers;  ///< ascending
  Compat compat = Compat::kNone;
  ValueOptions values;
  ContextOptions contexts;
  EqualKeys equal_keys = EqualKeys::kWarn;
  NormAnchor norm_anchor;
  // the method's own
  Spread spread = Spread::kEven;
  Course course = Course::kTogether;
  ContextMean key_mean = ContextMean::kGrouped;
  ContextMean output_mean = ContextMean::kPlain;  ///< of what the residual is taken from
  std::optional<ContextMean> direction_mean;      ///< of LayerProblem::directions_FN
  bool keeps_history = false;                     ///< keys of earlier batches, measured behind them
};

/// `layers`, `values`, `contexts`, `compat`, `equal_keys`, `norm_anchor`, over a method's own defaults; where its
/// course is kTogether also `blue`.
LayeredOptions parse_layered_options(ConfigSection& editor, LayeredOptions defaults);

/// One layer's share of a batch, on its solve device.
struct LayerProblem {
  int64_t layer = 0;
  Tensor keys_FN;
  Tensor directions_FN;  ///< the requests' keys by another mean, where the method asks for one
  Tensor history_FM;     ///< undefined: none
  Tensor residuals_DN;
};

class LayeredEditor : public Editor {
 public:
  explicit LayeredEditor(LayeredOptions options) : options_(std::move(options)) {}

  EditorNeeds needs() const override {
    return {.subject = true, .statistics = true, .history = options_.keeps_history};
  }
  const ContextOptions* contexts() const override { return &options_.contexts; }
  const ValueOptions* values() const override { return &options_.values; }
  Compat compat() const override { return options_.compat; }
  std::vector<WeightId> targets(const ModelConfig& config) const override;
  EditOutcome edit(const EditContext& context, std::span<const EditRequest> requests, EditorState& state,
                   WeightTransaction& transaction) const override;

 protected:
  /// The change of the layer's down projection: one column for each key, in their order.
  virtual LowRankDelta solve(const EditContext& context, const LayerProblem& problem) const = 0;

 private:
  struct Round;
  struct Targets;

  void edit_round(const Round& round, const KeyGroups& groups, std::span<const int64_t> layers) const;
  void change_layers(const Round& round, const Targets& targets, std::span<const int64_t> layers) const;
  void measure_anchors(const Round& batch) const;
  Tensor residuals(const EditContext& context, RequestStates& states, const Tensor& z_ND,
                   std::span<const int64_t> layers_left) const;
  /// Layers whose values are found together.
  std::vector<std::span<const int64_t>> stages() const;

  LayeredOptions options_;
};

}  // namespace lancet
