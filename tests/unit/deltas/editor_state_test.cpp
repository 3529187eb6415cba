#include "lancet/deltas/stream_state.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <cstring>

#include "lancet/core/error.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::nmse;

TEST(EditorState, FoldsALongHistoryWithoutChangingWhatItMeans) {
  torch::manual_seed(2);
  EditorState state;
  Tensor all;
  for (int batch = 0; batch < 7; ++batch) {
    const Tensor fresh = torch::randn({6, 3}, torch::kDouble);
    append_columns(state, "keys", fresh);
    all = all.defined() ? torch::cat({all, fresh}, 1) : fresh;
    const Tensor kept = columns_of(state, "keys");
    EXPECT_LE(kept.size(1), 12);
    EXPECT_LE(nmse(kept.matmul(kept.t()), all.matmul(all.t())), 1e-26);
  }
  EXPECT_LT(columns_of(state, "keys").size(1), all.size(1));
  EXPECT_FALSE(columns_of(state, "others").defined());
}

/// Bit for bit: -0.0 is not 0.0, and a NaN is itself.
void expect_same_bits(const EditorState& got, const EditorState& expected) {
  EXPECT_EQ(got.edits, expected.edits);
  ASSERT_EQ(got.tensors.size(), expected.tensors.size());
  for (const auto& [name, tensor] : expected.tensors) {
    const Tensor own = got.tensors.at(name).contiguous(), wanted = tensor.contiguous();
    ASSERT_EQ(own.scalar_type(), wanted.scalar_type()) << name;
    ASSERT_EQ(own.sizes(), wanted.sizes()) << name;
    EXPECT_EQ(std::memcmp(own.data_ptr(), wanted.data_ptr(), wanted.nbytes()), 0) << name;
  }
}

void expect_led_there(const EditorState& before, const EditorState& after) {
  EditorState state = before;
  advance(state, step_between(before, after));
  expect_same_bits(state, after);
}

std::vector<std::string> names_of(const std::map<std::string, Tensor>& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

using Names = std::vector<std::string>;

TEST(StateStep, HasWhatIsNewAlone) {
  torch::manual_seed(3);
  EditorState before{{{"keys.1", torch::randn({4, 3}, torch::kDouble)},
                      {"norm", torch::tensor(2.5, torch::kDouble)},
                      {"same", torch::randn({2, 2}, torch::kFloat)}},
                     5};
  EditorState after = before;
  const Tensor fresh = torch::randn({4, 2}, torch::kDouble);
  append_columns(after, "keys.1", fresh);
  append_columns(after, "keys.2", fresh);
  after.tensors["norm"] = torch::tensor(3.5, torch::kDouble);
  after.edits = 7;
  const StateStep step = step_between(before, after);
  EXPECT_EQ(step.edits, 2);
  EXPECT_EQ(names_of(step.appended), Names{"keys.1"});
  EXPECT_TRUE(step.appended.at("keys.1").equal(fresh));
  EXPECT_EQ(names_of(step.replaced), (Names{"keys.2", "norm"}));
  expect_led_there(before, after);
  // nothing happened
  const StateStep none = step_between(after, after);
  EXPECT_TRUE(none.appended.empty() && none.replaced.empty());
  EXPECT_EQ(none.edits, 0);
  expect_led_there({}, after);
}

/// What begins with other bits, or has another type or height, is not gone on from.
TEST(StateStep, ReplacesWhatDoesNotGoOnFromTheEarlierOne) {
  const Tensor earlier = torch::tensor({{0.0, 1.0}, {2.0, 3.0}}, torch::kDouble);
  const EditorState before{{{"x", earlier}}, 1};
  const Tensor more = torch::cat({earlier, torch::ones({2, 1}, torch::kDouble)}, 1);
  Tensor negative_zero = more.clone(), other_number = more.clone();
  negative_zero[0][0] = -0.0;
  other_number[1][1] += 1e-15;
  for (const Tensor& now :
       {negative_zero, other_number, negative_zero.narrow(1, 0, 2).contiguous(), more.to(torch::kFloat),
        earlier.narrow(1, 0, 1).contiguous(), torch::cat({more, torch::zeros({1, 3}, torch::kDouble)}, 0),
        earlier.flatten(), earlier.unsqueeze(0), torch::zeros({2, 0}, torch::kDouble)}) {
    const EditorState after{{{"x", now}}, 2};
    const StateStep step = step_between(before, after);
    EXPECT_EQ(names_of(step.replaced), Names{"x"}) << now;
    EXPECT_TRUE(step.appended.empty());
    expect_led_there(before, after);
  }
  const EditorState after{{{"x", more}}, 2};
  EXPECT_EQ(names_of(step_between(before, after).appended), Names{"x"});
  expect_led_there(before, after);
}

TEST(StateStep, KeepsNegativeZerosAndNaNs) {
  const Tensor special = torch::tensor({{-0.0, std::nan("")}, {0.0, 1.0}}, torch::kDouble);
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16}) {
    const EditorState before{{{"x", special.to(type)}}, 1};
    EXPECT_TRUE(step_between(before, before).replaced.empty()) << "a NaN is the same as itself";
    EditorState after = before;
    after.tensors["x"] = torch::cat({special, special}, 1).to(type);
    EXPECT_EQ(names_of(step_between(before, after).appended), Names{"x"}) << type;
    expect_led_there(before, after);
  }
}

/// Histories that are folded: what stood before is another matrix then.
TEST(StateStep, LeadsThroughAFoldedHistory) {
  torch::manual_seed(4);
  EditorState state, walked;
  bool was_replaced = false, was_appended = false;
  for (int batch = 0; batch < 9; ++batch) {
    const EditorState before = state;
    append_columns(state, "keys", torch::randn({6, 3}, torch::kDouble));
    state.edits += 3;
    const StateStep step = step_between(before, state);
    was_appended = was_appended || step.appended.contains("keys");
    was_replaced = was_replaced || (batch > 0 && step.replaced.contains("keys"));
    advance(walked, step);
    expect_same_bits(walked, state);
  }
  EXPECT_TRUE(was_appended);
  EXPECT_TRUE(was_replaced);
}

TEST(StateStep, IsRefusedToAStateThatItDoesNotGoOnFrom) {
  const Tensor columns = torch::ones({4, 2}, torch::kDouble);
  const StateStep step{.appended = {{"keys", columns}}, .edits = 1};
  for (const EditorState& other : {EditorState{}, EditorState{{{"keys", torch::ones({3, 2}, torch::kDouble)}}},
                                   EditorState{{{"keys", torch::ones({4, 2}, torch::kFloat)}}},
                                   EditorState{{{"keys", torch::ones({4}, torch::kDouble)}}}}) {
    EditorState state = other;
    EXPECT_THROW(advance(state, step), CheckpointError);
  }
}

}  // namespace
}  // namespace lancet
