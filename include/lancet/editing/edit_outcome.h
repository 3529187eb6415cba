// The result of an edit for its requests, as the method itself knows it before anything is measured.
// Defined in editor.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lancet/training/values.h"

namespace lancet {

/// The share of one layer's target at one request's key that its change achieves: <Delta k, r> / ||r||^2.
struct LayerShare {
  int64_t layer = 0;
  double share = 0;
};

/// The result for one request. A field is nullopt if the method has no such value.
struct RequestOutcome {
  int64_t steps = 0;                        ///< forward passes of its optimisation
  std::optional<double> initial_loss = {};  ///< total loss before the first step
  std::optional<double> final_loss = {};    ///< total loss at the last step
  std::optional<double> initial_norm = {};  ///< ||h0||
  std::optional<double> delta_norm = {};    ///< ||z - h0||
  std::vector<float> losses = {};           ///< total loss at each step, over the contexts that the step sees
  std::string skipped = {};                 ///< why the request was left out of the edit; empty: it was edited
  /// Share of z - h0 that all layers' changes together achieve at the last layer.
  std::optional<double> realised = {};
  std::vector<LayerShare> realised_by_layer = {};  ///< shares in the order of the layers
};

/// Requests whose keys are equal or nearly equal but whose values differ.
struct SharedKeys {
  std::string effect;                        ///< words that follow "requests a and b": "have the same key: ..."
  std::vector<std::vector<int64_t>> groups;  ///< requests that share a key
};

/// The value that an option with `auto` got.
struct ChosenOption {
  std::string option;
  int64_t layer = 0;
  double value = 0;

  bool operator==(const ChosenOption&) const = default;
};

struct EditOutcome {
  std::vector<RequestOutcome> requests;
  std::vector<ChosenOption> chosen;  ///< each option and layer once
  ValueBatching batching;
  /// The request of each column of every weight's low-rank deltas, deltas in the order of their application.
  std::vector<int64_t> columns;
  std::vector<SharedKeys> shared_keys;  ///< one for each effect
  std::vector<std::string> warnings;

  /// Records how the values of these requests were found; `places` are their places. If a request has several values,
  /// the one with the highest final loss counts.
  void note_values(std::span<const int64_t> places, const OptimizedValues& values);

  /// Adds groups to those with the same effect.
  void note_shared_keys(const std::string& effect, std::span<const std::vector<int64_t>> groups);
};

}  // namespace lancet
