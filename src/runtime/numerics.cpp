#include "lancet/runtime/numerics.h"

#include <ATen/Context.h>

namespace lancet {

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
  // set once: threads that compute read these switches without a lock
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
