// All runs of a job share one editor: each gives what it gives with an editor of its own, whatever ran before.
#include <gtest/gtest.h>
#include <torch/types.h>

#include "support/edit_setup.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::TinyModel;

using SomeRequests = std::span<const EditRequest>;

/// Makes one batch of edits of the unedited model in a run of its own. Returns the change of each weight.
std::vector<Tensor> changes_by(const Editor& editor, const TinyModel& tiny, SomeRequests requests, EditorState& state) {
  CausalLM model = tiny.load();
  const auto factor = [](int64_t) { return torch::diag(torch::linspace(0.5, 2.0, 48, torch::kDouble)); };
  const EditContext context(model, *tiny.tokenizer, {"{}"}, {.factor = factor}, {alone()});
  WeightTransaction transaction(model);
  editor.edit(context, requests, state, transaction);
  std::vector<Tensor> changes;
  for (const WeightTransaction::Entry& entry : transaction.entries()) changes.push_back(entry.master - entry.base);
  return changes;
}

void expect_equal_changes(const std::vector<Tensor>& shared, const std::vector<Tensor>& own) {
  ASSERT_EQ(shared.size(), own.size());
  ASSERT_FALSE(own.empty());
  for (size_t i = 0; i < own.size(); ++i) {
    EXPECT_GT(own[i].norm().item<double>(), 0.0);
    EXPECT_TRUE(shared[i].equal(own[i]));
  }
}

/// As in a session after an undo: there are as many earlier keys as before, but others.
TEST(SharedEditor, TakesNoBasisFromAnotherRunWithAsManyKeys) {
  const TinyModel tiny;
  const std::string yaml =
      "{method: betaedit, layers: [1], null_space_below: 1.0, covariance_weight: 2, ridge: 0.5, refresh: 2, "
      "values: {steps: 3, lr: 0.1}, contexts: ['{}']}";
  const std::vector<EditRequest> requests = testing::some_requests(6);
  const auto after = [&](SomeRequests earlier) {
    EditorState state;
    changes_by(*testing::editor_from(yaml), tiny, earlier, state);
    return state;
  };
  const SomeRequests all(requests);
  EditorState some = after(all.first(2)), others = after(all.subspan(2, 2)), others_again = others;
  const auto shared = testing::editor_from(yaml);
  changes_by(*shared, tiny, all.last(2), some);
  const std::vector<Tensor> changes = changes_by(*shared, tiny, all.last(2), others);
  expect_equal_changes(changes, changes_by(*testing::editor_from(yaml), tiny, all.last(2), others_again));
}

TEST(SharedEditor, TakesNoDirectionsFromAnotherModel) {
  const TinyModel first, second({.seed = 2});
  const std::string yaml = "{method: ft-m, modules: {down: [2]}, steps: 3, lr: 1e-3, revive: {energy: 0.3}}";
  const std::vector<EditRequest> requests = testing::some_requests(2);
  const auto shared = testing::editor_from(yaml);
  EditorState unused, state, state_of_own;
  changes_by(*shared, first, requests, unused);
  const std::vector<Tensor> changes = changes_by(*shared, second, requests, state);
  expect_equal_changes(changes, changes_by(*testing::editor_from(yaml), second, requests, state_of_own));
}

/// The batches of one run, on the other hand, share what an editor keeps.
TEST(KeptResults, LastAsLongAsACopyOfTheirContext) {
  const TinyModel tiny;
  CausalLM model = tiny.load();
  const EditContext context(model, *tiny.tokenizer, {}, {}, {alone()});
  context.kept<std::vector<int>>().push_back(3);
  const EditContext copy = context, other(model, *tiny.tokenizer, {}, {}, {alone()});
  EXPECT_EQ(copy.kept<std::vector<int>>(), std::vector<int>{3});
  EXPECT_TRUE(other.kept<std::vector<int>>().empty());
  EXPECT_TRUE(context.kept<std::vector<double>>().empty());
}

}  // namespace
}  // namespace lancet
