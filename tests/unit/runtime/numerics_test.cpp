#include "lancet/runtime/tensor.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include "support/tiny_model.h"

namespace lancet {
namespace {

/// Sets torch as another library of the process, or the environment, may have.
void allow_everything() {
  at::Context& torch = at::globalContext();
  torch.setAllowTF32CuBLAS(true);
  torch.setAllowBF16ReductionCuBLAS(true);
  torch.setAllowFP16ReductionCuBLAS(true);
  torch.setSDPUseCuDNN(true);
}

TEST(Numerics, TellsWhatTorchIsSetTo) {
  set_numerics();
  EXPECT_EQ(numerics(), Numerics{});
  at::Context& torch = at::globalContext();
  torch.setAllowTF32CuBLAS(true);
  EXPECT_EQ(numerics(), Numerics{.tf32 = true});
  set_numerics();
  torch.setAllowFP16ReductionCuBLAS(true);
  EXPECT_EQ(numerics(), Numerics{.reduced_sums = true});
  set_numerics();
  torch.setAllowBF16ReductionCuBLAS(true);
  EXPECT_EQ(numerics(), Numerics{.reduced_sums = true});
  set_numerics();
  torch.setSDPUseCuDNN(true);
  EXPECT_EQ(numerics(), Numerics{.cudnn_attention = true});
  set_numerics();
  EXPECT_EQ(numerics(), Numerics{});
}

TEST(Numerics, AreSetByEveryModel) {
  allow_everything();
  const testing::TinyModel tiny;
  tiny.load(at::kFloat);
  EXPECT_EQ(numerics(), Numerics{});
}

}  // namespace
}  // namespace lancet
