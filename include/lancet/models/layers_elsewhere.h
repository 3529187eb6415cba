// The interface through which a model uses layers that other ranks hold.
#pragma once

#include <cstdint>
#include <memory>

#include "lancet/models/hooks.h"
#include "lancet/models/layer_range.h"
#include "lancet/models/sequence_info.h"
#include "lancet/models/weight_table.h"

namespace lancet {

/// The part of a pass that one other rank computes.
struct PassElsewhere {
  int64_t rank = 0;
  LayerRange layers;
  bool gives_outputs = false;  ///< the pass ends there: only the sequence's outputs of the last layer are needed
  at::Device device;           ///< device on which this rank receives the result
};

/// Keeps the inputs of a sequence on the other rank until this object is destroyed.
class HeldPass {
 public:
  virtual ~HeldPass() = default;
};

class LayersElsewhere {
 public:
  virtual ~LayersElsewhere() = default;

  /// Makes the rank hold what a pass needs of the sequence, as CausalLM::prepare_pass() does.
  virtual std::shared_ptr<const HeldPass> hold(const SequenceInfo& sequence, const PassElsewhere& pass) = 0;
  /// Calls CausalLM::run_layers() on the other rank; the hooks run on this rank. `held`: of this sequence and pass, or
  /// null.
  virtual Tensor run(const Tensor& h_BTD, const SequenceInfo& sequence, const PassElsewhere& pass, const HookSet& hooks,
                     const HeldPass* held) = 0;

  /// Returns a copy of the weight on `device`. The first call makes it.
  virtual const Tensor& weight(int64_t rank, WeightId id, at::Device device) = 0;
  /// Changes the weight and its copy.
  virtual void set_weight(int64_t rank, WeightId id, Tensor value) = 0;
  virtual bool is_finite(int64_t rank, WeightId id) = 0;
};

}  // namespace lancet
