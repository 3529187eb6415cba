#include "lancet/training/values.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "lancet/io/files.h"
#include "support/edit_setup.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::TempDir;
using testing::TinyModel;

/// Lists the files of values: the folder has a manifest too.
std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
  return files;
}

struct ValueStoreTest : public ::testing::Test {
  TinyModel tiny;
  CausalLM model = tiny.load(at::kFloat);
  TempDir folder;
  std::filesystem::path kept = folder / "kept";
  std::vector<PreparedRequest> requests =
      prepare_requests(*tiny.tokenizer, testing::some_requests(5), testing::kContexts);
  std::string changes_key;
  ValueOptions options{.steps = 4, .lr = 0.1, .batch = 2};

  OptimizedValues run(const std::string& model_key = "model") {
    const ValueStore store(kept, model_key, [this] { return changes_key; });
    return optimize_values(model, requests, 1, options, {alone(), &store});
  }
};

TEST_F(ValueStoreTest, GivesBackWhatAnInterruptedRunHadFound) {
  const OptimizedValues first = run();
  EXPECT_EQ(first.batching.resumed, 0);
  ASSERT_EQ(files_in(kept).size(), 3u);
  std::filesystem::remove(files_in(kept)[0]);  // as if killed before this batch
  const OptimizedValues second = run();
  EXPECT_GE(second.batching.resumed, 3);
  EXPECT_LT(second.batching.resumed, 5);
  EXPECT_TRUE(torch::equal(second.z_ND, first.z_ND));
  EXPECT_EQ(second.initial_norms, first.initial_norms);
  EXPECT_EQ(second.delta_norms, first.delta_norms);
  for (size_t i = 0; i < requests.size(); ++i) {
    ASSERT_EQ(second.losses[i].size(), first.losses[i].size());
    for (size_t step = 0; step < first.losses[i].size(); ++step) {
      EXPECT_EQ(second.losses[i][step].total, first.losses[i][step].total);
      EXPECT_EQ(second.losses[i][step].kl, first.losses[i][step].kl);
    }
  }
}

TEST_F(ValueStoreTest, GivesNothingToAnotherJob) {
  run();
  EXPECT_EQ(run("another model").batching.resumed, 0);
  changes_key = "as edited by an earlier batch";
  EXPECT_EQ(run().batching.resumed, 0);
  changes_key.clear();
  const ValueOptions original = options;
  options.lr = 0.2;
  EXPECT_EQ(run().batching.resumed, 0);
  options = original;
  options.kl = 0;
  EXPECT_EQ(run().batching.resumed, 0);
  options = original;
  const std::vector<PreparedRequest> same = requests;
  for (PreparedRequest& request : requests)
    for (TargetRow& row : request.rows) row.target.push_back(17);
  EXPECT_EQ(run().batching.resumed, 0);
  requests = same;
  for (PreparedRequest& request : requests) request.prompts.pop_back();
  EXPECT_EQ(run().batching.resumed, 0);
  requests = same;
  EXPECT_EQ(run().batching.resumed, 5);
}

TEST_F(ValueStoreTest, DoesNotUseADamagedFile) {
  const OptimizedValues first = run();
  const auto damage_all = [&](const std::function<std::string(std::string)>& damage) {
    for (const std::filesystem::path& file : files_in(kept))
      write_text_file(file, damage(read_text_file(file, "test")));
  };
  const auto with_a_bit_flipped = [](std::string bytes) {
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x10);
    return bytes;
  };
  for (const std::function<std::string(std::string)>& damage :
       {std::function<std::string(std::string)>([](const auto&) { return "not a tensor file"; }),
        std::function<std::string(std::string)>(with_a_bit_flipped)}) {
    damage_all(damage);
    const OptimizedValues second = run();
    EXPECT_EQ(second.batching.resumed, 0);
    EXPECT_TRUE(torch::equal(second.z_ND, first.z_ND));
    EXPECT_EQ(run().batching.resumed, 5);  // the damaged files were replaced
  }
}

TEST_F(ValueStoreTest, DoesNotUseAnotherBatchsFile) {
  run();
  const std::vector<std::filesystem::path> files = files_in(kept);
  std::filesystem::copy_file(files[0], files[1], std::filesystem::copy_options::overwrite_existing);
  EXPECT_LT(run().batching.resumed, 5);
}

TEST_F(ValueStoreTest, LeavesNothingBehindWhenCleared) {
  run();
  ValueStore(kept, "model").clear();
  EXPECT_FALSE(std::filesystem::exists(kept));
}

}  // namespace
}  // namespace lancet
