// What locate-then-edit methods share: equal keys, the norm anchor, history, and that edits reach what they aim at.
#include <gtest/gtest.h>
#include <torch/types.h>

#include "lancet/core/error.h"
#include "support/edit_setup.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::nmse;
using testing::TinyModel;

constexpr const char* kValues = "values: {steps: 4, lr: 0.1}, contexts: ['{}']";

struct LayeredEditorTest : public ::testing::Test {
  TinyModel tiny;
  CausalLM model = tiny.load();
  EditContext context{model,
                      *tiny.tokenizer,
                      {"{}"},
                      {.factor = [](int64_t) { return torch::diag(torch::linspace(0.5, 2.0, 48, torch::kDouble)); }},
                      {alone()}};
  std::vector<EditRequest> requests = testing::some_requests(3);

  /// Requests a and b have one text up to the subject's end, c another.
  static std::vector<EditRequest> equal_keys() {
    return parse_requests(
        parse_config("[{id: a, prompt: '{} was born in', subject: Tina Arena, target: Rome},"
                     " {id: c, prompt: '{} was born in', subject: Leon Blum, target: Paris},"
                     " {id: b, prompt: '{} died in', subject: Tina Arena, target: London}]",
                     "test"));
  }

  struct Result {
    std::vector<Tensor> deltas;  ///< deltas of the first weight, in order
    Tensor change;               ///< change of the first weight
    EditOutcome outcome;
    EditorState state;
  };
  Result edit(const std::string& options, const std::vector<EditRequest>& batch, EditorState state = {}) {
    const auto editor = testing::editor_from("{" + options + ", " + kValues + "}");
    WeightTransaction transaction(model);
    Result result;
    result.outcome = editor->edit(context, batch, state, transaction);
    if (!transaction.entries().empty()) {
      const WeightTransaction::Entry& entry = transaction.entries().front();
      for (const WeightDelta& delta : entry.deltas) result.deltas.push_back(to_dense(delta));
      result.change = entry.master - entry.base;
      for (const WeightDelta& delta : entry.deltas) {
        if (const auto* low_rank = std::get_if<LowRankDelta>(&delta)) columns_ += low_rank->left_OR.size(1);
      }
    }
    result.state = state;
    return result;
  }
  int64_t columns_ = 0;  ///< columns of the first weight's deltas, all edits
};

TEST_F(LayeredEditorTest, EqualKeysAsOneGetTheMeanTarget) {
  const std::vector<EditRequest> batch = equal_keys();
  const Result mean = edit("method: emmet, layers: [1], slack: 0, equal_keys: mean", batch);
  const std::vector<PreparedRequest> prepared = context.prepare(batch);
  const Tensor z = context.optimize_values(prepared, 1, {.steps = 4, .lr = 0.1}).z_ND;
  const Tensor keys = context.collect_keys(prepared, 1);
  const Tensor now = context.collect(prepared, {HookPoint::kBlockOut, 1}, ContextMean::kPlain);
  EXPECT_LE(nmse(mean.change.matmul(keys.select(1, 0)), (z[0] + z[2]) / 2 - now[0]), 1e-20);
  EXPECT_LE(nmse(mean.change.matmul(keys.select(1, 1)), z[1] - now[1]), 1e-20);
  ASSERT_EQ(mean.outcome.shared_keys.size(), 1u);
  EXPECT_EQ(mean.outcome.shared_keys[0].effect, "have the same key: they get one target, the mean of theirs");
  EXPECT_EQ(mean.outcome.shared_keys[0].groups, (std::vector<std::vector<int64_t>>{{0, 2}}));
  for (const RequestOutcome& request : mean.outcome.requests) EXPECT_NEAR(request.realised.value(), 1, 1e-10);
  EXPECT_EQ(mean.outcome.columns, (std::vector<int64_t>{0, 2, 1}));
  EXPECT_EQ(columns_, 3);
}

TEST_F(LayeredEditorTest, ReplayReachesTheLastLayersOwnValueAndSharesItAmongEqualKeys) {
  const Result replayed =
      edit("method: emmet, layers: [0, 1], slack: 0, targets: replay, equal_keys: mean", equal_keys());
  for (const RequestOutcome& request : replayed.outcome.requests) {
    EXPECT_NEAR(request.realised.value(), 1, 1e-10);
    EXPECT_EQ(request.realised_by_layer.size(), 2u);
  }
  EXPECT_EQ(replayed.outcome.columns, (std::vector<int64_t>{0, 2, 1}));
}

TEST_F(LayeredEditorTest, ValuesAreFoundWhereTheTargetsAre) {
  const auto layers = [&](const std::string& options) {
    return testing::editor_from("{" + options + "}")->value_layers(tiny.config);
  };
  EXPECT_EQ(layers("method: memit, layers: [0, 1, 2]"), (std::vector<int64_t>{2}));
  EXPECT_EQ(layers("method: memit, layers: [0, 1, 2], targets: replay, rect: {keep: 0.5}"), (std::vector<int64_t>{0}));
  EXPECT_EQ(layers("method: memit, layers: [0, 1, 2], blue: true"), (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(layers("method: rome, layers: [1]"), (std::vector<int64_t>{1}));
  EXPECT_TRUE(layers("method: ft, modules: {down: [1]}").empty());
}

TEST_F(LayeredEditorTest, EqualKeysSplitAreTwoBatches) {
  const std::vector<EditRequest> batch = equal_keys();
  const Result split = edit("method: memit, layers: [0, 1], equal_keys: split, history: true", batch);
  const auto editor =
      testing::editor_from(std::string("{method: memit, layers: [0, 1], history: true, ") + kValues + "}");
  WeightTransaction transaction(model);
  EditorState state;
  editor->edit(context, std::vector{batch[0], batch[1]}, state, transaction);
  editor->edit(context, std::vector{batch[2]}, state, transaction);
  ASSERT_EQ(split.deltas.size(), 2u);
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(split.deltas[i].equal(to_dense(transaction.entries().front().deltas[i])));
  EXPECT_EQ(split.outcome.columns, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_TRUE(split.state.tensors.at("keys.0").equal(state.tensors.at("keys.0")));
}

TEST_F(LayeredEditorTest, EqualKeysAreWarnedOfAndNoEquality) {
  const std::vector<SharedKeys> shared = edit("method: memit, layers: [1]", equal_keys()).outcome.shared_keys;
  ASSERT_EQ(shared.size(), 1u);
  EXPECT_NE(shared[0].effect.find("nearly the same key (cosine > 0.99)"), std::string::npos);
  EXPECT_EQ(shared[0].groups, (std::vector<std::vector<int64_t>>{{0, 2}}));
  EXPECT_THROW(edit("method: emmet, layers: [1], slack: 0", equal_keys()), NumericError);
}

TEST_F(LayeredEditorTest, ManyRequestsOfOneKeyAreOneGroup) {
  std::vector<EditRequest> batch;
  for (const char* target : {"Rome", "Paris", "London", "Oslo", "Bern"}) {
    batch.push_back(equal_keys().front());
    batch.back().id = target;
    batch.back().target = target;
  }
  // of every pass the same
  const Result result = edit("method: nse, layers: [1], passes: 2, residual_above: 0, residual_below: 1.0e+9", batch);
  ASSERT_EQ(result.outcome.shared_keys.size(), 1u);
  EXPECT_EQ(result.outcome.shared_keys[0].groups, (std::vector<std::vector<int64_t>>{{0, 1, 2, 3, 4}}));
}

/// Computes them by hand: W' k - W k against what the layer was asked for, and the model's own hidden states before and
/// after.
TEST_F(LayeredEditorTest, RealisedSharesAreWhatTheWeightsGiveAtTheKeys) {
  for (const char* method : {"method: memit, covariance_weight: 3", "method: pmet, covariance_weight: 3",
                             "method: memit, covariance_weight: 3, rect: {keep: 0.3}"}) {
    const bool is_pmet = std::string_view(method).find("pmet") != std::string_view::npos;
    const auto editor = testing::editor_from(std::string("{") + method + ", layers: [0, 1], " + kValues + "}");
    const std::vector<PreparedRequest> prepared = context.prepare(requests);
    const HookPoint point = is_pmet ? HookPoint::kMlpOut : HookPoint::kBlockOut;
    const auto states = [&] { return context.collect(prepared, {point, 1}, ContextMean::kPlain); };
    const Tensor z_ND = context.optimize_values(prepared, 1, *editor->values()).z_ND, before_ND = states();
    WeightTransaction transaction(model);
    EditorState state;
    const EditOutcome outcome = editor->edit(context, requests, state, transaction);
    const Tensor after_ND = states();
    const std::vector<WeightTransaction::Entry>& entries = transaction.entries();
    const std::vector<Tensor> keys{context.collect_keys(prepared, 0), context.collect_keys(prepared, 1)};
    model.set_weight({WeightKind::kDown, 1}, entries[1].original);
    const Tensor between_ND = states();
    const std::vector<Tensor> asked{(z_ND - before_ND) / (is_pmet ? std::sqrt(2.0) : 2.0), z_ND - between_ND};
    for (int64_t n = 0; n < 3; ++n) {
      const RequestOutcome& request = outcome.requests[static_cast<size_t>(n)];
      ASSERT_EQ(request.realised_by_layer.size(), 2u);
      for (size_t layer = 0; layer < 2; ++layer) {
        const Tensor key_F = keys[layer].select(1, n), asked_D = asked[layer][n];
        const Tensor given_D = entries[layer].master.matmul(key_F) - entries[layer].base.matmul(key_F);
        EXPECT_EQ(request.realised_by_layer[layer].layer, static_cast<int64_t>(layer));
        EXPECT_NEAR(request.realised_by_layer[layer].share,
                    (given_D.dot(asked_D) / asked_D.dot(asked_D)).item<double>(), 1e-9)
            << method;
      }
      const Tensor whole_D = z_ND[n] - before_ND[n];
      EXPECT_NEAR(request.realised.value(),
                  ((after_ND[n] - before_ND[n]).dot(whole_D) / whole_D.dot(whole_D)).item<double>(), 1e-9)
          << method;
    }
  }
}

TEST_F(LayeredEditorTest, RealisedSharesCountEveryPass) {
  const std::string nse = "method: nse, layers: [0, 1], covariance_weight: 1, history: false, residual_below: 1.0e+9";
  const std::vector<PreparedRequest> prepared = context.prepare(requests);
  const auto editor = testing::editor_from("{" + nse + ", passes: 3, residual_above: 0, " + kValues + "}");
  const auto states = [&] { return context.collect(prepared, {HookPoint::kBlockOut, 1}, ContextMean::kPlain); };
  const Tensor before_ND = states(), z_ND = context.optimize_values(prepared, 1, *editor->values()).z_ND;
  WeightTransaction transaction(model);
  EditorState state;
  const EditOutcome outcome = editor->edit(context, requests, state, transaction);
  const Tensor way_ND = z_ND - before_ND, gone_ND = states() - before_ND;
  for (int64_t n = 0; n < 3; ++n)
    EXPECT_NEAR(outcome.requests[static_cast<size_t>(n)].realised.value(),
                (gone_ND[n].dot(way_ND[n]) / way_ND[n].dot(way_ND[n])).item<double>(), 1e-9);
}

TEST_F(LayeredEditorTest, PassesGoOnWhileTargetsAreFar) {
  const std::string nse = "method: nse, layers: [0, 1], covariance_weight: 1, history: false, residual_below: 1.0e+9";
  const auto columns = [](const std::vector<int64_t>& of, size_t times) {
    std::vector<int64_t> all;
    for (size_t i = 0; i < times; ++i) all.insert(all.end(), of.begin(), of.end());
    return all;
  };
  const Result memit = edit("method: memit, layers: [0, 1], covariance_weight: 1", requests);
  const Result once = edit(nse + ", passes: 1, residual_above: 0", requests);
  ASSERT_EQ(once.deltas.size(), 1u);
  EXPECT_TRUE(once.deltas[0].equal(memit.deltas[0]));
  const Result thrice = edit(nse + ", passes: 3, residual_above: 0", requests);
  ASSERT_EQ(thrice.deltas.size(), 3u);
  EXPECT_TRUE(thrice.deltas[0].equal(memit.deltas[0]));
  EXPECT_LT(thrice.deltas[1].norm().item<double>(), memit.deltas[0].norm().item<double>());
  EXPECT_EQ(thrice.outcome.columns, columns({0, 1, 2}, 3));
  EXPECT_TRUE(thrice.outcome.requests[0].skipped.empty());
  // nobody is far enough: a change of nothing, in as many columns
  const Result none = edit(nse + ", passes: 3, residual_above: 1.0e+8", requests);
  ASSERT_EQ(none.deltas.size(), 1u);
  EXPECT_EQ(none.deltas[0].norm().item<double>(), 0);
  EXPECT_EQ(none.outcome.columns, columns({0, 1, 2}, 1));
  EXPECT_FALSE(none.outcome.requests[2].realised.has_value());
  EXPECT_NE(none.outcome.requests[2].skipped.find("is not between editor.residual_above, 1e+08, and"),
            std::string::npos)
      << none.outcome.requests[2].skipped;
}

TEST_F(LayeredEditorTest, ValuesMayBeThoseOfTheUneditedModel) {
  const auto editor = testing::editor_from(
      std::string("{method: nse, layers: [1], residual_above: 0, passes: 1, history: false, ") + kValues + "}");
  WeightTransaction transaction(model);
  EditorState state;
  const EditOutcome first = editor->edit(context, requests, state, transaction);
  const Tensor edited = model.weight({WeightKind::kDown, 1}).clone();
  const EditOutcome again = editor->edit(context, requests, state, transaction);
  EXPECT_EQ(first.requests[0].losses, again.requests[0].losses);
  EXPECT_FALSE(model.weight({WeightKind::kDown, 1}).equal(edited));
  transaction.put_unedited();
  const Tensor unedited = model.weight({WeightKind::kDown, 1}).clone();
  EXPECT_FALSE(unedited.equal(edited));
  transaction.rollback();
  EXPECT_TRUE(model.weight({WeightKind::kDown, 1}).equal(unedited));
}

TEST_F(LayeredEditorTest, NeuronsThatAreNotChosenStay) {
  const Result result = edit("method: nse, layers: [1], residual_above: 0, neurons: 0.5, passes: 1", requests);
  const Tensor size_F = context.collect_keys(context.prepare(requests), 1).abs().sum(1);
  const Tensor changed_F = result.change.abs().sum(0) > 0;
  const double share = size_F.masked_select(changed_F).sum().item<double>() / size_F.sum().item<double>();
  EXPECT_LE(share, 0.5);
  EXPECT_GT(share, 0.4);
  EXPECT_GE(size_F.masked_select(changed_F).min().item<double>(),
            size_F.masked_select(changed_F.logical_not()).max().item<double>());
}

TEST_F(LayeredEditorTest, TheAnchorsNormIsWhatTheEditReaches) {
  EditorState state;
  state.tensors["norm_anchor.1"] = torch::tensor(3.5, torch::kDouble);
  const std::string options = "method: emmet, layers: [1], slack: 0, norm_anchor: {mode: rescale, limit: 100}";
  const std::vector<PreparedRequest> prepared = context.prepare(requests);
  const Tensor keys = context.collect_keys(prepared, 1);
  const Tensor before = context.collect(prepared, {HookPoint::kBlockOut, 1}, ContextMean::kPlain);
  const Tensor after = before + edit(options, requests, state).change.matmul(keys).t();
  EXPECT_LE(nmse(after.norm(2, 1), torch::full({3}, 3.5, torch::kDouble)), 1e-20);
  // without one in the state, the first batch's own mean is the anchor, and stays
  const Result first = edit(options, requests);
  const Tensor z = context.optimize_values(prepared, 1, {.steps = 4, .lr = 0.1}).z_ND;
  EXPECT_NEAR(first.state.tensors.at("norm_anchor.1").item<double>(), z.norm(2, 1).mean().item<double>(), 1e-12);
}

TEST_F(LayeredEditorTest, ValuesAboveTheLimitAreLeftOut) {
  const Tensor norms = context.optimize_values(context.prepare(requests), 1, {.steps = 4, .lr = 0.1}).z_ND.norm(2, 1);
  const int64_t largest = norms.argmax().item<int64_t>();
  EditorState state;  // the limit lies between the largest norm and the others
  const double others = std::get<0>(norms.sort())[1].item<double>();
  state.tensors["norm_anchor.1"] = torch::tensor((norms.max().item<double>() + others) / 4, torch::kDouble);
  const std::string options = "method: memit, layers: [0, 1], norm_anchor: {mode: skip, limit: 2}";
  const Result skipped = edit(options, requests, state);
  std::vector<EditRequest> rest = requests;
  rest.erase(rest.begin() + largest);
  for (int64_t i = 0; i < 3; ++i)
    EXPECT_EQ(skipped.outcome.requests[static_cast<size_t>(i)].skipped.empty(), i != largest);
  EXPECT_LE(nmse(skipped.change, edit("method: memit, layers: [0, 1]", rest).change), 1e-24);
  EXPECT_EQ(skipped.outcome.columns.size(), 3u);
}

TEST_F(LayeredEditorTest, RomeReachesItsValue) {
  const std::vector<EditRequest> one{requests[0]};
  const std::vector<PreparedRequest> prepared = context.prepare(one);
  const OptimizedValues values =
      context.optimize_values(prepared, 1, {.steps = 4, .lr = 0.1, .site = ValueSite::kMlpOut});
  const Tensor key = context.collect_keys(prepared, 1).select(1, 0);
  const Tensor before = context.collect(prepared, {HookPoint::kMlpOut, 1}, ContextMean::kPlain)[0];
  for (const char* method : {"method: rome", "method: r-rome, keys: prompt", "method: r-rome, keys: prefix",
                             "method: rome, covariance: false"}) {
    const Result result = edit(std::string(method) + ", layers: [1]", one);
    EXPECT_LE(nmse(before + result.change.matmul(key), values.z_ND[0]), 1e-20) << method;
  }
}

TEST_F(LayeredEditorTest, HistoryHoldsEarlierEditsInPlace) {
  const std::vector<EditRequest> more = testing::some_requests(9);
  const std::vector<EditRequest> later(more.begin() + 6, more.end());
  const std::string options = "method: memit, layers: [1], covariance_weight: 1e-3";
  const Result first = edit(options + ", history: true", requests);
  const Tensor keys = context.collect_keys(context.prepare(requests), 1);
  EXPECT_EQ(first.state.tensors.at("keys.1").sizes(), keys.sizes());
  const Tensor held = edit(options + ", history: true", later, first.state).change.matmul(keys);
  const Tensor free = edit(options, later).change.matmul(keys);
  EXPECT_LT(held.norm().item<double>(), 0.5 * free.norm().item<double>());
}

TEST_F(LayeredEditorTest, RefusesWrongOptions) {
  const auto refused = [](const std::string& yaml) {
    try {
      testing::editor_from(yaml);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("nothing was thrown");
  };
  const std::vector<std::pair<std::string, std::string>> cases{
      {"{method: memit, layers: [1], equal_keys: means}", "equal_keys"},
      {"{method: memit, layers: [1], norm_anchor: {mode: skip, limit: 0.5}}", "norm_anchor.limit"},
      {"{method: rome, layers: [1], keys: prompt}", "editor.keys"},
      {"{method: r-rome, layers: [1], keys: suffix}", "editor.keys"},
      {"{method: emmet, layers: [1], slack: -1}", "editor.slack"},
      {"{method: alphaedit, layers: [1], null_space_below: 0}", "null_space_below"},
      {"{method: memit, layers: [1], values: {nll_factor: 1}}", "nll_factor"},
      {"{method: ft, modules: {down: [1]}, norm_constraint: 0.1}", "norm_constraint"},
      {"{method: ft-l, modules: {}}", "modules"},
      {"{method: ft-m, whiten: 0, margin: -1}", "whiten"},
      {"{method: ft-m, modules: {down: [1, 1]}}", "stands twice"},
      {"{method: ultraedit, modules: {gate: [1]}, tokens: some}", "tokens"},
      {"{method: memit, layers: [1], rect: {keep: 1.5}}", "rect.keep"},
      {"{method: memit, layers: [1], prune: {log_base: 1}}", "prune.log_base"},
      {"{method: memit, text_budget: 0.1, rect: {}}", "editor.text_budget: expected it absent with rect"},
      {"{method: memit, text_budget: 0.1, history: true}", "editor.history: expected false with text_budget"},
      {"{method: memit, text_budget: 0.1, identity_weight: 1}", "editor.identity_weight: expected 0"},
      {"{method: memit, text_budget: 0.1, values: {chunk_tokens: 9}}", "editor.text_budget: expected 0 with"},
      {"{method: memit, targets: replay, values: {chunk_tokens: 9}}", "editor.targets: expected last with"},
      {"{method: memit, blue: true, values: {chunk_tokens: 9}}", "editor.blue: expected false with"},
      {"{method: memit, equal_keys: mean, values: {chunk_tokens: 9}}", "editor.equal_keys: expected warn with"},
      {"{method: memit, norm_anchor: {mode: skip}, values: {chunk_tokens: 9}}",
       "editor.norm_anchor: expected mode: off"},
      {"{method: memit, contexts: {chat: '[{}]'}, values: {chunk_tokens: 9}}",
       "editor.contexts: expected no chat with"},
      {"{method: memit, values: {chunk_tokens: 9, kl: 0.1}}", "editor.values.kl: expected 0 with chunk_tokens"},
      {"{method: rome, values: {chunk_tokens: 9}}", "editor.values.chunk_tokens: expected 0: memit"},
      {"{method: alphaedit, text_budget: 0.1}", "editor.text_budget"}};
  for (const auto& [yaml, part] : cases)
    EXPECT_NE(refused(yaml).find(part), std::string::npos) << yaml << refused(yaml);
}

/// EvoEdit's promise: a batch's change does nothing at the keys of earlier ones, whatever their number.
TEST(EvoEdit, LeavesStoredKeysAloneExactly) {
  const testing::TinyModel tiny;
  CausalLM model = tiny.load();
  const EditContext context(model, *tiny.tokenizer, {"{}"},
                            {.null_space =
                                 [](int64_t) {
                                   const Tensor spectrum = torch::linspace(0.5, 2.0, 48, torch::kDouble);
                                   return make_null_space(spectrum.diag(), {1.5}, "test");
                                 }},
                            {alone()});
  const auto editor = testing::editor_from(
      "{method: evoedit, layers: [1], null_space_below: 1.5, ridge: 0.1, values: {steps: 3, lr: 0.1}, contexts: "
      "['{}']}");
  const std::vector<EditRequest> requests = testing::some_requests(6);
  WeightTransaction transaction(model);
  EditorState state = editor->make_state();
  for (size_t batch = 0; batch < 3; ++batch) {
    const Tensor earlier = columns_of(state, "keys.1");
    editor->edit(context, std::span(requests).subspan(2 * batch, 2), state, transaction);
    const Tensor change = to_dense(transaction.entries().at(0).deltas.at(batch));
    const Tensor own = columns_of(state, "keys.1").narrow(1, static_cast<int64_t>(2 * batch), 2);
    EXPECT_GT(change.matmul(own).norm().item<double>(),
              1e-3 * change.norm().item<double>() * own.norm().item<double>());
    if (!earlier.defined()) continue;
    EXPECT_LE(change.matmul(earlier).norm().item<double>(),
              1e-12 * change.norm().item<double>() * earlier.norm().item<double>());
  }
}

/// What a filter takes off one change, the next makes up for: without a filter there is nothing, and with one the sum
/// of what was wanted is what is applied but for the last error.
TEST(ErrorFeedback, NeedsAFilterAndCarriesTheLastErrorAlone) {
  EXPECT_THROW(testing::editor_from("{method: memit, layers: [1], error_feedback: true}"), ConfigError);
  const testing::TinyModel tiny;
  CausalLM model = tiny.load();
  const auto identity = [](int64_t) { return torch::eye(48, torch::kDouble); };
  const EditContext context(model, *tiny.tokenizer, {"{}"}, {.factor = identity}, {alone()});
  const auto editor = testing::editor_from(
      "{method: memit, layers: [1], covariance_weight: 1, history: true, rect: {keep: 0.3}, error_feedback: true, "
      "values: "
      "{steps: 3, lr: 0.1}, contexts: ['{}']}");
  const std::vector<EditRequest> requests = testing::some_requests(4);
  WeightTransaction transaction(model);
  EditorState state = editor->make_state();
  editor->edit(context, std::span(requests).first(2), state, transaction);
  const Tensor first_lost = state.tensors.at("lost.1");
  EXPECT_GT(first_lost.norm().item<double>(), 0);
  editor->edit(context, std::span(requests).subspan(2), state, transaction);
  const Tensor wanted = to_dense(transaction.entries()[0].deltas[1]) - state.tensors.at("lost.1");
  // what was wanted, less the error that it takes back, has the rank of the two keys
  const Tensor values = at::linalg_svdvals(wanted + first_lost);
  EXPECT_LE(values[2].item<double>(), 1e-10 * values[0].item<double>());
}

}  // namespace
}  // namespace lancet
