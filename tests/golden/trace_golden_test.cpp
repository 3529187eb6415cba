// lancet against tests/oracle/golden/trace.py: causal tracing, written plainly in Python, in f64.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <nlohmann/json.hpp>

#include "lancet/core/strings.h"
#include "lancet/models/tensor_io.h"
#include "lancet/requests/request.h"
#include "lancet/tracing/causal_trace.h"
#include "lancet/tracing/trace_noise.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using Json = nlohmann::json;

constexpr double kProbabilityF64 = 1e-9;

TEST(TraceGolden, HeatMapsInF64) {
  const SafetensorsReader file =
      SafetensorsReader::open(std::filesystem::path(LANCET_BINARY_DIR) / "golden" / "trace.safetensors");
  const auto tensor = [&](const std::string& name) { return to_tensor(file.view(name)); };
  const Json job = Json::parse(file.metadata().at("job"));
  const Checkpoint checkpoint = Checkpoint::open(testing::demo_model_folder());
  const ModelConfig config = load_model_config(checkpoint);
  const auto tokenizer = open_tokenizer(checkpoint.folder());
  const std::vector<at::Device> host{Placement::host()};
  const CausalLM model = CausalLM::load(checkpoint, config, plan_placement(config.n_layers, host, at::kDouble));

  const std::vector<EditRequest> requests = parse_requests(parse_config(job.at("requests").dump(), "golden"));
  std::vector<TracedFact> facts;
  std::vector<TokenId> subjects;
  std::vector<std::vector<TokenId>> prompts;
  for (const EditRequest& request : requests) {
    const SubjectTokens prompt = find_subject(*tokenizer, request.prompt);
    prompts.push_back(prompt.ids);
    subjects.insert(subjects.end(), prompt.ids.begin() + prompt.first, prompt.ids.begin() + prompt.end);
    facts.push_back({prompt, 0, static_cast<int64_t>(facts.size())});
  }
  const TraceOptions options{.samples = job.at("samples"),
                             .noise = 3 * embedding_deviation(model, subjects),
                             .window = job.at("window"),
                             .seed = job.at("seed")};
  EXPECT_NEAR(options.noise, job.at("noise").get<double>(), 1e-12);
  const std::vector<Prediction> predictions = predict_next(model, prompts, alone());
  for (size_t i = 0; i < facts.size(); ++i) facts[i].object = predictions[i].token;
  const std::vector<FactTrace> traces = trace_facts(model, facts, options, alone());
  for (size_t i = 0; i < facts.size(); ++i) {
    const Tensor tokens = torch::tensor({facts[i].object, facts[i].prompt.first, facts[i].prompt.end}, torch::kLong);
    EXPECT_TRUE(torch::equal(tensor(cat(i, ".tokens")), tokens)) << i;
    for (int64_t sample = 0; sample < options.samples; ++sample) {
      const Tensor noise = trace_noise({options.seed, i, static_cast<uint64_t>(sample)},
                                       facts[i].prompt.end - facts[i].prompt.first, config.d_model);
      EXPECT_LE((tensor(cat(i, ".noise"))[sample] - noise).abs().max().item<double>(), 1e-13);
    }
    const Tensor runs = tensor(cat(i, ".runs"));
    EXPECT_NEAR(traces[i].clean, runs[0].item<double>(), kProbabilityF64);
    EXPECT_NEAR(traces[i].clean, predictions[i].probability, kProbabilityF64);
    EXPECT_NEAR(traces[i].corrupted, runs[1].item<double>(), kProbabilityF64);
    EXPECT_GT(traces[i].clean - traces[i].corrupted, 0.1) << "the noise should take the fact away";
    for (size_t k = 0; k < options.kinds.size(); ++k) {
      const Tensor expected = tensor(cat(i, ".", trace_kind_name(options.kinds[k])));
      ASSERT_EQ(traces[i].restored_TL[k].sizes(), expected.sizes());
      EXPECT_LE((traces[i].restored_TL[k] - expected).abs().max().item<double>(), kProbabilityF64);
    }
  }
}

}  // namespace
}  // namespace lancet
