// Causal tracing against whole passes of one row, and what must hold whatever the model.
#include "lancet/tracing/causal_trace.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <map>

#include "lancet/core/error.h"
#include "lancet/io/files.h"
#include "lancet/requests/request.h"
#include "lancet/tracing/trace_noise.h"
#include "lancet/tracing/trace_summary.h"
#include "support/family_models.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::TempDir;
using testing::TinyModel;

constexpr double kTolerance = 1e-12;

/// Prompts of different lengths; subjects in front, within and at the end.
std::vector<TracedFact> some_facts() {
  return {{{{1, 17, 400, 8, 99}, 1, 3}, 5, 0},
          {{{1, 5, 2000}, 2, 3}, 7, 1},
          {{{1, 2000, 3, 77, 3, 1000, 12}, 3, 6}, 9, 4},
          {{{30, 31, 32}, 0, 2}, 30, 7}};
}

TraceOptions some_options() { return {.samples = 2, .noise = 3, .window = 2, .seed = 11}; }

/// One row, one whole pass: `put_back` at a token, in the layers' outputs at a point.
struct PutBack {
  HookPoint point;
  LayerRange layers;
  int64_t token;
};

double plain_probability(const CausalLM& model, const TracedFact& fact, const Tensor& added_TD,
                         const std::vector<PutBack>& put_back) {
  const torch::NoGradGuard no_grad;
  const TokenBatch batch = make_batch(std::span(&fact.prompt.ids, 1));
  const Tensor embedded = model.embed(batch.ids_BT, batch.sequence);
  std::map<HookSite, Tensor> clean;
  HookSet watch, replace;
  for (const PutBack& state : put_back)
    for (int64_t layer = state.layers.begin; layer < state.layers.end; ++layer) {
      const HookSite site{state.point, layer};
      watch.observe(site, [&clean, site](const Tensor& value) { clean[site] = value; });
      replace.replace(site, [&clean, site, token = state.token](const Tensor& value) {
        Tensor changed = value.clone();
        changed.select(1, token).copy_(clean.at(site).select(1, token));
        return changed;
      });
    }
  model.run_layers(embedded, batch.sequence, model.all_layers(), watch);
  const Tensor h = model.run_layers(embedded + added_TD, batch.sequence, model.all_layers(), replace);
  return torch::softmax(model.logits(h.select(1, -1)), 1)[0][fact.object].item<double>();
}

/// What is added to a prompt's embeddings: [T, D].
Tensor added_noise(const TracedFact& fact, const TraceOptions& options, int64_t sample, int64_t dims) {
  Tensor added = torch::zeros({static_cast<int64_t>(fact.prompt.ids.size()), dims}, torch::kDouble);
  const int64_t tokens = fact.prompt.end - fact.prompt.first;
  added.slice(0, fact.prompt.first, fact.prompt.end) =
      options.noise *
      trace_noise({options.seed, static_cast<uint64_t>(fact.index), static_cast<uint64_t>(sample)}, tokens, dims);
  return added;
}

double plain_mean(const CausalLM& model, const TracedFact& fact, const TraceOptions& options,
                  const std::vector<PutBack>& put_back) {
  double sum = 0;
  for (int64_t sample = 0; sample < options.samples; ++sample)
    sum += plain_probability(model, fact, added_noise(fact, options, sample, model.config().d_model), put_back);
  return sum / static_cast<double>(options.samples);
}

PutBack plain_state(const TraceOptions& options, TraceKind kind, int64_t token, int64_t layer, int64_t n_layers) {
  if (kind == TraceKind::kHidden) return {HookPoint::kBlockOut, {layer, layer + 1}, token};
  return {kind == TraceKind::kMlp ? HookPoint::kMlpOut : HookPoint::kAttnOut,
          trace_window(layer, options.window, n_layers), token};
}

/// Compares relative to how far the noise moves the probability.
void expect_whole_passes(const CausalLM& model, const std::vector<TracedFact>& facts, const TraceOptions& options) {
  const int64_t n_layers = model.config().n_layers;
  const std::vector<FactTrace> traces = trace_facts(model, facts, options, alone());
  for (size_t f = 0; f < facts.size(); ++f) {
    const Tensor nothing = torch::zeros({1, 1}, torch::kDouble);
    const double moved = std::abs(traces[f].clean - traces[f].corrupted);
    EXPECT_NEAR(traces[f].clean, plain_probability(model, facts[f], nothing, {}), kTolerance);
    EXPECT_NEAR(traces[f].corrupted, plain_mean(model, facts[f], options, {}), kTolerance);
    EXPECT_GT(moved, 1e-8);
    for (size_t k = 0; k < options.kinds.size(); ++k)
      for (int64_t token = 0; token < traces[f].restored_TL[k].size(0); ++token)
        for (int64_t layer = 0; layer < n_layers; ++layer)
          EXPECT_NEAR(
              traces[f].restored_TL[k][token][layer].item<double>(),
              plain_mean(model, facts[f], options, {plain_state(options, options.kinds[k], token, layer, n_layers)}),
              std::min(kTolerance, 1e-3 * moved))
              << "fact " << f << ", " << trace_kind_name(options.kinds[k]) << ", token " << token << ", layer "
              << layer;
  }
}

TEST(CausalTrace, EqualsWholePassesOfOneRow) {
  const TinyModel tiny;
  const CausalLM model = tiny.load();
  for (const int64_t batch_tokens : {int64_t{1}, int64_t{60}, kForwardTokens}) {
    TraceOptions options = some_options();
    options.batch_tokens = batch_tokens;
    expect_whole_passes(model, some_facts(), options);
  }
}

/// Mixers in attention's place and beside it, and layers that have no MLP, or nothing else.
TEST(CausalTrace, EqualsWholePassesInHybrids) {
  const auto& families = testing::family_models();
  const std::vector<TracedFact> facts{some_facts().back()};
  for (const std::string name : {"bamba", "falcon_h1", "jamba", "nemotron_h"}) {
    SCOPED_TRACE(name);
    const auto hybrid = std::ranges::find(families, name, &testing::FamilyModel::name);
    ASSERT_NE(hybrid, families.end());
    const TinyModel tiny(hybrid->config, 1);
    TraceOptions options = some_options();
    options.window = 1;
    expect_whole_passes(tiny.load(), facts, options);
  }
}

TEST(CausalTrace, WithoutNoiseEveryRunIsTheCleanOne) {
  const TinyModel tiny;
  const CausalLM model = tiny.load();
  TraceOptions options = some_options();
  options.noise = 0;
  for (const FactTrace& trace : trace_facts(model, some_facts(), options, alone())) {
    EXPECT_NEAR(trace.corrupted, trace.clean, kTolerance);
    for (const Tensor& map_TL : trace.restored_TL) EXPECT_LE((map_TL - trace.clean).abs().max().item<double>(), 1e-12);
  }
}

TEST(CausalTrace, TheOnlyCorruptedTokenPutBackGivesTheCleanRun) {
  const TinyModel tiny;
  const CausalLM model = tiny.load();
  // The subject is the last token alone: nothing else is corrupted, and nothing after it has seen it.
  const std::vector<TracedFact> facts{{{{1, 5, 2000, 8}, 3, 4}, 7, 1}};
  const FactTrace trace = trace_facts(model, facts, some_options(), alone()).front();
  EXPECT_LE((trace.restored_TL[0][3] - trace.clean).abs().max().item<double>(), kTolerance);
  EXPECT_GT((trace.restored_TL[1][3] - trace.clean).abs().min().item<double>(), 1e-9) << "the noise itself stays";
}

TEST(CausalTrace, TheSubjectsEmbeddingsPutBackGiveTheCleanRun) {
  const TinyModel tiny;
  const CausalLM model = tiny.load();
  const TracedFact fact = some_facts()[0];
  const std::vector<PutBack> subject{{HookPoint::kBlockIn, {0, 1}, 1}, {HookPoint::kBlockIn, {0, 1}, 2}};
  const Tensor nothing = torch::zeros({1, 1}, torch::kDouble);
  EXPECT_NEAR(plain_mean(model, fact, some_options(), subject), plain_probability(model, fact, nothing, {}),
              kTolerance);
}

TEST(CausalTrace, AWindowOfAllLayersIsTheSameAtEveryLayer) {
  const TinyModel tiny;
  const CausalLM model = tiny.load();
  TraceOptions options = some_options();
  options.window = 8;
  for (const FactTrace& trace : trace_facts(model, some_facts(), options, alone()))
    for (const size_t k : {size_t{1}, size_t{2}}) {
      const Tensor& map_TL = trace.restored_TL[k];
      EXPECT_LE((map_TL - map_TL.select(1, 0).unsqueeze(1)).abs().max().item<double>(), kTolerance);
    }
}

TEST(CausalTrace, WindowsAreCentredAndCutAtTheEnds) {
  const auto window = [](int64_t layer) {
    const LayerRange range = trace_window(layer, 10, 48);
    return std::pair(range.begin, range.end);
  };
  EXPECT_EQ(window(0), std::pair(int64_t{0}, int64_t{5}));
  EXPECT_EQ(window(20), std::pair(int64_t{15}, int64_t{25}));
  EXPECT_EQ(window(47), std::pair(int64_t{42}, int64_t{48}));
  EXPECT_EQ(trace_window(3, 1, 8).begin, 3);
  EXPECT_EQ(trace_window(3, 1, 8).end, 4);
}

TEST(CausalTrace, PredictsTheLikeliestToken) {
  const TinyModel tiny;
  const CausalLM model = tiny.load();
  const std::vector<Prediction> found = predict_next(model, testing::kRows, alone());
  for (size_t i = 0; i < found.size(); ++i) {
    const TokenBatch batch = make_batch(std::span(&testing::kRows[i], 1));
    const Tensor h = model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence, model.all_layers());
    const Tensor p = torch::softmax(model.logits(h.select(1, -1)), 1)[0];
    EXPECT_EQ(found[i].token, p.argmax().item<int64_t>());
    EXPECT_NEAR(found[i].probability, p.max().item<double>(), kTolerance);
  }
}

TEST(TraceNoise, IsStandardNormalAndDependsOnItsKeyAlone) {
  const Tensor noise = trace_noise({3, 4, 5}, 100, 1000);
  EXPECT_NEAR(noise.mean().item<double>(), 0, 0.01);
  EXPECT_NEAR(noise.square().mean().item<double>(), 1, 0.02);
  EXPECT_NEAR(noise.pow(4).mean().item<double>(), 3, 0.15);
  EXPECT_TRUE(torch::equal(noise, trace_noise({3, 4, 5}, 100, 1000)));
  EXPECT_TRUE(torch::equal(noise[0], trace_noise({3, 4, 5}, 1, 1000)[0]));
  for (const NoiseKey key : {NoiseKey{4, 4, 5}, NoiseKey{3, 5, 5}, NoiseKey{3, 4, 6}})
    EXPECT_LT((noise * trace_noise(key, 100, 1000)).mean().abs().item<double>(), 0.02);
}

TEST(TraceSummary, EachTokenIsInOneClass) {
  const auto classes = [](const SubjectTokens& prompt) {
    std::vector<int> found;
    for (int64_t token = 0; token < static_cast<int64_t>(prompt.ids.size()); ++token) {
      const std::optional<TokenClass> one = token_class(prompt, token);
      found.push_back(one ? static_cast<int>(*one) : -1);
    }
    return found;
  };
  EXPECT_EQ(classes({{1, 2, 3, 4, 5, 6, 7, 8, 9}, 1, 5}), (std::vector{-1, 0, 1, 1, 2, 3, 4, 4, 5}));
  EXPECT_EQ(classes({{1, 2, 3}, 1, 2}), (std::vector{-1, 2, 5})) << "one token of the subject, one after it";
  EXPECT_EQ(classes({{1, 2, 3}, 1, 3}), (std::vector{-1, 0, 2})) << "nothing after the subject";
}

TEST(TraceSummary, AveragesByClassAndFindsThePeak) {
  const std::vector<TracedFact> facts{{{{1, 2, 3, 4}, 1, 2}, 0, 0}, {{{1, 2, 3, 4, 5}, 1, 3}, 0, 1}};
  const auto map = [](std::vector<std::vector<double>> rows) {
    Tensor tensor = torch::zeros({static_cast<int64_t>(rows.size()), 3}, torch::kDouble);
    for (size_t i = 0; i < rows.size(); ++i) tensor[static_cast<int64_t>(i)] = torch::tensor(rows[i], torch::kDouble);
    return tensor;
  };
  const TraceOptions options{.kinds = {TraceKind::kMlp}};
  const std::vector<FactTrace> traces{
      {0.9, 0.1, {map({{.1, .1, .1}, {.3, .5, .48}, {.1, .1, .1}, {.1, .1, .7}})}},
      {0.7, 0.3, {map({{.3, .3, .3}, {.4, .3, .3}, {.5, .9, .9}, {.3, .3, .3}, {.3, .3, .5}})}}};
  const TraceSummary summary = summarize(facts, traces, options);
  EXPECT_NEAR(summary.total_effect, 0.6, 1e-12);
  EXPECT_EQ(summary.facts_by_class, (std::vector<int64_t>{1, 0, 2, 2, 0, 2}));
  const Tensor& effect_CL = summary.kinds[0].effect_CL;
  EXPECT_LE((effect_CL[2] - torch::tensor({.2, .5, .49}, torch::kDouble)).abs().max().item<double>(), 1e-12);
  EXPECT_LE((effect_CL[0] - torch::tensor({.1, 0., 0.}, torch::kDouble)).abs().max().item<double>(), 1e-12);
  EXPECT_LE((effect_CL[5] - torch::tensor({0., 0., .4}, torch::kDouble)).abs().max().item<double>(), 1e-12);
  EXPECT_EQ(summary.kinds[0].peak_layer, 1);
  EXPECT_NEAR(summary.kinds[0].peak, 0.5, 1e-12);
  EXPECT_EQ(summary.suggested_layers, (std::vector<int64_t>{1, 2}));
}

TEST(TraceFacts, TheSubjectsTokensAreFound) {
  const TinyModel tiny;
  const SubjectTokens found =
      find_subject(*tiny.tokenizer, fill_prompt("The mother tongue of {} is", "Danielle Darrieux", "test"));
  const std::vector<TokenId> subject(found.ids.begin() + found.first, found.ids.begin() + found.end);
  EXPECT_EQ(tiny.tokenizer->decode(subject), "Danielle Darrieux");
  EXPECT_GT(found.first, 1);
  EXPECT_LT(found.end, static_cast<int64_t>(found.ids.size()));
}

}  // namespace
}  // namespace lancet
