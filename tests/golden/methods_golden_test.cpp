// Every method against tests/oracle/golden: the published algorithm, written plainly and independently in Python, in
// f64. The deltas of one batch, or of two with the state that the first one left, led to by its step. On the demo
// Llama, and on small random models of other families.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lancet/core/strings.h"
#include "lancet/models/stored_part.h"
#include "lancet/models/tensor_io.h"
#include "lancet/statistics/derived_store.h"
#include "lancet/statistics/null_space_store.h"
#include "lancet/statistics/spectrum_store.h"
#include "lancet/statistics/statistics_store.h"
#include "support/edit_setup.h"
#include "support/fake_device.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::nmse;
using testing::TempDir;
using Json = nlohmann::json;

// Calibrated once, then fixed.
constexpr double kNmse = 1e-14;
/// Adam divides by the size of the gradient: where that is near its eps, rounding decides.
constexpr double kNmseTrained = 1e-10;

const std::filesystem::path kGoldens = std::filesystem::path(LANCET_BINARY_DIR) / "golden";

/// Kinds of blocks that differ from Llama's: parallel, ALiBi, experts, fused ones with sinks, shared ones, latent
/// attention, delta rules, state spaces of three kinds, layers of one part; experts packed.
const std::set<std::string> kBlocks{
    "families/gptj",      "families/cohere",      "families/bloom",        "families/qwen3-moe", "families/gpt-oss",
    "families/qwen2-moe", "families/deepseek-v3", "families/qwen3-5",      "families/bamba",     "families/falcon-h1",
    "families/jamba",     "families/nemotron-h",  "families/gpt-oss-mxfp4"};

/// "methods/pmet", "families/gpt2.memit".
std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  std::error_code absent;
  for (const std::string folder : {"methods", "families"})
    for (const auto& entry : std::filesystem::directory_iterator(kGoldens / folder, absent))
      if (entry.path().extension() == ".safetensors") names.push_back(cat(folder, "/", entry.path().stem().string()));
  std::sort(names.begin(), names.end());
  return names;
}

SafetensorsReader open_golden(const std::string& name) {
  return SafetensorsReader::open(kGoldens / (name + ".safetensors"));
}

/// The demo model where the golden names no other.
std::filesystem::path model_of(const SafetensorsReader& golden) {
  const auto model = golden.metadata().find("model");
  return model == golden.metadata().end() ? testing::demo_model_folder() : kGoldens / "families" / model->second;
}

/// The golden's editor on lancet; the statistics cache is shared by all of them.
struct MethodRun {
  SafetensorsReader file;
  Json job = Json::parse(file.metadata().at("job"));
  std::unique_ptr<Editor> editor = testing::editor_from(job.at("editor").dump());
  Checkpoint checkpoint = Checkpoint::open(model_of(file));
  ModelConfig config = load_model_config(checkpoint);
  std::unique_ptr<Tokenizer> tokenizer = open_tokenizer(checkpoint.folder());
  CausalLM model;
  CorpusTokens corpus;
  std::unique_ptr<StatisticsStore> moments;
  std::unique_ptr<StatisticsStore> gradients;
  std::unique_ptr<DerivedStore> derived;
  std::unique_ptr<SpectrumStore> bends;
  LayerStatistics algebra;

  MethodRun(const std::string& name, const std::vector<at::Device>& devices)
      : file(open_golden(name)),
        model(CausalLM::load(checkpoint, config, plan_placement(config.n_layers, devices, at::kDouble),
                             {editor->targets(config), {}})) {
    if (editor->needs().statistics) prepare_statistics();
  }

  void prepare_statistics() {
    static const TempDir folder;
    StatisticsOptions options;
    options.corpus = std::filesystem::path(LANCET_SOURCE_DIR) / "data" / "requests" / "demo-corpus.txt";
    options.tokens = to_tensor(file.view("tokens")).item<int64_t>();
    corpus = read_corpus(*tokenizer, options, config);
    moments = std::make_unique<StatisticsStore>(model, checkpoint, corpus, folder / "cache");
    std::vector<int64_t> layers;
    for (const WeightId& id : editor->targets(config)) layers.push_back(id.layer);
    if (editor->needs().curvature) {
      gradients =
          std::make_unique<StatisticsStore>(model, checkpoint, corpus, folder / "cache", MomentSide::kGradients);
      auto store =
          std::make_unique<SpectrumStore>(*moments, model.placement(), config, folder / "cache", MomentSide::kKeys);
      bends = std::make_unique<SpectrumStore>(*gradients, model.placement(), config, folder / "cache",
                                              MomentSide::kGradients);
      bends->prepare(layers, alone());
      algebra.curvature = [keys = store.get(), others = bends.get()](int64_t layer) {
        return Curvature{keys->load(layer), others->load(layer)};
      };
      derived = std::move(store);
    } else if (const auto rule = editor->needs().null_space) {
      auto store = std::make_unique<NullSpaceStore>(*moments, model.placement(), config, folder / "cache", *rule);
      algebra.null_space = [spaces = store.get()](int64_t layer) { return spaces->load(layer); };
      derived = std::move(store);
    } else {
      auto store = std::make_unique<FactorStore>(*moments, model.placement(), config, folder / "cache", 0.0);
      algebra.factor = [factors = store.get()](int64_t layer) { return factors->load(layer); };
      derived = std::move(store);
    }
    derived->prepare(layers, alone());
  }
};

/// The name that an expert's own tensor would have, of the tensor of all: "a.experts.down_proj".
std::string name_of_expert(const std::string& all, int64_t expert) {
  const std::string experts = ".experts.";
  const size_t end = all.find(experts) + experts.size();
  return cat(all.substr(0, end), expert, ".", all.substr(end), ".weight");
}

/// What each weight's changes from number `first[name]` on sum up to, by stored tensor and as it is stored; moves
/// `first` after them. Experts that are not changed at all are left out.
std::map<std::string, Tensor> new_changes(const WeightTransaction& transaction, const ModelConfig& config,
                                          std::map<std::string, size_t>& first) {
  std::map<std::string, Tensor> changes;
  for (const WeightTransaction::Entry& entry : transaction.entries()) {
    const WeightSpec spec = weight_spec(config, entry.id);
    Tensor sum;
    for (size_t& i = first[spec.name]; i < entry.deltas.size(); ++i) {
      const Tensor change = to_dense(entry.deltas[i]);
      sum = sum.defined() ? sum + change : change;
    }
    const bool has_all = has_all_experts(spec.stored.layout);
    const std::vector<Tensor> parts = has_all
                                          ? sum.chunk(spec.experts, spec.parts_axis())
                                          : stored_parts(spec, spec.stored.layout == Layout::kColumns ? sum.t() : sum);
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts.size() > 1 && !parts[i].any().item<bool>()) continue;
      const std::string& tensor = spec.stored.tensors[has_all ? 0 : i];
      changes[has_all           ? name_of_expert(tensor, static_cast<int64_t>(i))
              : spec.is_whole() ? tensor
                                : spec.name] = parts[i];
    }
  }
  return changes;
}

void expect_the_goldens_deltas(const std::string& golden, const std::vector<at::Device>& devices) {
  MethodRun run(golden, devices);
  const std::string method = run.job.at("editor").at("method");
  const double bound = method.starts_with("ft") || method == "crispedit" ? kNmseTrained : kNmse;
  const EditContext context(run.model, *run.tokenizer, run.job.at("contexts"), run.algebra, {alone()});
  EditorState after = run.editor->make_state();
  WeightTransaction transaction(run.model);
  std::map<std::string, size_t> n_known;
  size_t n_compared = 0;
  for (size_t batch = 0; batch < run.job.at("batches").size(); ++batch) {
    EditorState state = after;
    run.editor->edit(context, parse_requests(parse_config(run.job.at("batches")[batch].dump(), "golden")), state,
                     transaction);
    for (const auto& [name, change] : new_changes(transaction, run.config, n_known)) {
      const double error = nmse(change, to_tensor(run.file.view(cat("delta.", batch, ".", name))));
      EXPECT_LE(error, bound) << "batch " << batch << ", " << name;
      ++n_compared;
    }
    advance(after, step_between(after, state));
  }
  EXPECT_EQ(n_compared + 1, run.file.tensors().size());  // all but `tokens`
}

/// "families/gpt2.memit" as a test may be called.
std::string test_name(const ::testing::TestParamInfo<std::string>& golden) {
  std::string name = golden.param;
  for (char& letter : name)
    if (letter == '-' || letter == '.' || letter == '/') letter = '_';
  return name;
}

class MethodsGolden : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Methods, MethodsGolden, ::testing::ValuesIn(golden_names()), test_name);

TEST_P(MethodsGolden, DeltasInF64) { expect_the_goldens_deltas(GetParam(), {Placement::host()}); }

/// Four methods' goldens of each kind of block: edited layers lie on both devices, where their statistics are made.
std::vector<std::string> goldens_of_blocks() {
  std::vector<std::string> names = golden_names();
  std::erase_if(names, [](const std::string& name) {
    const size_t dot = name.find('.');
    const std::set<std::string> methods{"memit", "alphaedit", "rome", "ft"};
    return !kBlocks.contains(name.substr(0, dot)) || !methods.contains(name.substr(dot + 1));
  });
  return names;
}

class MethodsGoldenOnDevices : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Methods, MethodsGoldenOnDevices, ::testing::ValuesIn(goldens_of_blocks()), test_name);

TEST_P(MethodsGoldenOnDevices, DeltasInF64OnTwo) {
  testing::set_fake_device_count(2);
  expect_the_goldens_deltas(GetParam(), testing::fake_devices(2));
}

/// No golden made, or a method without one, must not pass for success.
TEST(MethodsGoldenFiles, CoverEveryMethod) {
  std::set<std::string> covered{"memit"};  // memit_golden_test.cpp
  for (const std::string& name : golden_names())
    covered.insert(Json::parse(open_golden(name).metadata().at("job")).at("editor").at("method"));
  for (const EditorRow& row : editor_table()) EXPECT_TRUE(covered.contains(std::string(row.name))) << row.name;
}

}  // namespace
}  // namespace lancet
