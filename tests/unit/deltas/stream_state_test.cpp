#include "lancet/deltas/stream_state.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "lancet/core/error.h"
#include "lancet/models/tensor_io.h"
#include "support/thread_ranks.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::TinyModel;

const WeightId kFirst{WeightKind::kDown, 2}, kSecond{WeightKind::kGate, 1};

StreamState some_stream() {
  torch::manual_seed(5);
  StreamState stream;
  stream.editor.edits = 3;
  stream.editor.tensors["keys.2"] = torch::randn({48, 3}, torch::kDouble);
  stream.changes = {{kFirst,
                     {LowRankDelta{torch::randn({32, 2}, torch::kDouble), torch::randn({2, 48}, torch::kDouble)},
                      DenseDelta{torch::randn({32, 48}, torch::kFloat)}}},
                    {kSecond, {DenseDelta{torch::randn({48, 32}, torch::kDouble)}}}};
  return stream;
}

void expect_equal(const StreamState& got, const StreamState& expected) {
  EXPECT_EQ(got.editor.edits, expected.editor.edits);
  ASSERT_EQ(got.editor.tensors.size(), expected.editor.tensors.size());
  for (const auto& [name, tensor] : expected.editor.tensors) EXPECT_TRUE(got.editor.tensors.at(name).equal(tensor));
  ASSERT_EQ(got.changes.size(), expected.changes.size());
  for (size_t i = 0; i < expected.changes.size(); ++i) {
    EXPECT_EQ(got.changes[i].id, expected.changes[i].id);
    ASSERT_EQ(got.changes[i].deltas.size(), expected.changes[i].deltas.size());
    for (size_t j = 0; j < expected.changes[i].deltas.size(); ++j) {
      const WeightDelta &delta = got.changes[i].deltas[j], &original = expected.changes[i].deltas[j];
      EXPECT_EQ(delta.index(), original.index());
      EXPECT_EQ(to_dense(delta).scalar_type(), to_dense(original).scalar_type());
      EXPECT_TRUE(to_dense(delta).equal(to_dense(original)));
    }
  }
}

struct StreamStateTest : public ::testing::Test {
  TinyModel tiny;
};

TEST_F(StreamStateTest, HasChangesThatComeBackFromNamedTensorsBitByBit) {
  StreamState again = some_stream();
  again.changes = to_changes(to_named(again.changes, tiny.config), tiny.config);
  expect_equal(again, some_stream());
}

TEST_F(StreamStateTest, GivesTheTransactionTheSameBits) {
  CausalLM model = tiny.load(), again = tiny.load();
  WeightTransaction transaction(model), restored(again);
  for (const WeightChanges& weight : some_stream().changes)
    for (const WeightDelta& delta : weight.deltas) transaction.apply(weight.id, delta);
  const NamedTensors named = to_named(changes_of(transaction.entries()), tiny.config);
  restore_changes(to_changes(named, tiny.config), again, restored);
  for (const WeightId& id : {kFirst, kSecond}) EXPECT_TRUE(again.weight(id).equal(model.weight(id)));
  EXPECT_EQ(restored.changes_key(), transaction.changes_key());
}

TEST_F(StreamStateTest, RefusesTensorsThatAreNoChangesOfTheModel) {
  const std::string name = weight_name(tiny.config, kFirst);
  const Tensor tensor = torch::zeros({32, 48}), left = torch::zeros({32, 2});
  EXPECT_NO_THROW(to_changes({{name + "/0/full", tensor}}, tiny.config));
  for (const NamedTensors& named :
       {NamedTensors{{"none/0/full", tensor}}, NamedTensors{{name + "/1/full", tensor}},
        NamedTensors{{name + "/0/left", tensor}}, NamedTensors{{name, tensor}}, NamedTensors{{name + "/0/full", left}},
        NamedTensors{{name + "/0/full", tensor.to(at::kLong)}},
        NamedTensors{{name + "/0/left", left}, {name + "/0/right", left}},
        NamedTensors{{name + "/0/left", left}, {name + "/0/right", torch::zeros({2, 48}, torch::kDouble)}}})
    EXPECT_THROW(to_changes(named, tiny.config), CheckpointError) << named[0].first;
}

TEST_F(StreamStateTest, IsRootsOnEveryRank) {
  const StreamState stream = some_stream();
  testing::run_ranks(3, [&](Communicator& communicator) {
    StreamState own = communicator.is_root() ? stream : StreamState{};
    share_stream(own, tiny.config, communicator);
    expect_equal(own, stream);
  });
}

}  // namespace
}  // namespace lancet
