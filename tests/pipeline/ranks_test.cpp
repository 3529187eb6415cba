// Does the same work by one rank and by several: whole pieces that the job fixes, gathered by their index.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <set>
#include <stdexcept>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/editing/editor.h"
#include "lancet/eval/scoring.h"
#include "lancet/statistics/self_corpus.h"
#include "lancet/statistics/statistics_store.h"
#include "lancet/training/activations.h"
#include "lancet/training/values.h"
#include "support/edit_run.h"
#include "support/edit_setup.h"
#include "support/fake_device.h"
#include "support/thread_ranks.h"

namespace lancet {
namespace {

using testing::EditRun;
using testing::nmse;
using testing::run_edit;
using testing::run_ranks;
using testing::TempDir;
using testing::TinyModel;

bool same_bits(const EditRun& a, const EditRun& b) {
  for (size_t i = 0; i < a.weights.size(); ++i)
    if (!a.weights[i].second.equal(b.weights[i].second)) return false;
  return a.weights.size() == b.weights.size();
}

void expect_equal(const EditRun& run, const EditRun& single) {
  ASSERT_EQ(run.covariances.size(), single.covariances.size());
  for (size_t i = 0; i < single.covariances.size(); ++i) {
    const Tensor& expected = single.covariances[i].moment_FF;
    EXPECT_EQ(run.covariances[i].tokens, single.covariances[i].tokens);
    EXPECT_LE((run.covariances[i].moment_FF - expected).abs().max().item<double>(),
              1e-12 * expected.abs().max().item<double>());
  }
  ASSERT_EQ(run.deltas.size(), 3u);
  for (size_t i = 0; i < single.deltas.size(); ++i)
    EXPECT_LE(nmse(run.deltas[i].second, single.deltas[i].second), 1e-20);
  EXPECT_LE(nmse(run.logits, single.logits), 1e-24);
  EXPECT_EQ(run.generated, single.generated);
  EXPECT_EQ(run.continuations, single.continuations);
  for (const char* metric : {"efficacy_argmax", "efficacy_prob"}) {
    EXPECT_EQ(run.metrics.at(metric).sum, single.metrics.at(metric).sum);
    EXPECT_EQ(run.metrics.at(metric).count, single.metrics.at(metric).count);
  }
}

class OnRanks : public ::testing::TestWithParam<int> {};

TEST_P(OnRanks, AnEditEqualsOneProcesss) {
  const TinyModel tiny;
  const EditRun single = run_edit(tiny, {Placement::host()}, alone());
  std::vector<EditRun> runs(static_cast<size_t>(GetParam()));
  run_ranks(GetParam(), [&](Communicator& communicator) {
    runs[static_cast<size_t>(communicator.rank())] = run_edit(tiny, {Placement::host()}, communicator);
  });
  expect_equal(runs.front(), single);
  for (const EditRun& run : runs) EXPECT_TRUE(same_bits(run, runs.front())) << "replicas have grown apart";
}

INSTANTIATE_TEST_SUITE_P(Counts, OnRanks, ::testing::Values(1, 2, 3, 4));

TEST(Ranks, WithSeveralDevicesEachDoTheSameEdit) {
  const TinyModel tiny;
  testing::set_fake_device_count(testing::kMaxFakeDevices);
  const EditRun single = run_edit(tiny, {Placement::host()}, alone());
  std::vector<EditRun> runs(2);
  run_ranks(2, [&](Communicator& communicator) {
    const int rank = static_cast<int>(communicator.rank());
    runs[static_cast<size_t>(rank)] = run_edit(tiny, testing::fake_devices(3 * rank, 3), communicator);
  });
  expect_equal(runs.front(), single);
  EXPECT_TRUE(same_bits(runs[0], runs[1]));
}

/// Prompts of 200 tokens: one forward pass takes 40 of them.
std::vector<LocatedPrompt> long_prompts(int64_t count) {
  std::vector<LocatedPrompt> prompts(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t t = 0; t < 200 - i % 7; ++t)
      prompts[static_cast<size_t>(i)].ids.push_back(static_cast<TokenId>(1 + (i * 31 + t * t) % 4000));
    prompts[static_cast<size_t>(i)].lookup = 190 + i % 3;
  }
  return prompts;
}

TEST(Ranks, CollectKeysInTheirPlaces) {
  const TinyModel tiny;
  const CausalLM model = tiny.load(at::kFloat);
  const std::vector<LocatedPrompt> prompts = long_prompts(100);
  std::vector<const LocatedPrompt*> rows;
  for (const LocatedPrompt& prompt : prompts) rows.push_back(&prompt);
  const HookSite site{HookPoint::kMlpKey, 1};
  const Tensor single = collect_at(model, rows, site, alone());
  for (const int64_t size : {2, 3, 5})
    run_ranks(size, [&](Communicator& communicator) {
      const Tensor shared = collect_at(model, rows, site, communicator);
      EXPECT_LE(nmse(shared, single), 1e-13) << communicator.rank() << " of " << size;
      EXPECT_EQ(shared.scalar_type(), single.scalar_type());
    });
}

TEST(Ranks, ScoreContinuationsInTheirPlaces) {
  const TinyModel tiny;
  const CausalLM model = tiny.load();
  std::vector<Continuation> continuations;
  for (const LocatedPrompt& prompt : long_prompts(100)) continuations.push_back({prompt.ids, {17, 400}});
  const std::vector<ContinuationScore> single = score_continuations(model, continuations, "test", alone());
  run_ranks(3, [&](Communicator& communicator) {
    const std::vector<ContinuationScore> shared = score_continuations(model, continuations, "test", communicator);
    ASSERT_EQ(shared.size(), single.size());
    for (size_t i = 0; i < single.size(); ++i) {
      EXPECT_NEAR(shared[i].nll, single[i].nll, 1e-10);
      EXPECT_EQ(shared[i].argmax, single[i].argmax);
    }
  });
}

TEST(Ranks, SampleTheSameTextTogether) {
  const TinyModel tiny;
  const CausalLM model = tiny.load();
  const SelfCorpusPlan plan{.begin = 1, .tokens = 9'000, .most_tokens = 7, .seed = 5};  // two rounds
  const CorpusTokens single = sample_corpus(model, plan, alone());
  for (const int64_t size : {2, 3})
    run_ranks(size, [&](Communicator& communicator) {
      const CorpusTokens shared = sample_corpus(model, plan, communicator);
      EXPECT_EQ(shared.tokens, single.tokens);
      EXPECT_EQ(shared.documents, single.documents) << communicator.rank() << " of " << size;
    });
}

/// Statistics of two layers over several chunks; every rank has a cache of its own.
struct RankStatistics {
  TinyModel tiny;
  TempDir folder;
  CausalLM model = tiny.load();
  CorpusTokens corpus;
  std::vector<int64_t> layers{0, 2};

  RankStatistics() {
    StatisticsOptions options;
    options.corpus = testing::write_corpus(folder.path(), 3000);
    options.tokens = 30'000;
    corpus = read_corpus(*tiny.tokenizer, options, tiny.config);
  }

  std::filesystem::path cache(const std::string& run, int64_t rank) const { return folder / cat(run, rank); }

  /// Saves after every chunk. Returns C of layer 2 on root.
  Tensor prepare(Communicator& communicator, const std::string& run, const CorpusTokens& text) const {
    const auto read = [&](Communicator&) { return text; };
    StatisticsStore store(model, tiny.checkpoint, StatisticsText{"text", read}, cache(run, communicator.rank()));
    store.save_every(0);
    store.prepare(layers, communicator);
    return communicator.is_root() ? store.load(2).moment_FF : Tensor();
  }

  /// All ranks' saved shares after a run in which the last chunk fails.
  std::set<std::string> interrupt(int64_t size, const std::string& run) const {
    CorpusTokens broken = corpus;
    // the last in the order of the chunks, and it stays there; no such token: the embedding throws
    std::max_element(broken.documents.begin(), broken.documents.end())->back() =
        static_cast<TokenId>(model.config().vocab_size);
    for (const std::exception_ptr& error :
         testing::try_ranks(size, [&](Communicator& communicator) { prepare(communicator, run, broken); }))
      EXPECT_TRUE(error != nullptr);
    std::set<std::string> saved;
    for (int64_t rank = 0; rank < size; ++rank)
      for (const std::string& name : files_in(cache(run, rank))) saved.insert(name.substr(name.find('.')));
    return saved;
  }

  static std::vector<std::string> files_in(const std::filesystem::path& folder) {
    std::vector<std::string> names;
    std::error_code absent;
    for (const auto& entry : std::filesystem::directory_iterator(folder, absent))
      names.push_back(entry.path().filename().string());
    return names;
  }
};

TEST(RankStatistics, GoOnFromEachRanksOwnShare) {
  const RankStatistics statistics;
  Tensor whole, resumed;
  run_ranks(2, [&](Communicator& communicator) {
    const Tensor moment = statistics.prepare(communicator, "whole", statistics.corpus);
    if (communicator.is_root()) whole = moment;
  });
  const std::set<std::string> saved = statistics.interrupt(2, "again");
  EXPECT_EQ(saved.size(), 2u);  // a share each
  for (const std::string& name : saved)
    EXPECT_TRUE(name.starts_with(".rank-") && name.ends_with("-of-2.partial.safetensors")) << name;
  run_ranks(2, [&](Communicator& communicator) {
    const Tensor moment = statistics.prepare(communicator, "again", statistics.corpus);
    if (communicator.is_root()) resumed = moment;
  });
  EXPECT_TRUE(resumed.equal(whole));
  EXPECT_EQ(RankStatistics::files_in(statistics.cache("again", 0)).size(), 2u);  // C of two layers, nothing else
  EXPECT_TRUE(RankStatistics::files_in(statistics.cache("again", 1)).empty());
}

TEST(RankStatistics, DoNotUseSharesOfAnotherNumberOfRanks) {
  const RankStatistics statistics;
  const Tensor single = statistics.prepare(alone(), "single", statistics.corpus);
  statistics.interrupt(2, "again");
  run_ranks(3, [&](Communicator& communicator) {
    const Tensor moment = statistics.prepare(communicator, "again", statistics.corpus);
    if (communicator.is_root()) {
      EXPECT_LE(nmse(moment, single), 1e-26);
    }
  });
  for (const int64_t rank : {0, 1})
    for (const std::string& name : RankStatistics::files_in(statistics.cache("again", rank)))
      EXPECT_EQ(name.find("partial"), std::string::npos) << name;
}

TEST(RankStatistics, AreTakenFromRootsCacheWhateverTheOthersHave) {
  const RankStatistics statistics;
  const Tensor single = statistics.prepare(alone(), "cache", statistics.corpus);
  const CorpusTokens nothing;
  run_ranks(2, [&](Communicator& communicator) {
    const Tensor moment = statistics.prepare(communicator, "cache", nothing);
    if (communicator.is_root()) {
      EXPECT_TRUE(moment.equal(single));
    }
  });
  EXPECT_TRUE(RankStatistics::files_in(statistics.cache("cache", 1)).empty());
}

/// Six requests in batches of two.
struct RankValues {
  TinyModel tiny;
  std::vector<PreparedRequest> requests =
      prepare_requests(*tiny.tokenizer, testing::some_requests(6), testing::kContexts);
  ValueOptions options{.steps = 4, .lr = 0.1, .batch = 2};
};

void expect_equal(const OptimizedValues& shared, const OptimizedValues& single) {
  EXPECT_LE(nmse(shared.z_ND, single.z_ND), 1e-24);
  for (size_t i = 0; i < single.losses.size(); ++i) {
    EXPECT_NEAR(shared.initial_norms[i], single.initial_norms[i], 1e-12);
    EXPECT_NEAR(shared.delta_norms[i], single.delta_norms[i], 1e-10);
    ASSERT_EQ(shared.losses[i].size(), single.losses[i].size()) << "request " << i;
    for (size_t step = 0; step < single.losses[i].size(); ++step) {
      EXPECT_NEAR(shared.losses[i][step].total, single.losses[i][step].total, 1e-10);
      EXPECT_NEAR(shared.losses[i][step].nll, single.losses[i][step].nll, 1e-10);
      EXPECT_NEAR(shared.losses[i][step].kl, single.losses[i][step].kl, 1e-10);
      EXPECT_NEAR(shared.losses[i][step].weight_decay, single.losses[i][step].weight_decay, 1e-10);
    }
  }
}

TEST(RankValues, AreGatheredAndFoundAgainByAnyNumberOfRanks) {
  const RankValues values;
  const CausalLM model = values.tiny.load();
  const TempDir folder;
  const ValueStore store(folder / "kept", "model");
  const OptimizedValues single = optimize_values(model, values.requests, 1, values.options, {alone()});
  EXPECT_EQ(single.batching.batches, 3);
  run_ranks(2, [&](Communicator& communicator) {
    const OptimizedValues shared = optimize_values(model, values.requests, 1, values.options, {communicator, &store});
    expect_equal(shared, single);
    EXPECT_EQ(shared.batching.batches, 3);
    EXPECT_EQ(shared.batching.largest, 2);
    EXPECT_EQ(shared.batching.resumed, 0);
  });
  run_ranks(4, [&](Communicator& communicator) {
    const OptimizedValues again = optimize_values(model, values.requests, 1, values.options, {communicator, &store});
    expect_equal(again, single);
    EXPECT_EQ(again.batching.resumed, 6);
  });
}

TEST(RankValues, AreTheSameWhereARankHalvesItsBatches) {
  RankValues values;
  values.options.batch = 3;
  testing::set_fake_device_count(testing::kMaxFakeDevices);
  const CausalLM first = values.tiny.load(at::kDouble, testing::fake_devices(0, 1));
  const CausalLM second = values.tiny.load(at::kDouble, testing::fake_devices(1, 1));
  const int64_t loaded = testing::fake_bytes_live(0);
  testing::reset_fake_peaks();
  const OptimizedValues single = optimize_values(first, values.requests, 1, values.options, {alone()});
  testing::set_fake_memory_limit(loaded + (testing::fake_bytes_peak(0) - loaded) * 2 / 3);
  run_ranks(2, [&](Communicator& communicator) {
    const CausalLM& own = communicator.is_root() ? first : second;
    const OptimizedValues shared = optimize_values(own, values.requests, 1, values.options, {communicator});
    expect_equal(shared, single);
    EXPECT_GE(shared.batching.halvings, 1);
    EXPECT_EQ(shared.z_ND.device(), own.placement().device_of(1));
  });
  testing::set_fake_memory_limit(0);
}

/// A context without statistics.
struct RankSolves {
  TinyModel tiny;
  CausalLM model = tiny.load();
  std::vector<PreparedRequest> requests =
      prepare_requests(*tiny.tokenizer, testing::some_requests(2), testing::kContexts);

  EditContext context(Communicator& communicator) const {
    return {model,
            *tiny.tokenizer,
            testing::kContexts,
            {.factor = [](int64_t) { return torch::eye(48, torch::kDouble); }},
            {communicator}};
  }
};

TEST(RankSolves, AreMadeOnceAndTheSameForAll) {
  const RankSolves solves;
  const Tensor left = torch::randn({5, 32}, torch::kDouble).t(), right = torch::randn({5, 48}, torch::kDouble);
  std::atomic<int> made = 0;
  run_ranks(3, [&](Communicator& communicator) {
    const EditContext context = solves.context(communicator);
    const WeightDelta low_rank = context.solve(1, [&]() -> WeightDelta {
      ++made;
      EXPECT_TRUE(communicator.is_root());
      EXPECT_EQ(context.covariance_factor(1).size(0), 48);
      return LowRankDelta{left, right};
    });
    EXPECT_TRUE(std::get<LowRankDelta>(low_rank).left_OR.equal(left));
    EXPECT_TRUE(std::get<LowRankDelta>(low_rank).left_OR.is_contiguous()) << "another layout, other last bits";
    EXPECT_TRUE(std::get<LowRankDelta>(low_rank).right_RI.equal(right));
    const WeightDelta dense = context.solve(1, [&] { return DenseDelta{right}; });
    EXPECT_TRUE(std::get<DenseDelta>(dense).full_OI.equal(right));
  });
  EXPECT_EQ(made, 1);
}

TEST(RankSolves, RefuseWhatNeedsAllRanks) {
  const RankSolves solves;
  const EditContext context = solves.context(alone());
  EXPECT_THROW(context.covariance_factor(1), std::logic_error);
  const auto ask = [&](const std::function<void()>& question) {
    return [&context, question] {
      context.solve(1, [&]() -> WeightDelta {
        question();
        return DenseDelta{};
      });
    };
  };
  EXPECT_THROW(ask([&] { context.collect_keys(solves.requests, 1); })(), std::logic_error);
  EXPECT_THROW(ask([&] {
                 context.collect(solves.requests, {HookPoint::kBlockOut, 1}, ContextMean::kPlain);
               })(),
               std::logic_error);
  EXPECT_THROW(ask([&] { context.optimize_values(solves.requests, 1, {}); })(), std::logic_error);
  EXPECT_NO_THROW(context.collect_keys(solves.requests, 1));
}

TEST(Ranks, HearOfWhatFailsBetweenStages) {
  const testing::RankErrors errors = testing::try_ranks(3, [](Communicator& communicator) {
    communicator.run_collectively("whole", [&] {
      communicator.run_collectively("first", [] {});
      if (communicator.rank() == 1) throw NumericError("no answer");
      communicator.run_collectively("second", [] {});
      communicator.barrier();
    });
  });
  EXPECT_EQ(testing::message_of(errors[1]), "no answer");
  EXPECT_THROW(std::rethrow_exception(errors[1]), NumericError);
  for (const size_t rank : {0u, 2u}) {
    EXPECT_EQ(testing::message_of(errors[rank]), "rank 1: whole: no answer");
    EXPECT_THROW(std::rethrow_exception(errors[rank]), CollectiveError);
  }
}

TEST(Ranks, KeepTheirOwnErrorWhenAllFail) {
  for (const std::exception_ptr& error : testing::try_ranks(2, [](Communicator& communicator) {
         communicator.run_collectively(
             "whole", [&] { communicator.run_collectively("part", [] { throw ConfigError("no such thing"); }); });
       }))
    EXPECT_THROW(std::rethrow_exception(error), ConfigError);
}

}  // namespace
}  // namespace lancet
