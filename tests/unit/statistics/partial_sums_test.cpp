#include "lancet/statistics/partial_sums.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <fstream>
#include <functional>

#include "lancet/core/strings.h"
#include "lancet/io/files.h"
#include "lancet/models/batching.h"
#include "lancet/statistics/covariance.h"
#include "support/edit_setup.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::TempDir;
using testing::TinyModel;

constexpr int64_t kTokens = 30'000;  // several chunks
const std::vector<int64_t> kLayers{0, 2};

/// A model and a corpus of several chunks.
struct Pass {
  TinyModel tiny;
  TempDir folder;
  CausalLM model = tiny.load(at::kFloat);
  CorpusTokens corpus;

  Pass() {
    StatisticsOptions options;
    options.corpus = testing::write_corpus(folder.path(), 3000);
    options.tokens = kTokens;
    corpus = read_corpus(*tiny.tokenizer, options, tiny.config);
  }

  PartialSums saves() const { return {folder / "cache", "some-key", 0}; }

  std::vector<Covariance> collect(PartialSums* saves = nullptr) const {
    return collect_covariances(model, corpus, kLayers, alone(), {.saves = saves});
  }

  /// The pass ends with an exception in the chunk of the longest documents, the last; the chunks before it were saved.
  PartialSums interrupted() const {
    CorpusTokens broken = corpus;
    auto longest = std::max_element(broken.documents.begin(), broken.documents.end(),
                                    [](const auto& a, const auto& b) { return a.size() < b.size(); });
    longest->back() = static_cast<TokenId>(model.config().vocab_size);  // no such token: the embedding throws
    PartialSums saves = this->saves();
    EXPECT_ANY_THROW(collect_covariances(model, broken, kLayers, alone(), {.saves = &saves}));
    return saves;
  }
};

bool same_bits(const std::vector<Covariance>& a, const std::vector<Covariance>& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i].tokens != b[i].tokens || !a[i].moment_FF.equal(b[i].moment_FF)) return false;
  return a.size() == b.size();
}

/// What `work` writes to stderr.
template <typename Work>
std::string stderr_of(const Work& work) {
  ::testing::internal::CaptureStderr();
  work();
  return ::testing::internal::GetCapturedStderr();
}

TEST(PartialSums, AnInterruptedPassGoesOnToTheSameBits) {
  const Pass pass;
  const std::vector<Covariance> whole = pass.collect();
  PartialSums saves = pass.interrupted();
  const std::optional<SavedPass> saved = saves.load(std::vector(2, pass.model.config().key_shape(0)));
  ASSERT_TRUE(saved.has_value());
  EXPECT_GE(saved->chunks, 2);
  EXPECT_GE(saved->tokens, kTokens - 2 * kForwardTokens) << "more than a chunk was lost";
  std::vector<Covariance> resumed;
  const std::string log = stderr_of([&] { resumed = pass.collect(&saves); });
  EXPECT_TRUE(same_bits(resumed, whole));
  EXPECT_NE(log.find(cat("statistics: going on from ", saved->tokens, " of 30000 tokens saved in ")), std::string::npos)
      << log;
  PartialSums::remove_all(pass.folder / "cache", "some-key");
  EXPECT_FALSE(std::filesystem::exists(saves.file()));
}

TEST(PartialSums, UsesWhatWasSavedInsteadOfRunningItAgain) {
  const Pass pass;
  PartialSums saves = pass.interrupted();
  SavedPass changed = *saves.load(std::vector(2, pass.model.config().key_shape(0)));
  changed.sums_FF[0] = changed.sums_FF[0] + 1;
  saves.save(changed);
  EXPECT_FALSE(same_bits(pass.collect(&saves), pass.collect()));
}

TEST(PartialSums, ReadsBackWhatWasSaved) {
  const TempDir folder;
  PartialSums saves(folder / "cache", "key", 0);
  EXPECT_FALSE(saves.load(std::vector(2, KeyShape{.width = 5})).has_value());
  const Tensor sum = torch::randn({5, 5}, torch::kDouble);
  saves.save({3, 700, {sum, 2 * sum}});
  const std::optional<SavedPass> saved = saves.load(std::vector(2, KeyShape{.width = 5}));
  ASSERT_TRUE(saved.has_value());
  EXPECT_EQ(saved->chunks, 3);
  EXPECT_EQ(saved->tokens, 700);
  EXPECT_TRUE(saved->sums_FF[1].equal(2 * sum));
}

/// Spoils a saved file and expects that it is named and not used.
void expect_refused(const std::function<void(const std::filesystem::path&)>& spoil, const std::string& reason) {
  const TempDir folder;
  PartialSums saves(folder / "cache", "key", 0);
  saves.save({3, 700, {torch::ones({5, 5}, torch::kDouble)}});
  spoil(saves.file());
  std::optional<SavedPass> saved;
  const std::string log = stderr_of([&] { saved = saves.load(std::vector(1, KeyShape{.width = 5})); });
  EXPECT_FALSE(saved.has_value());
  EXPECT_NE(log.find(cat("warning: statistics: ", saves.file().string(), ": saved sums that cannot be used")),
            std::string::npos)
      << log;
  EXPECT_NE(log.find(reason), std::string::npos) << log;
}

TEST(PartialSums, RefusesADamagedFile) {
  expect_refused([](const auto& file) { std::filesystem::resize_file(file, 100); }, "");
  expect_refused([](const auto& file) { write_text_file(file, "x"); }, "");
  const auto flip_last_byte = [](const std::filesystem::path& file) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(-1, std::ios::end);
    stream.put('\x01');
  };
  expect_refused(flip_last_byte, "has not the hash");
  // the number of chunks is in the header
  const auto change_header = [](const std::filesystem::path& file) {
    std::string text = read_text_file(file, "test");
    const size_t at = text.find(R"("chunks":"3")");
    ASSERT_NE(at, std::string::npos);
    text[at + 10] = '2';
    write_text_file(file, text);
  };
  expect_refused(change_header, "has not the hash");
}

TEST(PartialSums, RefusesAFileOfAnotherPass) {
  const auto replace_by = [](const std::string& key, const Tensor& sum) {
    return [=](const std::filesystem::path& file) {
      const TempDir elsewhere;
      PartialSums other(elsewhere.path(), key, 0);
      other.save({3, 700, {sum}});
      std::filesystem::copy_file(other.file(), file, std::filesystem::copy_options::overwrite_existing);
    };
  };
  expect_refused(replace_by("another key", torch::ones({5, 5}, torch::kDouble)), "another pass");
  expect_refused(replace_by("key", torch::ones({4, 4}, torch::kDouble)),
                 "sum.0: Double [4, 4], expected Double [5, 5]");
}

TEST(PartialSums, AreSavedByTimeOrAfterEveryChunk) {
  const TempDir folder;
  EXPECT_TRUE(PartialSums(folder.path(), "key", 0).due());
  EXPECT_FALSE(PartialSums(folder.path(), "key", 3600).due());
}

TEST(PartialSums, ADiskThatRefusesDoesNotEndThePass) {
  const Pass pass;
  const std::filesystem::path blocked = pass.folder / "blocked";
  write_text_file(blocked, "a file where the folder should be");
  PartialSums saves(blocked, "key", 0);
  std::vector<Covariance> covariances;
  const std::string log = stderr_of([&] { covariances = pass.collect(&saves); });
  EXPECT_TRUE(same_bits(covariances, pass.collect()));
  const std::string warning = "warning: statistics: the pass goes on, but cannot be continued if it is stopped";
  const size_t first = log.find(warning);
  EXPECT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find(warning, first + 1), std::string::npos) << "said more than once";
}

}  // namespace
}  // namespace lancet
