#include "mlp.h"

#include <torch/types.h>

#include "lancet/kernels/decoder_ops.h"

namespace lancet {
namespace {

Tensor activated(Activation activation, const Tensor& x) {
  switch (activation) {
    case Activation::kSilu:
      return at::silu(x);
    case Activation::kGelu:
      return at::gelu(x);
    case Activation::kGeluTanh:
      return at::gelu(x, "tanh");
  }
  return x;
}

}  // namespace

Tensor mlp_key(const ModelConfig& config, const Tensor& gate, const Tensor& up) {
  if (!config.gated_mlp) return activated(config.activation, up);
  if (config.activation == Activation::kSilu) return silu_times(gate, up);
  return activated(config.activation, gate) * up;
}

}  // namespace lancet
