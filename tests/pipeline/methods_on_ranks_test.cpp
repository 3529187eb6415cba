// Every method by one rank and by several: the same change, on every rank bit by bit.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <stdexcept>

#include "lancet/core/error.h"
#include "support/edit_setup.h"
#include "support/thread_ranks.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::nmse;
using testing::TinyModel;

constexpr double kThreshold = 1.0;

/// What statistics give, on root alone.
LayerStatistics algebra_of(const Communicator& communicator) {
  const bool is_root = communicator.is_root();
  const auto covariance_FF = [is_root] {
    if (!is_root) throw std::logic_error("algebra is root's");
    return torch::diag(torch::linspace(0.5, 2.0, 48, torch::kDouble));
  };
  return {.factor = [=](int64_t) { return covariance_FF().sqrt(); },
          .null_space = [=](int64_t) { return make_null_space(covariance_FF(), {kThreshold}, "test"); },
          .curvature =
              [=](int64_t) {
                const Tensor gradients_DD = torch::diag(torch::linspace(0.5, 3.0, 32, torch::kDouble));
                return Curvature{make_spectrum(covariance_FF(), 100, "test"), make_spectrum(gradients_DD, 100, "test")};
              }};
}

struct Result {
  std::vector<Tensor> changes, weights;  ///< one for each edited weight
  std::map<std::string, Tensor> state;
  EditOutcome outcome;
};

/// Two batches after one another, and what is done after the last one.
Result edit(const TinyModel& tiny, const std::string& options, Communicator& communicator) {
  CausalLM model = tiny.load();
  const auto editor = testing::editor_from("{" + options + "}");
  const ContextOptions* contexts = editor->contexts();
  const EditContext context(model, *tiny.tokenizer,
                            contexts != nullptr ? contexts->templates : std::vector<std::string>{},
                            algebra_of(communicator), {communicator});
  const std::vector<EditRequest> requests = testing::some_requests(7);
  const std::span<const EditRequest> all(requests);
  WeightTransaction transaction(model);
  EditorState state = editor->make_state();
  Result result;
  editor->edit(context, all.first(4), state, transaction);
  result.outcome = editor->edit(context, all.subspan(4), state, transaction);
  editor->finish(context, transaction);
  result.state = state.tensors;
  for (const WeightTransaction::Entry& entry : transaction.entries()) {
    result.changes.push_back(entry.master - entry.base);
    result.weights.push_back(model.weight(entry.id).clone());
  }
  return result;
}

void expect_equal_method(const Result& run, const Result& single) {
  ASSERT_EQ(run.changes.size(), single.changes.size());
  for (size_t i = 0; i < single.changes.size(); ++i) {
    EXPECT_GT(single.changes[i].norm().item<double>(), 0.0);
    EXPECT_LE(nmse(run.changes[i], single.changes[i]), 1e-20);
  }
  EXPECT_EQ(run.outcome.columns, single.outcome.columns);
  ASSERT_EQ(run.outcome.requests.size(), single.outcome.requests.size());
  for (size_t i = 0; i < single.outcome.requests.size(); ++i) {
    const RequestOutcome &got = run.outcome.requests[i], &expected = single.outcome.requests[i];
    EXPECT_EQ(got.steps, expected.steps);
    EXPECT_EQ(got.skipped.empty(), expected.skipped.empty());
    EXPECT_NEAR(got.initial_loss.value(), expected.initial_loss.value(), 1e-10);
  }
}

void expect_same_bits(const Result& run, const Result& root) {
  ASSERT_EQ(run.weights.size(), root.weights.size());
  for (size_t i = 0; i < root.weights.size(); ++i) EXPECT_TRUE(run.weights[i].equal(root.weights[i]));
  ASSERT_EQ(run.state.size(), root.state.size());
  for (const auto& [name, tensor] : root.state) EXPECT_TRUE(run.state.at(name).equal(tensor)) << name;
}

struct RankedMethod {
  const char* name;
  const char* options;
};

void PrintTo(const RankedMethod& method, std::ostream* out) { *out << method.name; }

constexpr const char* kLocate =
    ", layers: [0, 1], values: {steps: 4, lr: 0.1, batch: 1, contexts_per_step: 2}, contexts: ['{}', 'I know. {}', 'So "
    "it "
    "is. {}']";
constexpr const char* kModules = ", modules: {gate: [1], down: [1, 2]}";

const RankedMethod kRankedMethods[] = {
    {"memit", "method: memit, history: true, covariance_weight: 20"},
    {"memit_chunked", "method: memit, history: true, covariance_weight: 20"},
    {"memit_anchored", "method: memit, covariance_weight: 20, equal_keys: mean, norm_anchor: {mode: rescale}"},
    {"memit_replayed", "method: memit, covariance_weight: 20, targets: replay, norm_anchor: {mode: skip, limit: 1.05}"},
    {"alphaedit", "method: alphaedit, null_space_below: 1.0, norm_anchor: {mode: skip, limit: 1.0}"},
    {"evoedit", "method: evoedit, null_space_below: 1.0"},
    {"betaedit", "method: betaedit, null_space_below: 1.0, covariance_weight: 2, ridge: 0.5, refresh: 3"},
    {"memit_fed_back",
     "method: memit, history: true, covariance_weight: 20, revive: {energy: 0.1}, error_feedback: true"},
    {"emmet", "method: emmet, equal_keys: split, prune: {log_base: 1.1}"},
    {"pmet", "method: pmet, rect: {keep: 0.3}"},
    {"rome", "method: rome"},
    {"r_rome", "method: r-rome, covariance: false"},
    {"nse", "method: nse, covariance_weight: 20, residual_above: 0.01, neurons: 0.6"},
    {"zerounlearn", "method: zerounlearn, covariance_weight: 20"},
    {"ultraedit", "method: ultraedit, lr: 1e-3, batch: 2"},
    {"stableedit", "method: stableedit, lr: 1e-3, batch: 2, tokens: all"},
    {"memit_budgeted", "method: memit, covariance_weight: 20, text_budget: 1e-4"},
    {"ft", "method: ft, steps: 3"},
    {"ft_l", "method: ft-l, steps: 3, batch: 2, norm_constraint: 1e-3"},
    {"ft_m_whitened", "method: ft-m, steps: 3, batch: 3, margin: 0.1, whiten: 0.01"},
    {"crispedit", "method: crispedit, steps: 3, batch: 2, energy: 0.7, neighbours: 1, order: breadth-first"},
    {"ft_m", "method: ft-m, steps: 3, batch: 3, order: breadth-first, revisit: 2, prune: {log_base: 1.1}"},
};

class MethodsOnRanks : public ::testing::TestWithParam<RankedMethod> {};

TEST_P(MethodsOnRanks, EditAsOneProcessDoes) {
  const TinyModel tiny;
  std::string options = GetParam().options;
  const bool is_down = options.starts_with("method: crispedit") || options.starts_with("method: stableedit") ||
                       options.find("whiten") != std::string::npos;
  const bool locates = !options.starts_with("method: ft") && !options.starts_with("method: ultraedit");
  std::string located = kLocate;
  if (GetParam().name == std::string("memit_chunked"))
    located.replace(located.find("batch: 1"), 8, "batch: 1, chunk_tokens: 2");
  options += is_down ? ", modules: {down: [1, 2]}" : locates ? located : kModules;
  const Result single = edit(tiny, options, alone());
  for (const int64_t size : {2, 3}) {
    std::vector<Result> runs(static_cast<size_t>(size));
    testing::run_ranks(size, [&](Communicator& communicator) {
      runs[static_cast<size_t>(communicator.rank())] = edit(tiny, options, communicator);
    });
    expect_equal_method(runs.front(), single);
    for (const Result& run : runs) expect_same_bits(run, runs.front());
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, MethodsOnRanks, ::testing::ValuesIn(kRankedMethods),
                         [](const auto& method) { return std::string(method.param.name); });

}  // namespace
}  // namespace lancet
