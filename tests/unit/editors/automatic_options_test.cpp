// Options that are `auto`: what they come to, by what the solved changes do to the keys.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cstdio>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "support/edit_setup.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::editor_from;
using testing::nmse;
using testing::TinyModel;

constexpr const char* kValuesAndEnd = ", values: {steps: 4, lr: 0.1}, contexts: ['{}']}";
constexpr const char* kBounds = ", residual_above: 0, residual_below: 1e9, passes: 1";

struct AutomaticOptionsTest : public ::testing::Test {
  static Tensor covariance_FF() { return torch::diag(torch::linspace(0.5, 2.0, 48, torch::kDouble)); }

  TinyModel tiny;
  CausalLM model = tiny.load();
  EditContext context{model,
                      *tiny.tokenizer,
                      {"{}"},
                      {.factor = [](int64_t) { return covariance_FF().sqrt(); },
                       .null_space = [](int64_t) { return make_null_space(covariance_FF(), {1.3}, "test"); }},
                      {alone()}};
  std::vector<EditRequest> requests = testing::some_requests(9);

  struct Result {
    EditOutcome outcome;
    std::vector<std::pair<int64_t, LowRankDelta>> deltas;  ///< one for each layer
  };
  /// `options`: of the editor, without the closing brace.
  Result edit(const std::string& options, std::span<const EditRequest> batch, EditorState& state) {
    WeightTransaction transaction(model);
    Result result{editor_from("{" + options + kValuesAndEnd)->edit(context, batch, state, transaction), {}};
    for (const WeightTransaction::Entry& entry : transaction.entries())
      for (const WeightDelta& delta : entry.deltas)
        result.deltas.emplace_back(entry.id.layer, std::get<LowRankDelta>(delta));
    return result;
  }
  Result edit(const std::string& options, std::span<const EditRequest> batch) {
    EditorState state;
    return edit(options, batch, state);
  }

  /// Returns the shares of its residual that each of the requests gets when it is edited alone: Delta k = R share.
  std::vector<double> shares_alone(const std::string& options, std::span<const EditRequest> batch) {
    std::vector<double> shares;
    for (const EditRequest& request : batch) {
      const std::vector<EditRequest> one{request};
      const Tensor key_F1 = context.collect_keys(context.prepare(one), 1);
      shares.push_back(edit(options, one).deltas.at(0).second.right_RI.matmul(key_F1).item<double>());
    }
    std::sort(shares.begin(), shares.end());
    return shares;
  }
};

TEST_F(AutomaticOptionsTest, AtLeastHalfOfTheKeysGetTheirShareAlone) {
  struct Case {
    const char* option;
    std::string method;
    double share;  ///< that auto stands for
  };
  const Case cases[] = {{"covariance_weight", "method: memit, layers: [1]", 0.8},
                        {"covariance_weight", "method: pmet, layers: [1]", 0.99},
                        {"covariance_weight", "method: emmet, layers: [1], slack: 0.3", 0.98},
                        {"covariance_weight", cat("method: nse, layers: [1]", kBounds), 0.8},
                        {"covariance_weight", cat("method: nse, layers: [1], neurons: 0.5", kBounds), 0.8},
                        {"ridge", "method: alphaedit, layers: [1]", 0.95}};
  for (const auto& [option, method, automatic] : cases)
    for (const auto& [text, share] : {std::pair{"auto", automatic}, std::pair{"{realised_share: 0.3}", 0.3}})
      for (const size_t count : {1, 6}) {
        if (count > 1 && method.find("neurons") != std::string::npos) continue;  // which ones change is the batch's
        const std::span<const EditRequest> batch = std::span(requests).first(count);
        const std::vector<ChosenOption> chosen = edit(cat(method, ", ", option, ": ", text), batch).outcome.chosen;
        ASSERT_EQ(chosen.size(), 1u) << method;
        EXPECT_EQ(chosen[0].option, option);
        EXPECT_EQ(chosen[0].layer, 1);
        char number[32];
        std::snprintf(number, sizeof(number), "%.17g", chosen[0].value);
        const std::vector<double> alone = shares_alone(cat(method, ", ", option, ": ", number), batch);
        EXPECT_NEAR(alone[(count - 1) / 2], share, 1e-12) << method << ", " << text << ", " << count;
      }
}

TEST_F(AutomaticOptionsTest, LaterBatchesTakeWhatTheFirstOneChose) {
  const std::string nse = "method: nse, layers: [0, 1], residual_above: auto, residual_below: auto, passes: 2";
  for (const std::string& method : {std::string("method: memit, layers: [0, 1], history: true"), nse,
                                    std::string("method: alphaedit, layers: [0, 1]")}) {
    EditorState state;
    const EditOutcome first = edit(method, std::span(requests).first(3), state).outcome;
    EXPECT_GE(first.chosen.size(), 2u);
    EditorState again;
    advance(again, step_between({}, state));
    const Result second = edit(method, std::span(requests).subspan(3), again);
    EXPECT_EQ(second.outcome.chosen, first.chosen) << method;
    EXPECT_NE(edit(method, std::span(requests).subspan(3)).outcome.chosen, first.chosen);
    // and these numbers are what is solved with
    EditorState history = state;
    std::erase_if(history.tensors, [](const auto& entry) { return entry.first.starts_with("auto."); });
    if (method.find("memit") == std::string::npos) continue;
    for (const ChosenOption& chosen : first.chosen) {
      char number[64];
      std::snprintf(number, sizeof(number), ", covariance_weight: %.17g", chosen.value);
      EditorState own = history;
      const Result given = edit(method + number, std::span(requests).subspan(3), own);
      EXPECT_TRUE(given.outcome.chosen.empty());
      if (chosen.layer == 0) {
        EXPECT_TRUE(given.deltas[0].second.right_RI.equal(second.deltas[0].second.right_RI));
      }
    }
  }
}

TEST_F(AutomaticOptionsTest, ResidualBoundsGoByTheFirstBatchsMiddlingResidual) {
  const std::vector<PreparedRequest> prepared = context.prepare(std::span(requests).first(5));
  const Tensor z = context.optimize_values(prepared, 1, {.steps = 4, .lr = 0.1}).z_ND;
  const Tensor now = context.collect(prepared, {HookPoint::kBlockOut, 1}, ContextMean::kPlain);
  const double middle = (z - now).norm(2, 1).median().item<double>();
  const EditOutcome outcome = edit("method: nse, layers: [0, 1]", std::span(requests).first(5)).outcome;
  ASSERT_EQ(outcome.chosen.size(), 4u);
  EXPECT_EQ(outcome.chosen[0].option, "residual_above");
  EXPECT_EQ(outcome.chosen[1].option, "residual_below");
  for (const size_t i : {0, 1}) {
    EXPECT_EQ(outcome.chosen[i].layer, 1);
    EXPECT_NEAR(outcome.chosen[i].value, (i == 0 ? 0.05 : 20) * middle, 1e-9 * middle);
  }
}

TEST_F(AutomaticOptionsTest, SharesAreNotThoseOfOtherStreams) {
  EditorState state;
  const std::span<const EditRequest> batch = std::span(requests).first(2);
  const EditOutcome some = edit("method: memit, layers: [0, 1]", batch, state).outcome;
  ASSERT_EQ(some.chosen.size(), 2u);
  EXPECT_NE(some.chosen[0].value, some.chosen[1].value) << "each layer has keys of its own";
  EXPECT_EQ(state.tensors.at("auto.covariance_weight.0").item<double>(), some.chosen[0].value);
  // BLUE solves each layer for itself
  EXPECT_EQ(edit("method: memit, layers: [0, 1, 2], blue: true", batch).outcome.chosen.back().layer, 2);
}

TEST_F(AutomaticOptionsTest, NoNumberIsTakenWhereKeysAreNothing) {
  const EditContext empty{
      model,     *tiny.tokenizer,
      {"{}"},    {.factor = [](int64_t) { return std::numeric_limits<double>::infinity() * covariance_FF(); }},
      {alone()},
  };
  EditorState state;
  WeightTransaction transaction(model);
  try {
    editor_from(cat("{method: memit, layers: [1]", kValuesAndEnd))
        ->edit(empty, std::span(requests).first(2), state, transaction);
    FAIL() << "nothing was thrown";
  } catch (const NumericError& error) {
    EXPECT_NE(std::string(error.what()).find("layer 1: editor.covariance_weight: auto"), std::string::npos)
        << error.what();
  }
  EXPECT_TRUE(state.tensors.empty());
}

std::string layers_text(const std::string& editor, int64_t n_layers) {
  ModelConfig config = TinyModel().config;
  config.n_layers = n_layers;
  std::string text;
  for (const WeightId& id : editor_from(editor)->targets(config))
    text += cat(id.kind == WeightKind::kGate ? "g" : id.kind == WeightKind::kUp ? "u" : "d", id.layer, " ");
  return text;
}

TEST(AutomaticLayers, GoByTheModelsDepth) {
  for (const char* method : {"memit", "emmet", "alphaedit", "pmet", "nse"})
    EXPECT_EQ(layers_text(cat("{method: ", method, "}"), 32), "d4 d5 d6 d7 d8 ") << method;
  const std::pair<int64_t, const char*> depths[] = {
      {80, "d19 d20 d21 d22 d23 "}, {28, "d3 d4 d5 d6 d7 "}, {12, "d0 d1 d2 "}, {8, "d0 d1 "}, {4, "d0 "}, {2, "d0 "}};
  for (const auto& [n_layers, expected] : depths)
    EXPECT_EQ(layers_text("{method: memit, layers: auto}", n_layers), expected);
  EXPECT_EQ(layers_text("{method: memit, blue: true}", 32), "d4 d8 ");
  EXPECT_EQ(layers_text("{method: rome}", 32), "d5 ");
  EXPECT_EQ(layers_text("{method: r-rome}", 4), "d0 ");
  EXPECT_EQ(layers_text("{method: ft, modules: auto}", 32), "d21 ");
  EXPECT_EQ(layers_text("{method: ft-m}", 2), "d1 ");
  EXPECT_EQ(layers_text("{method: ultraedit}", 32), "g16 u16 g17 u17 g18 u18 g19 u19 g20 u20 ");
  EXPECT_EQ(layers_text("{method: ultraedit}", 2), "g1 u1 ");
}

TEST(AutomaticOptions, RefuseWhatTheyCannotMean) {
  const auto refusal = [](const std::string& editor, int64_t n_layers = 8) {
    try {
      layers_text(editor, n_layers);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("nothing was thrown");
  };
  const std::pair<const char*, const char*> cases[] = {
      {"{method: memit, layers: [1, 0]}", "editor.layers: expected ascending numbers"},
      {"{method: memit, layers: [1, 1]}", "each once"},
      {"{method: memit, layers: automatic}", "editor.layers: expected auto or a list of integers of at least 0"},
      {"{method: memit, covariance_weight: automatic}", "expected auto or a number of at least 1e-300, got automatic"},
      {"{method: memit, covariance_weight: {realised_share: 1}}",
       "covariance_weight.realised_share: expected a number"},
      {"{method: memit, covariance_weight: {share: 0.5}}", "covariance_weight.share: unknown key"},
      {"{method: memit, targets: replay, blue: true}", "editor.blue: expected false with `targets: replay`"},
      {"{method: rome, targets: replay}", "editor.targets"},
      {"{method: pmet, targets: replay}", "editor.targets"},
      {"{method: memit, targets: forward}", "editor.targets: expected one of last, replay, got forward"},
      {"{method: alphaedit, null_space_below: {share: 0}}", "null_space_below.share"},
      {"{method: emmet, slack: 0, identity_weight: 1}", "covariance_weight: expected a number beside slack: 0"},
      {"{method: ultraedit, modules: automatic}", "editor.modules"}};
  for (const auto& [editor, part] : cases)
    EXPECT_NE(refusal(editor).find(part), std::string::npos) << editor << ": " << refusal(editor);
  EXPECT_NE(refusal("{method: memit, blue: true}", 3).find("editor.blue: expected at least two layers"),
            std::string::npos);
  EXPECT_NE(refusal("{method: memit}", 1).find("editor.layers: 0"), std::string::npos);
}

TEST_F(AutomaticOptionsTest, SpreadTheLastLayersValueWhereNobodyNamesTargets) {
  ModelConfig config = tiny.config;
  config.n_layers = 12;
  const std::vector<int64_t> first{0}, last{2};
  const auto layers = [&](const std::string& options) {
    return editor_from("{" + options + "}")->value_layers(config);
  };
  EXPECT_EQ(layers("method: memit, targets: replay"), first);
  EXPECT_EQ(layers("method: memit, history: true, targets: last"), last);
  EXPECT_EQ(layers("method: memit, values: {chunk_tokens: 9}"), last);
  EXPECT_EQ(layers("method: memit, layers: [0, 1, 2]"), last);
  EXPECT_EQ(layers("method: memit, blue: true"), (std::vector<int64_t>{0, 2}));
  for (const char* other : {"memit", "emmet", "alphaedit", "nse", "evoedit", "betaedit"})
    EXPECT_EQ(layers(std::string("method: ") + other), last) << other;
  EXPECT_EQ(layers("method: alphaedit, targets: replay"), first);
}

}  // namespace
}  // namespace lancet
