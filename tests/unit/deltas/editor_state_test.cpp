#include "lancet/deltas/editor_state.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "lancet/core/error.h"
#include "lancet/io/files.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::nmse;
using testing::TempDir;

const StateOwner kOwner{"memit", "0123"};

TEST(EditorState, ComesBackFromItsFileAsItWas) {
  const TempDir folder;
  EditorState state;
  state.edits = 70;
  state.tensors["keys.3"] = torch::randn({5, 7}, torch::kDouble).t();
  state.tensors["norm"] = torch::tensor(2.5, torch::kDouble);
  save_state(folder / "state.safetensors", state, kOwner);
  const EditorState loaded = load_state(folder / "state.safetensors", kOwner);
  EXPECT_EQ(loaded.edits, 70);
  ASSERT_EQ(loaded.tensors.size(), 2u);
  for (const auto& [name, tensor] : state.tensors) EXPECT_TRUE(loaded.tensors.at(name).equal(tensor)) << name;
}

TEST(EditorState, IsRefusedToOthers) {
  const TempDir folder;
  save_state(folder / "state.safetensors", {}, kOwner);
  EXPECT_NO_THROW(load_state(folder / "state.safetensors", kOwner));
  EXPECT_THROW(load_state(folder / "state.safetensors", {"alphaedit", "0123"}), ConfigError);
  EXPECT_THROW(load_state(folder / "state.safetensors", {"memit", "4567"}), ConfigError);
  write_text_file(folder / "damaged.safetensors", "no header");
  EXPECT_THROW(load_state(folder / "damaged.safetensors", kOwner), CheckpointError);
}

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

}  // namespace
}  // namespace lancet
