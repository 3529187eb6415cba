// When a value counts as found and as followed, and what the job's editor says of how values are found.
// Defined in batch_report.cpp.
#pragma once

#include <optional>
#include <string>

#include "lancet/core/config_tree.h"
#include "lancet/editing/edit_outcome.h"

namespace lancet {

/// The least realised share of weights that followed.
inline constexpr double kFollowed = 0.5;

class ValueGoal {
 public:
  /// `editor`: resolved.
  explicit ValueGoal(const ConfigTree& editor);

  /// The loss ended low enough for the target to be likely: below the stop loss, or -log 0.6 a token. With
  /// `stop: predicted` also where the request was done before its steps were, while its loss still fell.
  bool is_found(const RequestOutcome& outcome) const;
  /// Neither found nor lower than at the start by a tenth.
  bool never_fell(const RequestOutcome& outcome) const;
  /// The value was not found, and its loss no longer fell: more steps would not help.
  bool has_stalled(const RequestOutcome& outcome) const;
  /// The value moved as far as it may.
  bool is_clamped(const RequestOutcome& outcome) const;

  /// Whether `steps: auto` is to be had: a method that trains has a number.
  bool has_automatic_steps() const { return !prefix_.empty(); }

  /// "editor.values.lr", or "editor.lr" of a method that trains.
  std::string key(const std::string& name) const;
  /// "editor.values.lr: 0.5", or "editor.lr: 0.5" of a method that trains.
  std::string setting(const std::string& name) const;
  /// nullopt: the method has no such option, or it is auto.
  std::optional<double> number(const std::string& name) const;

 private:
  const ConfigTree& editor_;
  std::string prefix_;  ///< "values."; empty: the method trains
  double found_loss_ = 0;
  bool stops_predicted_ = false;
};

}  // namespace lancet
