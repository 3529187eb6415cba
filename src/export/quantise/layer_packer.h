// A layer's matrices packed, and put into the model as readers of the output get them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lancet/checkpoint/checkpoint_export.h"
#include "lancet/quant/pack.h"
#include "layer_moments.h"

namespace lancet {

class LayerPacker {
 public:
  /// All outlive this. `covariance_weight`: alpha.
  LayerPacker(const ModelFiles& files, const PackingPlan& plan, double covariance_weight, CausalLM& model)
      : files_(files), plan_(plan), covariance_weight_(covariance_weight), model_(model) {}

  /// `moments` is used up; `keys` may be null: no edits, H = C. Weights of the layer that are packed are exchanged.
  void pack_layer(int64_t layer, LayerMoments& moments, const LayerKeys* keys);

  const std::vector<QuantisedMatrix>& losses() const { return losses_; }
  /// Returns for each tensor of the model that goes those that take its place; they borrow this object's and the
  /// files'.
  std::vector<TensorExchange> exchanges() const;

 private:
  /// What errors of one matrix are measured by; [in, in] and [in, n] f64.
  struct Scale {
    Tensor importance;
    Tensor keys;  ///< undefined: there are no edits
  };

  /// The matrix in full precision, [out, in] of f32 or f64, on its layer's device.
  Tensor read(const PlannedMatrix& matrix) const;
  Tensor packed_and_read(const PlannedMatrix& matrix, const Scale& scale);
  void put_into_model(int64_t layer, const std::map<std::string, Tensor>& read);

  const ModelFiles& files_;
  const PackingPlan& plan_;
  double covariance_weight_;
  CausalLM& model_;
  std::vector<QuantisedMatrix> losses_;
  std::map<std::string, NewlyPacked> packed_;  ///< parts on the host
};

}  // namespace lancet
