// adapter_config.json and config.json, changed by their own structure; fuzzed_edits_test.cpp has what lies in edits/.
// LANCET_TEST_FULL=1 takes 20,000 cases of all of them together, otherwise 1,000.
#include <gtest/gtest.h>
#include <torch/types.h>

#include "lancet/deltas/adapter.h"
#include "lancet/io/files.h"
#include "lancet/models/weight_table.h"
#include "support/family_models.h"
#include "support/history_support.h"
#include "support/structural_fuzz.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using namespace lancet::testing;
namespace fs = std::filesystem;

constexpr uint64_t kDocumentSeed = 20261126;

TEST(FuzzedAdapters, AreReadOrRefused) {
  const MemoryBound bound;
  const TinyModel tiny;
  const TempDir folder;
  const WeightSpec spec = weight_spec(tiny.config, kDown1);
  write_adapter(folder.path(), tiny.config,
                std::vector<WeightChanges>{{kDown1, {LowRankDelta{torch::randn({32, 4}), torch::randn({4, 48})}}}}, {});
  const fs::path path = folder / kAdapterConfig;
  const auto whole = FuzzedJson::parse(read_text_file(path, "adapter_config.json"));
  const Tensor expected = to_dense(read_adapter(folder.path(), tiny.config)[0].deltas[0]);
  std::mt19937_64 random(kDocumentSeed);
  for (int64_t i = 0; i < fuzz_cases(200, 3'000); ++i) {
    const FuzzedDocument document = fuzzed(whole, random);
    SCOPED_TRACE(cat("case ", i, ", ", document.change));
    write_text_file(path, document.text);
    reads_fuzzed([&] {
      const std::vector<WeightChanges> changes = read_adapter(folder.path(), tiny.config);
      if (document.place == "/lora_alpha" || document.place == "/use_rslora") return;
      ASSERT_EQ(changes.size(), 1u);
      EXPECT_TRUE(to_dense(changes[0].deltas[0]).equal(expected)) << "another change without a word";
    });
  }
}

TEST(FuzzedConfigs, AreReadOrRefused) {
  const MemoryBound bound;
  std::mt19937_64 random(kDocumentSeed + 1);
  for (int64_t i = 0; i < fuzz_cases(300, 5'000); ++i) {
    const FamilyModel& model = family_models()[random() % family_models().size()];
    const FuzzedDocument document = fuzzed(FuzzedJson::parse(model.config), random);
    SCOPED_TRACE(cat("case ", i, ", ", model.name, ", ", document.change));
    reads_fuzzed([&] { weight_table(parse_model_config(document.text, "", {}, "config.json")); });
  }
}

}  // namespace
}  // namespace lancet
