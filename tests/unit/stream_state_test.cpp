#include "lancet/edit/stream_state.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <filesystem>

#include "lancet/core/error.h"
#include "lancet/io/files.h"
#include "lancet/models/tensor_io.h"
#include "support/thread_ranks.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::TempDir;
using testing::TinyModel;

const StreamFacts kFacts{{"memit", "0123"}, "layers: [1]\n"};
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
  stream.request_ids = {"7", "a \"b\""};
  return stream;
}

void expect_equal(const StreamState& got, const StreamState& expected) {
  EXPECT_EQ(got.editor.edits, expected.editor.edits);
  ASSERT_EQ(got.editor.tensors.size(), expected.editor.tensors.size());
  for (const auto& [name, tensor] : expected.editor.tensors) EXPECT_TRUE(got.editor.tensors.at(name).equal(tensor));
  EXPECT_EQ(got.request_ids, expected.request_ids);
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
  TempDir folder;
};

TEST_F(StreamStateTest, ComesBackFromItsFilesBitByBit) {
  const StreamState stream = some_stream();
  save_stream(folder.path(), stream, kFacts, tiny.config);
  expect_equal(load_stream(folder.path(), kFacts.owner, tiny.config), stream);
  const StreamFacts facts = read_stream_facts(folder.path());
  EXPECT_EQ(facts.owner.method, "memit");
  EXPECT_EQ(facts.owner.base_hash, "0123");
  EXPECT_EQ(facts.editor, kFacts.editor);
}

TEST_F(StreamStateTest, GivesTheTransactionTheSameBits) {
  CausalLM model = tiny.load(), again = tiny.load();
  WeightTransaction transaction(model), restored(again);
  for (const WeightChanges& weight : some_stream().changes)
    for (const WeightDelta& delta : weight.deltas) transaction.apply(weight.id, delta);
  StreamState stream;
  stream.changes = changes_of(transaction);
  save_stream(folder.path(), stream, kFacts, tiny.config);
  restore_changes(load_stream(folder.path(), kFacts.owner, tiny.config).changes, again, restored);
  for (const WeightId& id : {kFirst, kSecond}) EXPECT_TRUE(again.weight(id).equal(model.weight(id)));
  EXPECT_EQ(restored.changes_key(), transaction.changes_key());
}

TEST_F(StreamStateTest, IsRefusedToOthersAndWhenDamaged) {
  save_stream(folder.path(), some_stream(), kFacts, tiny.config);
  EXPECT_THROW(load_stream(folder.path(), {"alphaedit", "0123"}, tiny.config), ConfigError);
  EXPECT_THROW(load_stream(folder.path(), {"memit", "4567"}, tiny.config), ConfigError);
  const std::filesystem::path changes = folder / "changes.safetensors";
  const auto write = [&](const std::vector<std::pair<std::string, Tensor>>& tensors, const std::string& requests) {
    write_tensors(changes, tensors,
                  {{"format", "lancet-changes-1"},
                   {"method", "memit"},
                   {"base_hash", "0123"},
                   {"editor", ""},
                   {"requests", requests}});
  };
  const std::string name = weight_name(tiny.config, kFirst);
  const Tensor tensor = torch::zeros({2, 2});
  write({{name + "/0/full", tensor}}, "[]");
  EXPECT_NO_THROW(load_stream(folder.path(), kFacts.owner, tiny.config));
  using Named = std::vector<std::pair<std::string, Tensor>>;
  for (const Named& named : {Named{{"none/0/full", tensor}}, Named{{name + "/1/full", tensor}},
                             Named{{name + "/0/left", tensor}}, Named{{name, tensor}}}) {
    write(named, "[]");
    EXPECT_THROW(load_stream(folder.path(), kFacts.owner, tiny.config), CheckpointError) << named[0].first;
  }
  write({{name + "/0/full", tensor}}, "no list");
  EXPECT_THROW(load_stream(folder.path(), kFacts.owner, tiny.config), CheckpointError);
  write_text_file(changes, "no header");
  EXPECT_THROW(read_stream_facts(folder.path()), CheckpointError);
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
