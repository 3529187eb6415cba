#include "lancet/statistics/self_corpus.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <set>
#include <sstream>

#include "lancet/core/error.h"
#include "lancet/core/progress.h"
#include "lancet/models/generate.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::TempDir;
using testing::TinyModel;

/// Short documents: the rounds are full, and there are several.
constexpr SelfCorpusPlan kPlan{.begin = 1, .tokens = 9'000, .most_tokens = 7, .seed = 5};

SelfCorpusPlan with_seed(uint64_t seed) {
  SelfCorpusPlan plan = kPlan;
  plan.seed = seed;
  return plan;
}

TEST(SelfCorpus, HasTheBudgetInDocumentsThatBeginAlike) {
  const TinyModel tiny;
  const CausalLM model = tiny.load();
  const CorpusTokens corpus = sample_corpus(model, kPlan, alone());
  int64_t tokens = 0;
  for (const auto& document : corpus.documents) {
    EXPECT_EQ(document.front(), kPlan.begin);
    EXPECT_LE(document.size(), 7u);
    EXPECT_EQ(std::count(document.begin() + 1, document.end(), model.config().eos_ids.at(0)), 0);
    tokens += static_cast<int64_t>(document.size());
  }
  EXPECT_EQ(tokens, 9'000);
  EXPECT_EQ(corpus.tokens, 9'000);
  EXPECT_FALSE(corpus.exhausted);
}

TEST(SelfCorpus, DocumentsComeFromTheSeedAndTheirIndexAlone) {
  const TinyModel tiny;
  const CausalLM model = tiny.load();
  const auto documents = sample_corpus(model, kPlan, alone()).documents;
  EXPECT_EQ(documents, sample_corpus(model, kPlan, alone()).documents);
  const CausalLM solving_on_host = tiny.load(at::kDouble, {Placement::host()}, {}, SolveOn::kHost);
  EXPECT_EQ(documents, sample_corpus(solving_on_host, kPlan, alone()).documents) << "fewer at a time";
  EXPECT_NE(documents, sample_corpus(model, with_seed(6), alone()).documents);
  ASSERT_GT(documents.size(), 1100u);  // more than one round
  size_t found = 0;
  const GenerateRow row{{kPlan.begin}, kPlan.most_tokens - 1};
  for (int64_t index : {0, 1, 511, 512, 1023, 1024}) {
    auto alone = generate(
        model, std::span(&row, 1),
        {.eos_ids = model.config().eos_ids, .sampling = {.top_k = 0, .seed = kPlan.seed}, .first_row = index})[0];
    alone.insert(alone.begin(), kPlan.begin);
    // Documents without a word are left out: those after them move up.
    const auto end = documents.begin() + index + 1;
    const auto begin = documents.begin() + std::max<int64_t>(index - 10, 0);
    found += static_cast<size_t>(std::find(begin, end, alone) != end);
  }
  EXPECT_EQ(found, 6u);
}

TEST(SelfCorpus, IsKnownByItsKeyWithoutSampling) {
  const TinyModel tiny, other({.seed = 2});
  const CausalLM model = tiny.load();
  const auto key = [&](const TinyModel& of, const SelfCorpusPlan& plan) {
    return sampled_text(model, of.checkpoint.content_hash(), plan).content_key;
  };
  EXPECT_EQ(key(tiny, kPlan), key(tiny, kPlan));
  EXPECT_NE(key(tiny, kPlan), key(other, kPlan));
  EXPECT_NE(key(tiny, kPlan), key(tiny, with_seed(6)));
  SelfCorpusPlan more = kPlan, longer = kPlan, begun = kPlan;
  more.tokens += 1;
  longer.most_tokens += 1;
  begun.begin = 2;
  for (const SelfCorpusPlan& plan : {more, longer, begun}) EXPECT_NE(key(tiny, kPlan), key(tiny, plan));
  const QuantiseRule edited{{{WeightKind::kDown, 1}}, Quantiser::kInt8}, other_edited{{}, Quantiser::kInt8};
  std::set<std::string> keys{key(tiny, kPlan)};
  for (const QuantiseRule& rule : {edited, other_edited}) {
    const CausalLM quantised = tiny.load(at::kFloat, {Placement::host()}, rule);
    keys.insert(sampled_text(quantised, tiny.checkpoint.content_hash(), kPlan).content_key);
  }
  EXPECT_EQ(keys.size(), 3u) << "each says something else";
  const StatisticsText text = sampled_text(model, tiny.checkpoint.content_hash(), kPlan);
  EXPECT_EQ(text.read(alone()).documents, sample_corpus(model, kPlan, alone()).documents);
}

TEST(SelfCorpus, PlansWithinTheModelsPositions) {
  const TinyModel tiny;
  StatisticsOptions options;
  options.tokens = 1000;
  options.document_tokens = 1'000'000;
  const SelfCorpusPlan plan = plan_self_corpus(*tiny.tokenizer, tiny.config, options, 3);
  EXPECT_EQ(plan.begin, *tiny.tokenizer->bos_id());
  EXPECT_EQ(plan.most_tokens, tiny.config.max_positions);
  EXPECT_EQ(plan.seed, 3u);
  options.tokens = tiny.config.d_ffn - 1;
  EXPECT_THROW(plan_self_corpus(*tiny.tokenizer, tiny.config, options, 3), ConfigError);
}

/// `statistics:` as a job has it.
StatisticsOptions parsed(const std::string& yaml, std::string* resolved = nullptr) {
  const ConfigTree tree = parse_config(yaml, "job.yaml");
  ConfigProblems problems("job.yaml");
  ConfigSection section(tree, "statistics", problems);
  const StatisticsOptions options = parse_statistics_options(section, "/jobs");
  problems.throw_if_any();
  if (resolved != nullptr) *resolved = section.resolved().find("tokens")->scalar;
  return options;
}

TEST(SelfCorpus, IsTheDefaultWithAsManyTokensAsTheKeysAskFor) {
  std::string tokens;
  for (const char* yaml : {"", "{}", "corpus: self", "{corpus: self, tokens: auto}", "cache: /tmp/c"}) {
    const StatisticsOptions options = parsed(yaml, &tokens);
    EXPECT_EQ(options.from, StatisticsFrom::kSelf) << yaml;
    EXPECT_EQ(tokens, "auto") << yaml;
    EXPECT_EQ(options.document_tokens, 256) << yaml;
    EXPECT_EQ(options.token_budget(100), kLeastOwnTokens);
    EXPECT_EQ(options.token_budget(768), 768 * kTokensPerDimension);
    EXPECT_EQ(options.token_budget(14'336), 14'336 * kTokensPerDimension);
    EXPECT_EQ(options.token_budget(1'000'000), kMostTokens);
  }
  EXPECT_EQ(parsed("{corpus: self, tokens: 700}", &tokens).token_budget(768), 700);
  EXPECT_EQ(tokens, "700");
  for (const char* yaml : {"corpus: text.txt", "{corpus: ./self, tokens: auto}"}) {
    EXPECT_EQ(parsed(yaml, &tokens).token_budget(768), kMostTokens) << yaml;
    EXPECT_EQ(tokens, "1000000") << yaml;
  }
  EXPECT_THROW(parsed("tokens: many"), ConfigError);
  EXPECT_THROW(parsed("tokens: 0"), ConfigError);
}

TEST(SelfCorpus, SamplesManyDocumentsAtATimeWhereTheyAreSmall) {
  const TinyModel tiny;
  EXPECT_EQ(sampling_rows(tiny.config, at::kFloat, 2560, 256), 1024);
  EXPECT_EQ(sampling_rows(tiny.config, at::kFloat, 100, 256), 100) << "a document has a token";
  ModelConfig large = tiny.config;  // 32 MiB a document
  large.n_layers = 32;
  large.n_kv_heads = 8;
  large.head_dim = 128;
  EXPECT_EQ(sampling_rows(large, at::kBFloat16, 1024, 256), 8) << "256 MiB";
  EXPECT_EQ(sampling_rows(large, at::kBFloat16, 2561, 256), 11) << "as many as the tokens need";
  EXPECT_EQ(sampling_rows(large, at::kBFloat16, 1'000'000, 256), 64) << "2 GiB";
  EXPECT_EQ(sampled_together(11, SolveOn::kDevice), 11);
  EXPECT_EQ(sampled_together(11, SolveOn::kHost), 5);
  EXPECT_EQ(sampled_together(1, SolveOn::kHost), 1);
}

/// The lines that sampling shows while the clock moves a second with every look at it.
std::vector<std::string> lines_of_sampling(const CausalLM& model, const SelfCorpusPlan& plan) {
  static std::atomic<int64_t> seconds;
  seconds = 0;
  set_stage_clock([] { return StageTime(std::chrono::seconds(++seconds)); });
  ::testing::internal::CaptureStderr();
  sample_corpus(model, plan, alone());
  std::istringstream shown(::testing::internal::GetCapturedStderr());
  set_stage_clock(nullptr);
  std::vector<std::string> lines;
  for (std::string line; std::getline(shown, line);) lines.push_back(line);
  return lines;
}

bool has(const std::string& line, const char* part) { return line.find(part) != std::string::npos; }

TEST(SelfCorpus, CountsTokensWhileTheyAreDrawnAndEstimatesTheRest) {
  const TinyModel tiny;
  const std::vector<std::string> lines =
      lines_of_sampling(tiny.load(), {.begin = 1, .tokens = 400, .most_tokens = 100, .seed = 5});
  ASSERT_GT(lines.size(), 4u);
  EXPECT_TRUE(has(lines.back(), "sampling  400/400 tokens  in ")) << lines.back();
  for (size_t i = 0; i + 1 < lines.size(); ++i) {
    EXPECT_TRUE(has(lines[i], "sampling  ") && has(lines[i], "/400 tokens  ")) << lines[i];
    EXPECT_TRUE(has(lines[i], " left")) << lines[i];
    EXPECT_FALSE(has(lines[i], "about")) << "nothing is promised before it is measured: " << lines[i];
  }
}

/// Documents that have begun are written to their ends, also when there are tokens enough: the lines say how many, and
/// how long they take, until they are done.
TEST(SelfCorpus, SaysWhatIsLeftWhenThereAreTokensEnough) {
  const TinyModel tiny;
  ModelConfig brief = tiny.config;  // one token in a hundred ends a document
  brief.eos_ids.clear();
  for (TokenId id = 0; id < brief.vocab_size; id += 100) brief.eos_ids.push_back(id);
  const CausalLM model = CausalLM::load(tiny.checkpoint, brief,
                                        plan_placement(brief.n_layers, std::vector{Placement::host()}, at::kFloat));
  const std::vector<std::string> lines =
      lines_of_sampling(model, {.begin = 1, .tokens = 2000, .most_tokens = 200, .seed = 5, .note = "once"});
  std::vector<std::string> enough;
  for (const std::string& line : lines)
    if (has(line, "to finish, once")) enough.push_back(line);
  ASSERT_GT(enough.size(), 1u) << "some documents outlast the tokens";
  for (size_t i = 0; i < enough.size(); ++i) {
    EXPECT_TRUE(has(enough[i], "sampling  2000/2000 tokens")) << enough[i];
    // the last line may be drawn at the last token of the last document, when nothing is left
    EXPECT_TRUE(i + 1 == enough.size() || has(enough[i], " left")) << enough[i];
  }
  EXPECT_NE(enough.front(), enough.back());
  EXPECT_TRUE(lines.back().ends_with("  once")) << lines.back();
}

TEST(SelfCorpus, RefusesAModelThatSaysNothing) {
  const TinyModel tiny;
  ModelConfig mute = tiny.config;  // every token ends a document
  for (TokenId id = 0; id < mute.vocab_size; ++id) mute.eos_ids.push_back(id);
  const CausalLM model =
      CausalLM::load(tiny.checkpoint, mute, plan_placement(mute.n_layers, std::vector{Placement::host()}, at::kFloat));
  EXPECT_THROW(sample_corpus(model, kPlan, alone()), ConfigError);
}

}  // namespace
}  // namespace lancet
