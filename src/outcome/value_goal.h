// When a value counts as found and as realised, and the settings of the job's editor about finding values. Defined in
// batch_report.cpp.
#pragma once

#include <optional>
#include <string>

#include "lancet/core/config_tree.h"
#include "lancet/editing/edit_outcome.h"

namespace lancet {

/// The smallest realised share with which a weight counts as having followed its value.
inline constexpr double kFollowed = 0.5;

class ValueGoal {
 public:
  /// `editor`: resolved.
  explicit ValueGoal(const ConfigTree& editor);

  /// Whether the loss ended so low that the target is likely: below the stop loss, or below -log 0.6 per token. With
  /// `stop: predicted` also if the request was done before all its steps while its loss still fell.
  bool is_found(const RequestOutcome& outcome) const;
  /// Whether the value was not found and the loss did not fall by a tenth of its start.
  bool never_fell(const RequestOutcome& outcome) const;
  /// Whether the value was not found and its loss no longer fell, so that more steps would not help.
  bool has_stalled(const RequestOutcome& outcome) const;
  /// Whether the value moved as far as the clamp allows.
  bool is_clamped(const RequestOutcome& outcome) const;

  /// Whether the method has `steps: auto`. Methods that train have only numbers.
  bool has_automatic_steps() const { return !prefix_.empty(); }

  /// Returns "editor.values.lr", or "editor.lr" for a method that trains.
  std::string key(const std::string& name) const;
  /// Returns "editor.values.lr: 0.5", or "editor.lr: 0.5" for a method that trains.
  std::string setting(const std::string& name) const;
  /// Returns nullopt if the method has no such option, or it is auto.
  std::optional<double> number(const std::string& name) const;

 private:
  const ConfigTree& editor_;
  std::string prefix_;  ///< "values."; empty if the method trains
  double found_loss_ = 0;
  bool stops_predicted_ = false;
};

}  // namespace lancet
