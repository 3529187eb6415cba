// Models some of whose matrices stay quantised compute what models with the same matrices unpacked do, to the bit.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <stdexcept>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/models/batching.h"
#include "lancet/models/finite.h"
#include "lancet/models/generate.h"
#include "lancet/statistics/covariance.h"
#include "lancet/statistics/statistics_store.h"
#include "lancet/training/values.h"
#include "support/edit_setup.h"
#include "support/family_models.h"
#include "support/gptq_model.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::gptq_model;
using testing::kRows;
using testing::layer_matrices;
using testing::TinyModel;

constexpr Quantiser kEachQuantiser[] = {Quantiser::kInt8, Quantiser::kNf4, Quantiser::kFloat8};
const WeightId kEdited{WeightKind::kDown, 1};

Tensor logits_of(const CausalLM& model) {
  const torch::NoGradGuard no_grad;
  const TokenBatch batch = make_batch(kRows);
  return model.logits(
      model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence, model.all_layers()).flatten(0, 1));
}

CorpusTokens some_documents() {
  CorpusTokens corpus;
  for (TokenId i = 0; i < 30; ++i) {
    corpus.documents.emplace_back();
    for (TokenId t = 0; t <= i; ++t) corpus.documents.back().push_back((i * 31 + t * t * 7) % 4096);
    corpus.tokens += static_cast<int64_t>(corpus.documents.back().size());
  }
  return corpus;
}

/// Everything that an edit asks of a model.
void expect_the_same(const TinyModel& tiny, const CausalLM& ours, const CausalLM& theirs, const std::string& what) {
  EXPECT_TRUE(logits_of(ours).equal(logits_of(theirs))) << what << ": logits";
  std::vector<GenerateRow> rows;
  for (const std::vector<TokenId>& row : kRows) rows.push_back({row, 6});
  EXPECT_EQ(generate(ours, rows, {}), generate(theirs, rows, {})) << what << ": text";
  const std::vector<int64_t> layers{1, 3};
  const std::vector<Covariance> a = collect_covariances(ours, some_documents(), layers, alone()),
                                b = collect_covariances(theirs, some_documents(), layers, alone());
  for (size_t i = 0; i < layers.size(); ++i)
    EXPECT_TRUE(a[i].moment_FF.equal(b[i].moment_FF)) << what << ": second moments";
  const std::vector<PreparedRequest> requests =
      prepare_requests(*tiny.tokenizer, testing::some_requests(2), testing::kContexts);
  const ValueOptions options{.steps = 3, .lr = 0.1};
  const OptimizedValues x = optimize_values(ours, requests, kEdited.layer, options, {alone()}),
                        y = optimize_values(theirs, requests, kEdited.layer, options, {alone()});
  EXPECT_TRUE(x.z_ND.equal(y.z_ND)) << what << ": values";
  for (const double norm : x.delta_norms) EXPECT_GT(norm, 0) << what << ": no step was taken";
}

/// A model in full precision whose matrices were replaced by what the quantiser makes of each as it is stored.
CausalLM unpacked_twin(const TinyModel& tiny, at::ScalarType dtype, Quantiser quantiser) {
  CausalLM model = tiny.load(dtype);
  for (const WeightId id : layer_matrices(tiny.config)) {
    if (id == kEdited) continue;
    const WeightSpec spec = weight_spec(tiny.config, id);
    std::vector<Tensor> parts;
    for (const Tensor& part : model.weight(id).chunk(spec.experts, spec.parts_axis()))
      parts.push_back(quantise(part.contiguous(), quantiser, spec.name).unpack(dtype));
    model.set_weight(id, torch::cat(parts, spec.parts_axis()).contiguous());
  }
  return model;
}

class QuantisedFamily : public ::testing::TestWithParam<testing::FamilyModel> {};
INSTANTIATE_TEST_SUITE_P(QuantisedModels, QuantisedFamily, ::testing::ValuesIn(testing::family_models()),
                         [](const auto& one) { return one.param.name; });

TEST_P(QuantisedFamily, ComputesWhatItsUnpackedTwinDoes) {
  const TinyModel tiny(GetParam().config, 5);
  for (const Quantiser quantiser : std::span(kEachQuantiser).first(GetParam().is_row ? 1 : std::size(kEachQuantiser))) {
    const CausalLM quantised = tiny.load(at::kFloat, {Placement::host()}, {{kEdited}, quantiser});
    for (const WeightId id : layer_matrices(tiny.config)) EXPECT_EQ(quantised.is_quantised(id), id != kEdited);
    EXPECT_TRUE(quantised.weight(kEdited).equal(tiny.load(at::kFloat).weight(kEdited)));
    expect_the_same(tiny, quantised, unpacked_twin(tiny, at::kFloat, quantiser),
                    std::string(quantiser_name(quantiser)));
  }
}

TEST(QuantisedModels, ComputeWhatTheirTwinsDoInOtherTypes) {
  const TinyModel tiny;
  for (const at::ScalarType dtype : {at::kBFloat16, at::kDouble})
    for (const Quantiser quantiser : kEachQuantiser)
      expect_the_same(tiny, tiny.load(dtype, {Placement::host()}, {{kEdited}, quantiser}),
                      unpacked_twin(tiny, dtype, quantiser), cat(quantiser_name(quantiser), " ", at::toString(dtype)));
}

/// Compares a checkpoint that has them quantised with the same matrices unpacked while they are loaded.
TEST(QuantisedModels, KeepACheckpointsQuantisedMatrices) {
  for (const testing::FamilyModel& family : testing::family_models()) {
    nlohmann::json config = nlohmann::json::parse(family.config);
    if (config.contains("moe_intermediate_size")) config["moe_intermediate_size"] = 24;  // GPTQ's words have 8 numbers
    const TinyModel tiny = gptq_model(config.dump(), 5);
    const std::vector<WeightId> all = layer_matrices(tiny.config);
    const CausalLM quantised = tiny.load(at::kFloat, {Placement::host()}, {{kEdited}, {}});
    const CausalLM twin = tiny.load(at::kFloat, {Placement::host()}, {all, {}});
    for (const WeightId id : all) {
      const bool is_matrix = !has_all_experts(weight_spec(tiny.config, id).stored.layout);
      EXPECT_EQ(quantised.is_quantised(id), is_matrix && id != kEdited) << family.name;
      EXPECT_FALSE(twin.is_quantised(id)) << family.name;
    }
    EXPECT_TRUE(quantised.weight(kEdited).equal(twin.weight(kEdited))) << family.name;
    if (family.is_row)  // the rest depends on its matrices alone, and QuantisedFamily has it
      EXPECT_TRUE(logits_of(quantised).equal(logits_of(twin))) << family.name;
    else
      expect_the_same(tiny, quantised, twin, family.name);
    // of a fused matrix one part is edited, and the others stay packed
    const WeightId part{WeightKind::kUp, 1};
    const CausalLM partly = tiny.load(at::kFloat, {Placement::host()}, {{part}, {}});
    EXPECT_TRUE(partly.weight(part).equal(twin.weight(part))) << family.name;
    EXPECT_TRUE(logits_of(partly).equal(logits_of(twin))) << family.name;
  }
}

TEST(QuantisedModels, SayHowTheirWeightsAreKept) {
  const TinyModel tiny, gptq = gptq_model();
  const std::vector<at::Device> host{Placement::host()};
  EXPECT_EQ(precision_text(tiny.load(at::kBFloat16)), "BF16");
  EXPECT_EQ(precision_text(tiny.load(at::kBFloat16, host, {{}, Quantiser::kNf4})), "BF16, quantised weights nf4");
  EXPECT_EQ(precision_text(gptq.load(at::kFloat, host)), "F32, quantised weights gptq");
  EXPECT_EQ(precision_text(gptq.load(at::kFloat, host, {layer_matrices(gptq.config), {}})), "F32");
}

TEST(QuantisedModels, GiveNoQuantisedWeightAway) {
  const TinyModel tiny;
  CausalLM model = tiny.load(at::kFloat, {Placement::host()}, {{kEdited}, Quantiser::kInt8});
  const WeightId quantised{WeightKind::kUp, 2};
  const auto expect_refused = [&](const std::function<void()>& work) {
    try {
      work();
      FAIL();
    } catch (const std::logic_error& error) {
      EXPECT_NE(std::string(error.what()).find("model.layers.2.mlp.up_proj.weight in full precision: it is quantised"),
                std::string::npos)
          << error.what();
    }
  };
  expect_refused([&] { model.weight(quantised); });
  expect_refused([&] { model.set_weight(quantised, torch::zeros({48, 32})); });
  EXPECT_EQ(model.weight(kEdited).sizes(), at::IntArrayRef({32, 48}));
}

TEST(QuantisedModels, AreLookedAtForDamageInWhatIsNotQuantised) {
  const TinyModel tiny;
  CausalLM model = tiny.load(at::kFloat, {Placement::host()}, {{kEdited}, Quantiser::kInt8});
  EXPECT_TRUE(damaged_weights(model).empty());
  model.set_weight(kEdited, torch::full({32, 48}, NAN));
  EXPECT_EQ(damaged_weights(model), std::vector<std::string>{"model.layers.1.mlp.down_proj.weight"});
}

/// An option that would do nothing is refused.
TEST(QuantisedModels, RefuseAQuantiserThatFindsNothing) {
  const TinyModel gptq = gptq_model();
  try {
    gptq.load(at::kFloat, {Placement::host()}, {{}, Quantiser::kNf4});
    FAIL();
  } catch (const ConfigError& error) {
    for (const char* part : {"run.quantise_base: nf4", "quantised (gptq)", "leave it out"})
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(QuantiseRule, CoversMatricesOfAttentionAndOfMlps) {
  const TinyModel tiny(testing::family_models()[4].config, 1);  // some layers with experts
  ASSERT_EQ(testing::family_models()[4].name, "Qwen3Moe");
  const QuantiseRule rule{{kEdited}, Quantiser::kInt8};
  const std::vector<WeightId> matrices = layer_matrices(tiny.config);
  for (const WeightSpec& spec : resolve_weights(tiny.config, tiny.checkpoint)) {
    const bool expected = std::ranges::find(matrices, spec.id) != matrices.end() && spec.id != kEdited;
    EXPECT_EQ(rule.covers(spec.id), expected) << spec.name;
    EXPECT_EQ(rule.quantises(spec), expected) << spec.name;
    EXPECT_FALSE(rule.keeps_packed(spec)) << spec.name;
    EXPECT_FALSE(QuantiseRule().quantises(spec)) << spec.name;
  }
  const TinyModel gptq = gptq_model();
  for (const WeightSpec& spec : resolve_weights(gptq.config, gptq.checkpoint)) {
    EXPECT_EQ(rule.keeps_packed(spec), !spec.packed.empty() && spec.id != kEdited) << spec.name;
    EXPECT_FALSE(rule.quantises(spec) && !spec.packed.empty()) << spec.name;
  }
}

TEST(QuantiseRule, HasAKeyForWhatChangesNumbers) {
  const TinyModel tiny, gptq = gptq_model();
  const WeightId other{WeightKind::kDown, 2};
  const auto key = [&](const QuantiseRule& rule) { return rule.key(tiny.config); };
  EXPECT_EQ(key({}), "");
  EXPECT_EQ(key({{kEdited}, {}}), "");
  const std::set<std::string> keys{key({{}, Quantiser::kInt8}), key({{kEdited}, Quantiser::kInt8}),
                                   key({{other}, Quantiser::kInt8}), key({{kEdited}, Quantiser::kNf4})};
  EXPECT_EQ(keys.size(), 4u);
  EXPECT_EQ(key({{kEdited, other}, Quantiser::kInt8}), key({{other, kEdited}, Quantiser::kInt8}));
  for (const WeightSpec& spec : resolve_weights(gptq.config, gptq.checkpoint))
    EXPECT_EQ((QuantiseRule{{}, Quantiser::kInt8}).key(spec), "") << spec.name;  // none is left to quantise
}

TEST(QuantiseRule, AddsEditedWeightsOnce) {
  QuantiseRule rule{{kEdited}, {}};
  rule.add_edited(std::vector<WeightId>{kEdited, {WeightKind::kUp, 0}});
  EXPECT_EQ(rule.edited, (std::vector<WeightId>{kEdited, {WeightKind::kUp, 0}}));
}

/// Statistics of a quantised model are others than the model's, and each finds its own.
TEST(QuantisedStatistics, HaveNamesOfTheirOwn) {
  const TinyModel tiny, gptq = gptq_model();
  const auto name = [](const TinyModel& model, const QuantiseRule& rule) {
    return CovarianceKeys("text", model.checkpoint, model.config, at::kFloat, rule).of(2);
  };
  const WeightId above{WeightKind::kDown, 3};
  EXPECT_EQ(name(tiny, {{kEdited}, {}}), name(tiny, {}));
  const std::set<std::string> names{name(tiny, {}), name(tiny, {{}, Quantiser::kInt8}),
                                    name(tiny, {{}, Quantiser::kNf4}), name(tiny, {{kEdited}, Quantiser::kNf4})};
  EXPECT_EQ(names.size(), 4u);
  EXPECT_EQ(name(tiny, {{above}, Quantiser::kNf4}), name(tiny, {{}, Quantiser::kNf4})) << "keys do not depend on it";
  // packed or not, the numbers are the same
  EXPECT_EQ(name(gptq, {}), name(gptq, {layer_matrices(gptq.config), {}}));
}

}  // namespace
}  // namespace lancet
