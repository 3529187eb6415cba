// The base of methods that take one backward pass per batch. They use the inputs X and gradients G of each projection,
// token by token, normalise them by running statistics over all batches, and solve for V = -lr |Xn|^2 Gn.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

#include "lancet/core/config_section.h"
#include "lancet/editing/editor.h"
#include "lancet/editor_parts/automatic_options.h"

namespace lancet {

/// Running statistics of the rows [X, G] of all projections of one shape, kept in an editor's state.
class RunningStatistics {
 public:
  /// Which variance of a pass's rows is added: divided by n - 1, which is 0 for a single row, or divided by n.
  enum class Variance { kSample, kPopulation };

  RunningStatistics(EditorState& state, const TokenGradients& like);

  void add_rows(const TokenGradients& tokens, Variance variance);
  /// Returns the rows of X and of G; each entry is standardised by its mean and standard deviation.
  TokenGradients standardise(const TokenGradients& tokens) const;

  /// Returns the number of rows so far.
  double count() const { return count_.item<double>(); }
  /// Returns the rows of G minus their mean.
  Tensor centred_gradients(const TokenGradients& tokens) const;

 private:
  Tensor &count_, &mean_, &squares_;
};

/// The epsilon of the references, which always compute in f32.
inline constexpr double kOneStepEps = 1.1920928955078125e-07;

/// Returns "normaliser.<in>x<out>", the prefix of the tensors of RunningStatistics in an editor's state.
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
  /// Adds the rows of one backward pass to the state.
  virtual void note(EditorState& state, const TokenGradients& tokens) const = 0;
  /// Returns Xn and Gn for the rows of one projection. Runs on root alone.
  virtual TokenGradients normalise(const EditContext& context, EditorState& state,
                                   const TokenGradients& tokens) const = 0;

 private:
  OneStepOptions options_;
};

}  // namespace lancet
