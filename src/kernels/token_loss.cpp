#include "lancet/kernels/token_loss.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include "decoder_passes.h"
#include "device_launch.h"
#include "lancet/kernels/decoder_ops.h"

namespace lancet {
namespace {

/// Loss for kernels alone.
struct TokenLoss : torch::autograd::Function<TokenLoss> {
  /// The losses, and the negated log of the softmax's sum, which is the greatest log-probability.
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* context, const Tensor& logits_in,
                                                const Tensor& ids_in) {
    const Tensor logits = logits_in.contiguous(), ids = ids_in.contiguous();
    const on_device::LossParts parts = on_device::loss(logits, ids);
    context->save_for_backward({logits, ids, parts.greatest, parts.log_sum});
    context->mark_non_differentiable({parts.log_sum});
    return {parts.loss, parts.log_sum};
  }

  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                               const torch::autograd::tensor_list& grads) {
    const torch::autograd::tensor_list saved = context->get_saved_variables();
    const on_device::LossParts parts{{}, saved[2], saved[3]};
    return {on_device::loss_gradient(saved[0], saved[1], parts, grads[0].contiguous()), Tensor()};
  }
};

}  // namespace

TokenLosses token_losses(const Tensor& logits_NV, const Tensor& ids_N, LossExtra extra) {
  if (launcher_of(logits_NV) != nullptr) {
    const torch::autograd::variable_list all = TokenLoss::apply(logits_NV, ids_N);
    return {all[0], extra == LossExtra::kGreatest ? all[1].neg() : Tensor()};
  }
  const Tensor log_probs_NV = torch::log_softmax(logits_NV.to(precise_type(logits_NV)), -1);
  return {-log_probs_NV.gather(1, ids_N.unsqueeze(1)).squeeze(1),
          extra == LossExtra::kGreatest ? log_probs_NV.detach().amax(1) : Tensor()};
}

}  // namespace lancet
