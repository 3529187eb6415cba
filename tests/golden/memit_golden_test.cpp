// lancet against tests/oracle/make_golden.py: the published algorithm, written plainly and independently in Python, in
// f64.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lancet/core/strings.h"
#include "lancet/models/tensor_io.h"
#include "lancet/statistics/derived_store.h"
#include "lancet/statistics/statistics_store.h"
#include "support/edit_setup.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::nmse;
using testing::TempDir;
using Json = nlohmann::json;

// Calibrated once, then fixed.
constexpr double kLossF64 = 1e-9;   // relative
constexpr double kNmseF64 = 1e-14;  // z, keys, C, deltas
constexpr double kMedianF32 = 1e-10;
constexpr double kTailF32 = 1e-6;  // 95 % of the requests

struct Golden {
  SafetensorsReader file =
      SafetensorsReader::open(std::filesystem::path(LANCET_BINARY_DIR) / "golden" / "memit.safetensors");
  Json job = Json::parse(file.metadata().at("job"));
  Tensor tensor(const std::string& name) const { return to_tensor(file.view(name)); }
};

ValueOptions value_options(const Json& section) {
  const ConfigTree tree = parse_config(section.dump(), "golden");
  ConfigProblems problems("golden");
  ValueOptions options = parse_value_options(ConfigSection(tree, "values", problems));
  problems.throw_if_any();
  return options;
}

/// The golden's job on lancet, in a dtype.
struct GoldenRun {
  Golden golden;
  Checkpoint checkpoint = Checkpoint::open(testing::demo_model_folder());
  ModelConfig config = load_model_config(checkpoint);
  std::unique_ptr<Tokenizer> tokenizer = open_tokenizer(checkpoint.folder());
  Json editor = golden.job.at("editor");
  std::vector<int64_t> layers = editor.at("layers");
  std::vector<std::string> contexts = editor.at("contexts");
  CausalLM model;
  std::vector<EditRequest> requests = parse_requests(parse_config(golden.job.at("requests").dump(), "golden"));
  std::vector<PreparedRequest> prepared = prepare_requests(*tokenizer, requests, contexts);
  ValueOptions values = value_options(editor.at("values"));

  explicit GoldenRun(at::ScalarType dtype)
      : model(CausalLM::load(checkpoint, config,
                             plan_placement(config.n_layers, std::vector<at::Device>{Placement::host()}, dtype))) {}

  StatisticsOptions statistics(const TempDir& folder) const {
    StatisticsOptions options;
    options.corpus = std::filesystem::path(LANCET_SOURCE_DIR) / "data" / "requests" / "demo-corpus.txt";
    options.tokens = golden.tensor("tokens").item<int64_t>();
    options.cache = folder / "cache";
    return options;
  }
};

TEST(MemitGolden, LossesAndValuesInF64) {
  const GoldenRun run(at::kDouble);
  const OptimizedValues values = optimize_values(run.model, run.prepared, run.layers.back(), run.values, {alone()});
  for (size_t i = 0; i < run.prepared.size(); ++i) {
    const Tensor expected = run.golden.tensor(cat("losses.", i));
    ASSERT_EQ(static_cast<int64_t>(values.losses[i].size()), expected.numel()) << "request " << i;
    for (size_t step = 0; step < values.losses[i].size(); ++step) {
      const double loss = expected[static_cast<int64_t>(step)].item<double>();
      EXPECT_NEAR(values.losses[i][step].total, loss, kLossF64 * loss) << "request " << i << ", step " << step;
    }
  }
  EXPECT_LE(nmse(values.z_ND, run.golden.tensor("z")), kNmseF64);
}

TEST(MemitGolden, ValuesInF32) {
  const GoldenRun run(at::kFloat);
  const OptimizedValues values = optimize_values(run.model, run.prepared, run.layers.back(), run.values, {alone()});
  const Tensor expected = run.golden.tensor("z");
  std::vector<double> errors;
  for (int64_t i = 0; i < expected.size(0); ++i) errors.push_back(nmse(values.z_ND[i], expected[i]));
  std::sort(errors.begin(), errors.end());
  EXPECT_LE(errors[errors.size() / 2], kMedianF32);
  EXPECT_LE(errors[errors.size() * 95 / 100], kTailF32);
}

TEST(MemitGolden, CovariancesKeysAndDeltasInF64) {
  GoldenRun run(at::kDouble);
  const TempDir folder;
  const auto editor = testing::editor_from(run.editor.dump());
  const StatisticsOptions statistics = run.statistics(folder);
  const CorpusTokens corpus = read_corpus(*run.tokenizer, statistics, run.config);
  StatisticsStore store(run.model, run.checkpoint, corpus, statistics.cache);
  FactorStore factors(store, run.model.placement(), run.config, statistics.cache, 0.0);
  factors.prepare(run.layers, alone());
  const EditContext context(run.model, *run.tokenizer, run.contexts,
                            {.factor = [&](int64_t layer) { return factors.load(layer); }}, {alone()});
  const Tensor first_keys = context.collect_keys(run.prepared, run.layers.front());
  EXPECT_LE(nmse(first_keys.t(), run.golden.tensor(cat("keys.", run.layers.front()))), kNmseF64);

  WeightTransaction transaction(run.model);
  EditorState state = editor->make_state();
  editor->edit(context, run.requests, state, transaction);
  EXPECT_EQ(state.edits, static_cast<int64_t>(run.requests.size()));
  ASSERT_EQ(transaction.entries().size(), run.layers.size());
  for (size_t i = 0; i < run.layers.size(); ++i) {
    const int64_t layer = run.layers[i];
    const WeightDelta& delta = transaction.entries()[i].deltas.at(0);
    EXPECT_LE(nmse(store.load(layer).moment_FF, run.golden.tensor(cat("covariance.", layer))), kNmseF64)
        << "layer " << layer;
    EXPECT_LE(nmse(std::get<LowRankDelta>(delta).left_OR.t(), run.golden.tensor(cat("residuals.", layer))), kNmseF64)
        << "layer " << layer;
    EXPECT_LE(nmse(to_dense(delta), run.golden.tensor(cat("delta.", layer))), kNmseF64) << "layer " << layer;
  }
}

}  // namespace
}  // namespace lancet
