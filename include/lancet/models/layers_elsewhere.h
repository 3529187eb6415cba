// What a model asks of whoever has those of its layers that are not here.
#pragma once

#include <cstdint>
#include <memory>

#include "lancet/models/hooks.h"
#include "lancet/models/layer_range.h"
#include "lancet/models/sequence_info.h"
#include "lancet/models/weight_table.h"

namespace lancet {

/// A pass's part that one other rank computes.
struct PassElsewhere {
  int64_t rank = 0;
  LayerRange layers;
  bool gives_outputs = false;  ///< the pass ends with it: of the last layer only the sequence's outputs are wanted
  at::Device device;           ///< place of what comes of it
};

/// What the rank holds of a sequence until this goes away.
class HeldPass {
 public:
  virtual ~HeldPass() = default;
};

class LayersElsewhere {
 public:
  virtual ~LayersElsewhere() = default;

  /// Has the rank hold what a pass needs of the sequence, as CausalLM::prepare_pass() does.
  virtual std::shared_ptr<const HeldPass> hold(const SequenceInfo& sequence, const PassElsewhere& pass) = 0;
  /// CausalLM::run_layers() there, whose hooks run here. `held`: of this sequence and pass, or null.
  virtual Tensor run(const Tensor& h_BTD, const SequenceInfo& sequence, const PassElsewhere& pass, const HookSet& hooks,
                     const HeldPass* held) = 0;

  /// A copy on `device`, made at the first call.
  virtual const Tensor& weight(int64_t rank, WeightId id, at::Device device) = 0;
  /// Changes the weight and its copy.
  virtual void set_weight(int64_t rank, WeightId id, Tensor value) = 0;
  virtual bool is_finite(int64_t rank, WeightId id) = 0;
};

}  // namespace lancet
