#include "lancet/kernels/linear.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>
#include <algorithm>
#include <functional>
#include <optional>

#include "decoder_passes.h"
#include "device_launch.h"
#include "lancet/kernels/decoder_ops.h"
#include "lancet/kernels/few_rows.h"
#include "lancet/runtime/devices.h"

namespace lancet {
namespace {

constexpr int64_t kBlockNumbers = int64_t{1} << 22;  ///< numbers of a matrix that are widened at once
constexpr int64_t kBlockRows = 1024;                 ///< rows of activations that are processed at once

/// Whether torch, with oneDNN, has products of such numbers on this processor.
bool has_products(const char* question) {
  const auto asked = c10::Dispatcher::singleton().findSchema({question, ""});
  return asked && asked->typed<bool()>().call();  // the operator is missing in a torch without oneDNN
}

bool is_widened(at::ScalarType dtype, at::Device device) {
  static const bool kHasBf16 = has_products("mkldnn::_is_mkldnn_bf16_supported");
  static const bool kHasF16 = has_products("mkldnn::_is_mkldnn_fp16_supported");
  if (device != Placement::host()) return false;
  return (dtype == at::kBFloat16 && !kHasBf16) || (dtype == at::kHalf && !kHasF16);
}

bool is_widened(const Tensor& x) { return is_widened(x.scalar_type(), x.device()); }

/// Calls work(begin, count) for parts of at most `part` that cover `size`.
void for_each_part(int64_t size, int64_t part, const std::function<void(int64_t begin, int64_t count)>& work) {
  for (int64_t begin = 0; begin < size; begin += part) work(begin, std::min(part, size - begin));
}

int64_t block_rows(int64_t inputs) { return std::max<int64_t>(1, kBlockNumbers / std::max<int64_t>(1, inputs)); }

int64_t block_rows(const Tensor& weight_OI) { return block_rows(weight_OI.size(1)); }

constexpr int64_t kWideBytes = sizeof(float);

Tensor with_last_size(const Tensor& like, int64_t size) {
  std::vector<int64_t> sizes = like.sizes().vec();
  sizes.back() = size;
  return at::empty(sizes, like.options());
}

struct WidenedLinear : torch::autograd::Function<WidenedLinear> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x, const Tensor& weight_OI,
                        const std::optional<Tensor>& bias_O) {
    context->save_for_backward({weight_OI});
    return widened_linear_of(x, weight_OI, bias_O.value_or(Tensor()));
  }

  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                               const torch::autograd::tensor_list& grads) {
    return {widened_linear_gradient(grads[0], context->get_saved_variables()[0]), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor linear_of(const Tensor& x, const Tensor& weight_OI, const Tensor& bias_O) {
  const bool matrix_learns = weight_OI.requires_grad() || (bias_O.defined() && bias_O.requires_grad());
  if (!is_widened(x) || (matrix_learns && at::GradMode::is_enabled())) return at::linear(x, weight_OI, bias_O);
  return WidenedLinear::apply(x, weight_OI, bias_O.defined() ? std::optional(bias_O) : std::nullopt);
}

Tensor linear_gradient(const Tensor& y, const Tensor& weight_OI) {
  return is_widened(y) ? widened_linear_gradient(y, weight_OI) : at::matmul(y, weight_OI);
}

Tensor widened_linear_of(const Tensor& x, const Tensor& weight_OI, const Tensor& bias_O) {
  if (weight_OI.scalar_type() == at::kBFloat16 && weight_OI.is_contiguous() && are_few_rows(x))
    return few_rows_linear(x, weight_OI, bias_O);
  Tensor y = with_last_size(x, weight_OI.size(0));
  const Tensor x_NI = x.reshape({-1, x.size(-1)}), y_NO = y.view({-1, y.size(-1)});
  for_each_part(x_NI.size(0), kBlockRows, [&](int64_t row, int64_t n_rows) {
    const Tensor wide_RI = x_NI.narrow(0, row, n_rows).to(at::kFloat);
    for_each_part(weight_OI.size(0), block_rows(weight_OI), [&](int64_t out, int64_t n_out) {
      const Tensor wide_PI = weight_OI.narrow(0, out, n_out).to(at::kFloat);
      const Tensor wide_P = bias_O.defined() ? bias_O.narrow(0, out, n_out).to(at::kFloat) : Tensor();
      y_NO.narrow(0, row, n_rows).narrow(1, out, n_out).copy_(at::linear(wide_RI, wide_PI, wide_P));
    });
  });
  return y;
}

Tensor widened_linear_gradient(const Tensor& y, const Tensor& weight_OI) {
  Tensor x = with_last_size(y, weight_OI.size(1));
  const Tensor y_NO = y.reshape({-1, y.size(-1)}), x_NI = x.view({-1, x.size(-1)});
  for_each_part(y_NO.size(0), kBlockRows, [&](int64_t row, int64_t n_rows) {
    const Tensor wide_RO = y_NO.narrow(0, row, n_rows).to(at::kFloat);
    Tensor sum_RI = at::zeros({n_rows, weight_OI.size(1)}, wide_RO.options());
    for_each_part(weight_OI.size(0), block_rows(weight_OI), [&](int64_t out, int64_t n_out) {
      sum_RI.addmm_(wide_RO.narrow(1, out, n_out), weight_OI.narrow(0, out, n_out).to(at::kFloat));
    });
    x_NI.narrow(0, row, n_rows).copy_(sum_RI);
  });
  return x;
}

int64_t widened_scratch_bytes(const LinearSize& size) {
  const int64_t rows = std::min(size.rows, kBlockRows), outputs = std::min(size.outputs, block_rows(size.inputs));
  if (rows == 0) return 0;
  return kWideBytes * (outputs * (size.inputs + 1) + rows * (size.inputs + outputs));  // 1: the bias
}

int64_t widened_gradient_scratch_bytes(const LinearSize& size) {
  const int64_t rows = std::min(size.rows, kBlockRows), outputs = std::min(size.outputs, block_rows(size.inputs));
  if (rows == 0) return 0;
  return kWideBytes * (outputs * size.inputs + rows * (size.inputs + size.outputs));
}

int64_t linear_scratch_bytes(const LinearSize& size, at::ScalarType dtype, at::Device device) {
  return is_widened(dtype, device) ? widened_scratch_bytes(size) : 0;
}

int64_t linear_gradient_scratch_bytes(const LinearSize& size, at::ScalarType dtype, at::Device device) {
  return is_widened(dtype, device) ? widened_gradient_scratch_bytes(size) : 0;
}

namespace {

/// The loss by our own kernels.
struct TokenLoss : torch::autograd::Function<TokenLoss> {
  /// Returns the losses and log_sum, whose negative is the log-probability of the most probable token.
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
