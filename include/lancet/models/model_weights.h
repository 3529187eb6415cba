// A model's weights on their devices, in full precision or quantised. Defined in weight_loader.cpp.
#pragma once

#include <map>
#include <set>
#include <string>

#include "lancet/models/quantised_linear.h"
#include "lancet/models/weight_table.h"
#include "lancet/runtime/devices.h"

namespace lancet {

/// The type that a weight has in a model that runs in `run_type`: that one, but a router's correction keeps at least
/// f32, since experts are chosen by small differences of it.
at::ScalarType weight_type(WeightKind kind, at::ScalarType run_type);

/// Returns the device that `placement` has a weight on.
at::Device weight_device(const Placement& placement, WeightId id);
/// Whether this rank holds the weight.
bool lies_here(const Placement& placement, WeightId id);

/// Weights by id: each that lies here once, but for a tied head, which is not listed.
struct ModelWeights {
  std::map<WeightId, Tensor> full = {};  ///< weights of weight_type()
  std::map<WeightId, QuantisedLinear> quantised = {};
  std::set<WeightId> quantised_elsewhere = {};  ///< those of other ranks that are
  std::set<std::string> formats = {};  ///< formats of those: a quantiser's name, or what config.json calls its method
};

}  // namespace lancet
