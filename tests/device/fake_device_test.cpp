// The test bed itself: devices, memory and counts.
#include "support/fake_device.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fake_tensors.h"

namespace lancet::testing {
namespace {

TEST(FakeDevice, GoesThereAndBack) {
  const Tensor x = numbers({4, 5});
  const Tensor there = x.to(fake(1));
  EXPECT_EQ(there.device(), fake(1));
  EXPECT_EQ(there.device().str(), "fake:1");
  EXPECT_TRUE(torch::equal(there.to(fake(0)).to(kHost), x));
  EXPECT_EQ(there.sum().item<float>(), x.sum().item<float>());
}

TEST(FakeDevice, MakesTensorsOnTheDeviceThatIsNamed) {
  const auto on = torch::device(fake(3));
  for (const Tensor& tensor :
       {torch::ones({3}, on), torch::zeros({3}, on), torch::empty({3}, on), torch::full({3}, 2.0, on),
        torch::arange(5, on), torch::eye(3, on), torch::randn({3}, on), torch::tensor({1, 2}, on),
        torch::zeros_like(torch::ones({3}, on)), torch::ones({3}, on).new_zeros({2})})
    EXPECT_EQ(tensor.device(), fake(3));
}

TEST(FakeDevice, RefusesADeviceBeyondTheCount) {
  set_fake_device_count(2);
  EXPECT_EQ(torch::ones({3}).to(fake(1)).device(), fake(1));
  EXPECT_NE(refusal([] { torch::ones({3}).to(fake(2)); }).find("fake device 2 of 2"), std::string::npos);
  set_fake_device_count(kMaxFakeDevices);
  EXPECT_EQ(torch::ones({3}).to(fake(2)).device(), fake(2));
  EXPECT_FALSE(refusal([] { set_fake_device_count(kMaxFakeDevices + 1); }).empty());
}

TEST(FakeDevice, RefusesToMixDevicesInCudasWords) {
  const std::string message = refusal([] {
    torch::mm(torch::ones({3, 3}).to(fake(0)), torch::ones({3, 3}).to(fake(1)));
  });
  EXPECT_EQ(
      message.find("Expected all tensors to be on the same device, but found at least two devices, fake:0 and fake:1! "
                   "(when checking argument for argument mat2 in method aten::mm"),
      0U)
      << message;
}

TEST(FakeDevice, RefusesToMixDevicesInEveryOperation) {
  const Tensor zero = torch::ones({3, 3}).to(fake(0));
  const Tensor one = torch::ones({3, 3}).to(fake(1));
  const Tensor ids = torch::zeros({1}, at::kLong);
  const std::vector<std::pair<const char*, std::function<void()>>> mixtures{
      {"add", [&] { zero + one; }},
      {"add cpu",
       [&] {
         zero + torch::ones({3, 3});
       }},
      {"add to cpu",
       [&] {
         torch::ones({3, 3}) + zero;
       }},
      {"add_", [&] { zero.clone().add_(one); }},
      {"linear", [&] { at::linear(zero, one); }},
      {"linear with a bias elsewhere", [&] { at::linear(zero, zero, torch::ones({3}).to(fake(1))); }},
      {"bmm", [&] { torch::bmm(zero.unsqueeze(0), one.unsqueeze(0)); }},
      {"cat",
       [&] {
         torch::cat({zero, one});
       }},
      {"stack",
       [&] {
         torch::stack({zero, one});
       }},
      {"where", [&] { torch::where(zero > 0, zero, one); }},
      {"index on another device", [&] { zero.index({ids.to(fake(1))}); }},
      {"index_select", [&] { zero.index_select(0, ids.to(fake(1))); }},
      {"index_select with a cpu index", [&] { zero.index_select(0, ids); }},
      {"index_copy_", [&] { zero.clone().index_copy_(0, ids.to(fake(0)), one.slice(0, 0, 1)); }},
      {"gather",
       [&] {
         zero.gather(1, torch::zeros({3, 1}, at::kLong));
       }},
      {"embedding with cpu ids", [&] { at::embedding(zero, ids); }},
      {"sdpa",
       [&] {
         at::scaled_dot_product_attention(zero.view({1, 1, 3, 3}), one.view({1, 1, 3, 3}), zero.view({1, 1, 3, 3}));
       }},
      {"solve", [&] { at::linalg_solve_triangular(zero, one, /*upper=*/false); }},
      {"mm out=",
       [&] {
         Tensor out = torch::empty({3, 3}, torch::device(fake(1)));
         at::mm_out(out, zero, zero);
       }},
  };
  for (const auto& [name, act] : mixtures)
    EXPECT_NE(refusal(act).find("same device"), std::string::npos) << name << ": " << refusal(act);
}

TEST(FakeDevice, MixesWithNumbersFromTheCpu) {
  const Tensor x = numbers({3}).to(fake(1));
  EXPECT_EQ((x * torch::tensor(2.0F)).device(), fake(1));
  EXPECT_EQ((x + 1).device(), fake(1));
  EXPECT_TRUE(torch::equal((x * torch::tensor(2.0F)).to(kHost), x.to(kHost) * 2));
}

TEST(FakeDevice, IndexesWithIndicesFromTheCpu) {
  const Tensor x = numbers({4, 4});
  Tensor y = x.to(fake(1));
  const Tensor ids = torch::tensor({0, 2});
  EXPECT_TRUE(torch::equal(y.index({ids}).to(kHost), x.index({ids})));
  EXPECT_EQ(y.index({ids}).device(), fake(1));
  y.index_put_({ids}, torch::full({4}, 5.0F, torch::device(fake(1))));
  EXPECT_EQ(y[2][3].item<float>(), 5.0F);
}

TEST(FakeDevice, SharesMemoryBetweenATensorAndItsViews) {
  const Tensor x = torch::arange(24, at::kFloat).view({2, 3, 4}).to(fake(1));
  const Tensor view = x.transpose(1, 2).select(0, 1).slice(0, 1, 3);
  EXPECT_EQ(view.device(), fake(1));
  view.fill_(7);
  EXPECT_EQ(x[1][0][1].item<float>(), 7.0F);
  EXPECT_EQ(x[0][0][1].item<float>(), 1.0F);
  const Tensor same = x.view({6, 4}).unsqueeze(0).squeeze(0).narrow(0, 1, 2);
  EXPECT_EQ(same.data_ptr<float>(), x.data_ptr<float>() + 4);
  EXPECT_TRUE(
      torch::equal(x.permute({2, 0, 1}).reshape({4, 6}).to(kHost), x.to(kHost).permute({2, 0, 1}).reshape({4, 6})));
  EXPECT_EQ(x.unbind(0)[1].data_ptr<float>(), x.data_ptr<float>() + 12);
  EXPECT_EQ(x.flatten(0, 1).unflatten(0, {2, 3}).data_ptr<float>(), x.data_ptr<float>());
  EXPECT_EQ(x.unsqueeze(0).expand({3, 2, 3, 4}).strides()[0], 0);
}

TEST(FakeDevice, WritesInPlace) {
  Tensor x = torch::zeros({4, 4}, torch::device(fake(1)));
  const float* data = x.data_ptr<float>();
  x.narrow(0, 1, 2).copy_(torch::ones({2, 4}));
  x.mul_(3).add_(1).sub_(torch::ones({4}, torch::device(fake(1))));
  x.select(0, 0).index_fill_(0, torch::tensor({1}).to(fake(1)), 9);
  EXPECT_EQ(x.data_ptr<float>(), data);
  EXPECT_EQ(x.sum().item<float>(), 2 * 4 * 3 + 9.0F);
  EXPECT_EQ(x.device(), fake(1));
}

TEST(FakeDevice, WritesWhereOutSays) {
  const Tensor a = numbers({3, 4});
  const Tensor b = numbers({4, 5}, 2);
  Tensor out = torch::empty({3, 5}, torch::device(fake(1)));
  const float* data = out.data_ptr<float>();
  at::mm_out(out, a.to(fake(1)), b.to(fake(1)));
  EXPECT_EQ(out.data_ptr<float>(), data);
  EXPECT_TRUE(torch::equal(out.to(kHost), a.mm(b)));
  Tensor empty = torch::empty({0}, torch::device(fake(1)));
  at::mm_out(empty, a.to(fake(1)), b.to(fake(1)));
  EXPECT_TRUE(torch::equal(empty.to(kHost), a.mm(b)));
  Tensor into_nothing = torch::empty({0}, torch::device(fake(1)));
  at::mm_out(into_nothing, a.slice(0, 0, 0).to(fake(1)), b.to(fake(1)));
  EXPECT_EQ(into_nothing.sizes(), (std::vector<int64_t>{0, 5}));
}

TEST(FakeDevice, CountsLiveAndPeakBytes) {
  const int64_t before = fake_bytes_live(5);
  reset_fake_peaks();
  {
    const Tensor x = torch::empty({1000}, torch::device(fake(5)));
    EXPECT_EQ(fake_bytes_live(5), before + 4000);
    const Tensor view = x.view({10, 100});
    EXPECT_EQ(fake_bytes_live(5), before + 4000);
    {
      const Tensor y = x.to(at::kDouble);
      EXPECT_EQ(fake_bytes_live(5), before + 12000);
    }
    EXPECT_EQ(fake_bytes_live(5), before + 4000);
    EXPECT_EQ(fake_bytes_peak(5), before + 12000);
    EXPECT_EQ(fake_bytes_live(6), fake_bytes_peak(6));
    reset_fake_peaks();
    EXPECT_EQ(fake_bytes_peak(5), before + 4000);
  }
  EXPECT_EQ(fake_bytes_live(5), before);
}

TEST(FakeDevice, CountsBytesWhereTheTensorLies) {
  const int64_t before = fake_bytes_live(6);
  Tensor empty = torch::empty({0}, torch::device(fake(6)));
  const c10::DeviceGuard guard(fake(2));
  at::mm_out(empty, torch::ones({4, 4}).to(fake(6)), torch::ones({4, 4}).to(fake(6)));
  EXPECT_EQ(fake_bytes_live(6), before + 64);
  const Tensor made = torch::ones({2}, torch::device(at::Device(at::kPrivateUse1)));
  EXPECT_EQ(made.device(), fake(2));
}

TEST(FakeDevice, CountsCopiesBetweenDevices) {
  const Tensor x = torch::ones({3});
  reset_fake_copies();
  const Tensor zero = x.to(fake(0));
  EXPECT_EQ(fake_copies_across(), 1);
  const Tensor one = zero.to(fake(1));
  EXPECT_EQ(fake_copies_across(), 2);
  EXPECT_EQ(one.to(kHost).numel(), 3);
  EXPECT_EQ(fake_copies_across(), 3);
  const Tensor same = (one.clone() + one.to(at::kDouble) * 2).contiguous();
  EXPECT_EQ(one.to(fake(1)).numel(), same.numel());
  EXPECT_EQ(fake_copies_across(), 3);
  reset_fake_copies();
  EXPECT_EQ(fake_copies_across(), 0);
}

}  // namespace
}  // namespace lancet::testing
