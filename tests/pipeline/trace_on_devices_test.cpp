// Causal traces on fake devices and on ranks as threads equal one process's on the CPU.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>

#include "lancet/tracing/causal_trace.h"
#include "support/fake_device.h"
#include "support/thread_ranks.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::TinyModel;

/// Enough for several groups of facts, and short: each token of a fact is put back on its own.
std::vector<TracedFact> many_facts() {
  std::vector<TracedFact> facts;
  for (int64_t i = 0; i < 25; ++i) {
    TracedFact fact{{{1}, 2, 4 + i % 2}, 100 + i, i};
    for (int64_t t = 0; t < 8 + i / 4; ++t) fact.prompt.ids.push_back(5 + (37 * t + i) % 2000);
    facts.push_back(fact);
  }
  return facts;
}

constexpr int64_t kSamples = 9, kLayers = 4;

TEST(TracedFacts, AreSeveralGroups) {
  int64_t all = 0;
  for (const TracedFact& fact : many_facts()) all += (kSamples + 1) * static_cast<int64_t>(fact.prompt.ids.size());
  EXPECT_LT(kept_trace_tokens(many_facts(), kSamples), all);
}

std::vector<FactTrace> trace(const TinyModel& tiny, const std::vector<at::Device>& devices, Communicator& ranks) {
  const CausalLM model = tiny.load(at::kDouble, devices);
  TraceOptions options{.samples = kSamples, .noise = 2, .window = 3};
  options.kinds = {TraceKind::kAttention, TraceKind::kHidden, TraceKind::kMlp};
  return trace_facts(model, many_facts(), options, ranks);
}

double difference(const std::vector<FactTrace>& a, const std::vector<FactTrace>& b) {
  double worst = a.size() == b.size() ? 0 : 1;
  for (size_t f = 0; f < std::min(a.size(), b.size()); ++f) {
    worst = std::max({worst, std::abs(a[f].clean - b[f].clean), std::abs(a[f].corrupted - b[f].corrupted)});
    for (size_t k = 0; k < a[f].restored_TL.size(); ++k)
      worst = std::max(worst, (a[f].restored_TL[k] - b[f].restored_TL[k]).abs().max().item<double>());
  }
  return worst;
}

TEST(TraceOnFakeDevices, EqualsTheCpus) {
  const TinyModel tiny;
  testing::set_fake_device_count(testing::kMaxFakeDevices);
  const std::vector<FactTrace> cpu = trace(tiny, {Placement::host()}, alone());
  ASSERT_EQ(cpu.front().restored_TL.front().size(1), kLayers);
  for (const int count : {1, 2, 3})
    EXPECT_LE(difference(trace(tiny, testing::fake_devices(count), alone()), cpu), 1e-12);
  EXPECT_LE(difference(trace(tiny, {at::Device(at::kPrivateUse1, 0), Placement::host()}, alone()), cpu), 1e-12);
}

TEST(TraceOnRanks, EqualsOneProcesssBitByBit) {
  const TinyModel tiny;
  const std::vector<FactTrace> single = trace(tiny, {Placement::host()}, alone());
  for (const int64_t size : {2, 3, 5}) {
    std::vector<std::vector<FactTrace>> runs(static_cast<size_t>(size));
    testing::run_ranks(size, [&](Communicator& ranks) {
      runs[static_cast<size_t>(ranks.rank())] = trace(tiny, {Placement::host()}, ranks);
    });
    for (const std::vector<FactTrace>& run : runs) EXPECT_EQ(difference(run, single), 0) << size << " ranks";
  }
}

}  // namespace
}  // namespace lancet
