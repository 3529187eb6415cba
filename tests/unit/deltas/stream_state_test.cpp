#include "lancet/deltas/stream_state.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "lancet/core/error.h"
#include "lancet/io/files.h"
#include "lancet/models/tensor_io.h"
#include "support/old_state.h"
#include "support/thread_ranks.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::save_state;
using testing::save_stream;
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
  stream.changes = changes_of(transaction.entries());
  save_stream(folder.path(), stream, kFacts, tiny.config);
  restore_changes(load_stream(folder.path(), kFacts.owner, tiny.config).changes, again, restored);
  for (const WeightId& id : {kFirst, kSecond}) EXPECT_TRUE(again.weight(id).equal(model.weight(id)));
  EXPECT_EQ(restored.changes_key(), transaction.changes_key());
}

TEST_F(StreamStateTest, IsRefusedToOthersAndWhenDamaged) {
  save_stream(folder.path(), some_stream(), kFacts, tiny.config);
  EXPECT_THROW(load_stream(folder.path(), {"alphaedit", "0123"}, tiny.config), ConfigError);
  EXPECT_THROW(load_stream(folder.path(), {"memit", "4567"}, tiny.config), ConfigError);
  EXPECT_THROW(load_stream(folder.path(), {"memit", "0123", "elsewhere"}, tiny.config), CheckpointError);
  const std::filesystem::path changes = folder / "changes.safetensors";
  const auto write = [&](const NamedTensors& tensors, const std::string& requests) {
    const std::string hash = write_tensors(
        changes, {"lancet-changes-2"}, tensors,
        {{"method", "memit"}, {"base_hash", "0123"}, {"beside", ""}, {"editor", ""}, {"requests", requests}});
    save_state(folder / "state.safetensors", {}, {"memit", "0123", hash});
  };
  const std::string name = weight_name(tiny.config, kFirst);
  const Tensor tensor = torch::zeros({32, 48});
  write({{name + "/0/full", tensor}}, "[]");
  EXPECT_NO_THROW(load_stream(folder.path(), kFacts.owner, tiny.config));
  const Tensor left = torch::zeros({32, 2});
  for (const NamedTensors& named :
       {NamedTensors{{"none/0/full", tensor}}, NamedTensors{{name + "/1/full", tensor}},
        NamedTensors{{name + "/0/left", tensor}}, NamedTensors{{name, tensor}}, NamedTensors{{name + "/0/full", left}},
        NamedTensors{{name + "/0/full", tensor.to(at::kLong)}},
        NamedTensors{{name + "/0/left", left}, {name + "/0/right", left}},
        NamedTensors{{name + "/0/left", left}, {name + "/0/right", torch::zeros({2, 48}, torch::kDouble)}}}) {
    write(named, "[]");
    EXPECT_THROW(load_stream(folder.path(), kFacts.owner, tiny.config), CheckpointError) << named[0].first;
  }
  write({{name + "/0/full", tensor}}, "no list");
  EXPECT_THROW(load_stream(folder.path(), kFacts.owner, tiny.config), CheckpointError);
  write_text_file(changes, "no header");
  EXPECT_THROW(read_stream_facts(folder.path()), CheckpointError);
}

TEST_F(StreamStateTest, OfAnotherStreamIsNotTakenForItsOwn) {
  const TempDir other_folder;
  StreamState other = some_stream();
  other.editor.tensors["keys.2"] += 1;
  other.request_ids.back() = "8";
  save_stream(folder.path(), some_stream(), kFacts, tiny.config);
  save_stream(other_folder.path(), other, kFacts, tiny.config);
  std::filesystem::copy_file(other_folder / "state.safetensors", folder / "state.safetensors",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THROW(load_stream(folder.path(), kFacts.owner, tiny.config), CheckpointError);
  EXPECT_NO_THROW(SealedFile::open(folder / "changes.safetensors", {"lancet-changes-2"}).check());  // each is whole
  EXPECT_NO_THROW(SealedFile::open(folder / "state.safetensors", {"lancet-state-2"}).check());
}

TEST_F(StreamStateTest, IsNeverReadWhenDamaged) {
  save_stream(folder.path(), some_stream(), kFacts, tiny.config);
  std::mt19937_64 random(20261122);
  for (const char* name : {"changes.safetensors", "state.safetensors"}) {
    const std::string intact = read_text_file(folder / name, "test");
    for (int i = 0; i < 200; ++i) {
      std::string bytes = intact;
      // as many in the header as in the numbers
      const size_t at = random() % (i % 2 == 0 ? bytes.size() : std::min<size_t>(bytes.size(), 900));
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
      std::ofstream(folder / name, std::ios::binary) << bytes;  // without a sync each time
      try {
        load_stream(folder.path(), kFacts.owner, tiny.config);
        EXPECT_EQ(intact[at], ' ') << name << ": byte " << at;  // what fills the header up
      } catch (const Error&) {
      }
    }
    write_text_file(folder / name, intact);
  }
  expect_equal(load_stream(folder.path(), kFacts.owner, tiny.config), some_stream());
}

/// Reads version 0.1's format from before files had a hash.
TEST_F(StreamStateTest, OfTheUnsealedFormatIsReadWithAWarning) {
  testing::save_unsealed_stream(folder.path(), some_stream(), kFacts, tiny.config);
  EXPECT_EQ(read_stream_facts(folder.path()).owner.beside, "");
  EXPECT_EQ(read_stream_facts(folder.path()).editor, kFacts.editor);
  ::testing::internal::CaptureStderr();
  const StreamState stream = load_stream(folder.path(), kFacts.owner, tiny.config);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("without a hash"), std::string::npos) << log;
  expect_equal(stream, some_stream());
  EXPECT_THROW(load_stream(folder.path(), {"rome", "0123"}, tiny.config), ConfigError);
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
