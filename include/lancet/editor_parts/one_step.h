// What methods that take one backward pass of a batch share: inputs X and gradients G of each projection, token by
// token, running statistics over all batches that normalise them, and a solve for V = -lr |Xn|^2 Gn.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

#include "lancet/core/config_section.h"
#include "lancet/editing/editor.h"
#include "lancet/editor_parts/automatic_options.h"

namespace lancet {

/// The running statistics of the rows [X, G] of all projections of one shape, in an editor's state.
class RunningStatistics {
 public:
  /// Which variance of a pass's rows is summed up: the one by n - 1, of which a single row has 0, or the one by n.
  enum class Variance { kSample, kPopulation };

  RunningStatistics(EditorState& state, const TokenGradients& like);

  void add_rows(const TokenGradients& tokens, Variance variance);
  /// Returns the rows of X and of G, each entry less its mean and by its standard deviation.
  TokenGradients standardise(const TokenGradients& tokens) const;

  /// Returns how many rows there were.
  double count() const { return count_.item<double>(); }
  /// Returns the rows of G less their mean.
  Tensor centred_gradients(const TokenGradients& tokens) const;

 private:
  Tensor &count_, &mean_, &squares_;
};

/// Epsilon of the references, which compute in f32 always.
inline constexpr double kOneStepEps = 1.1920928955078125e-07;

/// "normaliser.<in>x<out>", of whose tensors an editor's state has one each.
std::string normaliser_name(const TokenGradients& like);

struct OneStepOptions {
  std::optional<std::vector<WeightId>> modules;
  AutomaticModules automatic = AutomaticModules::kMiddle;
  double lr = 0;
  double ridge = 1;
  CaptureOptions capture;
  TargetEnd end = TargetEnd::kNone;
};

/// Reads `modules` of these kinds, `lr`, `batch`, `tokens` and `target_end`.
OneStepOptions parse_one_step(ConfigSection& editor, ModuleKinds kinds, AutomaticModules automatic);

class OneStepEditor : public Editor {
 public:
  explicit OneStepEditor(OneStepOptions options) : options_(std::move(options)) {}

  EditorNeeds needs() const override {
    return {.subject = false,
            .statistics = false,
            .backward = BackwardNeeds{.batch = options_.capture.batch, .trains_dense = false}};
  }
  const ContextOptions* contexts() const override { return nullptr; }
  const ValueOptions* values() const override { return nullptr; }
  TargetRule target_rule() const override { return {.end = options_.end}; }
  std::vector<WeightId> targets(const ModelConfig& config) const override {
    return modules_of(options_.modules, options_.automatic, config);
  }
  EditOutcome edit(const EditContext& context, std::span<const EditRequest> requests, EditorState& state,
                   WeightTransaction& transaction) const override;

 protected:
  /// Takes the rows of one backward pass into the state.
  virtual void note(EditorState& state, const TokenGradients& tokens) const = 0;
  /// Xn and Gn of the rows of one projection; on root alone.
  virtual TokenGradients normalise(EditorState& state, const TokenGradients& tokens) const = 0;

 private:
  OneStepOptions options_;
};

}  // namespace lancet
