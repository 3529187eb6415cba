#include "lancet/runtime/tensor.h"

#include <ATen/Context.h>
#include <torch/types.h>
#include <stdexcept>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/runtime/devices.h"
#include "lancet/runtime/send.h"

namespace lancet {
namespace {

constexpr std::pair<DType, at::ScalarType> kTypes[] = {
    {DType::kBool, at::kBool},
    {DType::kU8, at::kByte},
    {DType::kI8, at::kChar},
    {DType::kI16, at::kShort},
    {DType::kF16, at::kHalf},
    {DType::kBF16, at::kBFloat16},
    {DType::kI32, at::kInt},
    {DType::kF32, at::kFloat},
    {DType::kI64, at::kLong},
    {DType::kF64, at::kDouble},
    {DType::kF8E4M3, at::kFloat8_e4m3fn},
};

}  // namespace

at::ScalarType to_scalar_type(DType dtype) {
  for (const auto& [stored, type] : kTypes)
    if (stored == dtype) return type;
  throw CheckpointError(cat("stored type ", dtype_name(dtype),
                            " cannot be used as a weight: expected BF16, F16, F32 or F64. ",
                            "Convert the checkpoint to bf16 first (load and save it with transformers)"));
}

Tensor to_index(const std::vector<int64_t>& positions, at::Device device) {
  return sent_to(device, torch::tensor(positions, torch::kLong));
}

Tensor sent_to(at::Device device, const Tensor& values) {
  if (device == Placement::host()) return values;
  const Tensor staged = Placement::staging_buffer(static_cast<int64_t>(values.nbytes()), device)
                            .view(values.scalar_type())
                            .view(values.sizes())
                            .copy_(values);
  return staged.to(device, /*non_blocking=*/true);  // torch keeps page-locked memory until the copy is done
}

std::vector<double> to_doubles(const Tensor& values) {
  const Tensor host = values.detach().to(Placement::host(), torch::kDouble).contiguous();
  return {host.const_data_ptr<double>(), host.const_data_ptr<double>() + host.numel()};
}

DType to_dtype(at::ScalarType type) {
  for (const auto& [stored, candidate] : kTypes)
    if (candidate == type) return stored;
  throw std::logic_error(cat("no safetensors type for ", at::toString(type)));
}

Numerics numerics() {
  const at::Context& torch = at::globalContext();
  const auto is_reduced = [](at::CuBLASReductionOption option) {
    return option == at::CuBLASReductionOption::AllowReducedPrecisionWithSplitK;
  };
  return {.tf32 = torch.allowTF32CuBLAS(),
          .reduced_sums = is_reduced(torch.allowBF16ReductionCuBLAS()) ||
                          is_reduced(torch.allowFP16ReductionCuBLAS()) || torch.allowFP16AccumulationCuBLAS() ||
                          torch.allowFP16BF16ReductionMathSDP(),
          .cudnn_attention = torch.userEnabledCuDNNSDP()};
}

std::map<std::string, bool> named(const Numerics& numerics) {
  return {
      {"tf32", numerics.tf32}, {"reduced_sums", numerics.reduced_sums}, {"cudnn_attention", numerics.cudnn_attention}};
}

void set_numerics() {
  // set only once, because computing threads read these switches without a lock
  if (numerics() == Numerics{}) return;
  at::Context& torch = at::globalContext();
  torch.setAllowTF32CuBLAS(false);
  torch.setAllowBF16ReductionCuBLAS(/*allow_reduced_precision=*/false);
  torch.setAllowFP16ReductionCuBLAS(/*allow_reduced_precision=*/false);
  torch.setAllowFP16AccumulationCuBLAS(false);
  torch.setAllowFP16BF16ReductionMathSDP(false);
  torch.setSDPUseCuDNN(false);
}

}  // namespace lancet
