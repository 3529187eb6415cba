#include "on_device.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <cstdlib>
#include <future>
#include <iostream>
#include <sstream>
#include <thread>

#include "lancet/runtime/memory.h"
#include "lancet/runtime/tensor.h"
#include "tiny_model.h"

namespace lancet::testing {
namespace {

constexpr const char* kNone = "none";

std::vector<Tensor> with_gradients(const std::function<Tensor(const std::vector<Tensor>&)>& f,
                                   const std::vector<Tensor>& inputs) {
  std::vector<Tensor> leaves;
  for (const Tensor& input : inputs) leaves.push_back(input.detach().clone().requires_grad_(true));
  const Tensor y = f(leaves);
  std::vector<Tensor> all = torch::autograd::grad({y}, leaves, {numbers(y.sizes(), 5).to(y.options())});
  all.insert(all.begin(), y.detach());
  return all;
}

}  // namespace

std::vector<std::string> device_names() {
  std::vector<std::string> names;
  if (const char* given = std::getenv("LANCET_GPU_DEVICES")) {
    std::istringstream list(given);
    for (std::string name; std::getline(list, name, ',');)
      if (!name.empty()) names.push_back(name);
  } else {
    for (const at::Device device : accelerators()) names.push_back(device.str());
  }
  if (names.empty()) names.emplace_back(kNone);
  return names;
}

std::string device_label(const ::testing::TestParamInfo<std::string>& info) {
  std::string label = info.param;
  for (char& c : label)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return label;
}

void OnDevice::SetUp() {
  set_numerics();
  if (GetParam() == kNone)
    GTEST_SKIP() << "no accelerator that torch can use; LANCET_GPU_DEVICES=cpu runs the tests on the host";
}

Tensor numbers(at::IntArrayRef shape, uint64_t seed) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return torch::randn(shape, generator, torch::kDouble);
}

void expect_as_on_the_host(at::Device device, const std::function<Tensor(const std::vector<Tensor>&)>& ours,
                           const std::vector<Tensor>& inputs) {
  for (const Precision& precision : kPrecisions) {
    std::vector<Tensor> typed, exact;
    for (const Tensor& input : inputs) {
      typed.push_back(input.to(device, precision.type));
      exact.push_back(typed.back().to(Placement::host(), at::kDouble));
    }
    const std::vector<Tensor> got = with_gradients(ours, typed), expected = with_gradients(ours, exact);
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].device(), typed[0].device());
      EXPECT_EQ(got[i].scalar_type(), precision.type);
      EXPECT_LE(nmse(got[i], expected[i]), precision.most_nmse) << at::toString(precision.type) << ", result " << i;
    }
  }
}

void run_within(std::chrono::seconds limit, const std::string& words, const std::function<void()>& work) {
  std::packaged_task<void()> task(work);
  std::future<void> done = task.get_future();
  std::thread thread(std::move(task));
  if (done.wait_for(limit) != std::future_status::ready) {
    std::cerr << words << ": expected to end within " << limit.count() << " s\n";
    std::abort();
  }
  thread.join();
  done.get();
}

}  // namespace lancet::testing
