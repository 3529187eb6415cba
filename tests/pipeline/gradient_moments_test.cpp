// Second moments of gradients over several ranks, and by a model on several devices.
#include <gtest/gtest.h>
#include <torch/types.h>

#include "lancet/statistics/gradient_moments.h"
#include "support/edit_run.h"
#include "support/edit_setup.h"
#include "support/fake_device.h"
#include "support/thread_ranks.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::nmse;
using testing::TinyModel;

TEST(GradientMoments, AreThoseOfOneProcessOnRanksAndDevices) {
  const TinyModel tiny;
  const testing::TempDir folder;
  StatisticsOptions options;
  options.corpus = testing::write_corpus(folder.path(), 300);
  options.tokens = 1500;
  const CorpusTokens corpus = read_corpus(*tiny.tokenizer, options, tiny.config);
  const std::vector<int64_t> layers{0, 2};
  const auto collect = [&](const CausalLM& model, Communicator& communicator) {
    return collect_gradient_moments(model, corpus, layers, communicator, {.chunk_tokens = 128});
  };
  const std::vector<Covariance> single = collect(tiny.load(), alone());
  testing::run_ranks(2, [&](Communicator& communicator) {
    const std::vector<Covariance> shared = collect(tiny.load(), communicator);
    for (size_t i = 0; i < layers.size(); ++i) {
      EXPECT_EQ(shared[i].tokens, single[i].tokens);
      EXPECT_LE(nmse(shared[i].moment_FF, single[i].moment_FF), 1e-26) << communicator.rank();
    }
  });
  testing::set_fake_device_count(3);
  for (const SolveOn solve_on : {SolveOn::kDevice, SolveOn::kHost}) {
    const CausalLM split = tiny.load(at::kDouble, testing::fake_devices(0, 3), {}, solve_on);
    const std::vector<Covariance> moments = collect(split, alone());
    for (size_t i = 0; i < layers.size(); ++i) {
      EXPECT_EQ(moments[i].moment_FF.device(), split.placement().solve_device(layers[i]));
      EXPECT_LE(nmse(moments[i].moment_FF.to(Placement::host()), single[i].moment_FF), 1e-26);
    }
  }
}

}  // namespace
}  // namespace lancet
