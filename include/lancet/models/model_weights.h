// A model's weights on their devices, in full precision or quantised. Defined in weight_loader.cpp.
#pragma once

#include <map>
#include <set>
#include <string>

#include "lancet/models/quantised_linear.h"
#include "lancet/models/weight_table.h"
#include "lancet/runtime/devices.h"

namespace lancet {

/// Returns the type of a weight in a model that runs in `run_type`. It is `run_type`, except that a router's correction
/// has at least f32, because small differences in it decide which experts are chosen.
at::ScalarType weight_type(WeightKind kind, at::ScalarType run_type);

/// Returns the device on which `placement` puts a weight.
at::Device weight_device(const Placement& placement, WeightId id);
/// Whether this rank holds the weight.
bool lies_here(const Placement& placement, WeightId id);

/// Weights by id. It holds each weight of this rank once; a tied head is not listed.
struct ModelWeights {
  std::map<WeightId, Tensor> full = {};  ///< weights of weight_type()
  std::map<WeightId, QuantisedLinear> quantised = {};
  std::set<WeightId> quantised_elsewhere = {};  ///< quantised weights on other ranks
  /// Formats of the quantised weights: a quantiser's name, or the method's name in config.json.
  std::set<std::string> formats = {};
};

}  // namespace lancet
