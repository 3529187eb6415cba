// What an edit made of its requests: the method's own account, before anything is measured. Defined in editor.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lancet/training/values.h"

namespace lancet {

/// Share of what one layer was asked for at one request's key that its change gives there: <Delta k, r> / ||r||^2.
struct LayerShare {
  int64_t layer = 0;
  double share = 0;
};

/// What happened to one request; nullopt: the method has no such thing.
struct RequestOutcome {
  int64_t steps = 0;                        ///< forward passes of its optimisation
  std::optional<double> initial_loss = {};  ///< total loss before
  std::optional<double> final_loss = {};    ///< total loss at the last step
  std::optional<double> initial_norm = {};  ///< ||h0||
  std::optional<double> delta_norm = {};    ///< ||z - h0||
  std::vector<float> losses = {};           ///< total loss at each step, over the contexts that the step sees
  std::string skipped = {};                 ///< why the request was left out of the edit; empty: it was not
  std::optional<double> realised = {};      ///< how much of z - h0 all layers' changes together give, at the last one
  std::vector<LayerShare> realised_by_layer = {};  ///< shares in the order of the layers
};

/// Requests that pull one key, or nearly one, to values of their own.
struct SharedKeys {
  std::string effect;                        ///< words that follow "requests a and b": "have the same key: ..."
  std::vector<std::vector<int64_t>> groups;  ///< requests that share a key
};

/// What an option that is `auto` stood for.
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
  /// The request of each column of every weight's low-rank deltas, one after another in the order of application.
  std::vector<int64_t> columns;
  std::vector<SharedKeys> shared_keys;  ///< one for each effect
  std::vector<std::string> warnings;

  /// Writes down how the values of these requests, by place, were found: of several of a request, the one whose loss
  /// ended highest.
  void note_values(std::span<const int64_t> places, const OptimizedValues& values);

  /// Adds to the groups of the same effect.
  void note_shared_keys(const std::string& effect, std::span<const std::vector<int64_t>> groups);
};

}  // namespace lancet
