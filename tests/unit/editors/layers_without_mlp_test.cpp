// Layers that have no MLP: what `auto` stands for leaves them out, and who names one is told which layers there are.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lancet/core/error.h"
#include "lancet/editor_parts/automatic_choices.h"
#include "support/edit_setup.h"
#include "support/family_models.h"
#include "support/io_support.h"

namespace lancet {
namespace {

/// 24 layers of a Nemotron-H: in turn a mixer, an MLP, and attention.
ModelConfig layers_in_turn_config() {
  const auto& families = testing::family_models();
  const auto family = std::ranges::find(families, std::string("nemotron_h"), &testing::FamilyModel::name);
  nlohmann::json config = nlohmann::json::parse(family->config);
  config.erase("layers_block_type");
  config["hybrid_override_pattern"] = "M-*M-*M-*M-*M-*M-*M-*M-*";
  return parse_model_config(config.dump(), "", {}, "test");
}

TEST(LayersWithoutMlp, AreNotWhatAutoStandsFor) {
  const ModelConfig config = layers_in_turn_config();
  EXPECT_EQ(config.layers_with_mlp(), (std::vector<int64_t>{1, 4, 7, 10, 13, 16, 19, 22}));
  EXPECT_EQ(automatic_layers(config), (std::vector<int64_t>{1, 4}));
  EXPECT_EQ(automatic_rome_layer(config), 4);
  EXPECT_EQ(automatic_middle_layers(config), (std::vector<int64_t>{13, 16}));
  EXPECT_EQ(automatic_tuned_layer(config), 16);
}

TEST(LayersWithoutMlp, AreRefusedByNameWhereTheyAreNamed) {
  const ModelConfig config = layers_in_turn_config();
  for (const std::string options : {"method: memit, layers: [1, 2]", "method: ft, modules: {down: [2]}"}) {
    const auto editor = testing::editor_from("{" + options + "}");
    testing::expect_says(testing::message_of<ConfigError>([&] { editor->targets(config); }),
                         {"layer 2 of a Nemotron-H has no MLP", "1, 4, 7, 10, 13, 16, 19, 22"});
  }
}

TEST(WhitenedTraining, WantsDownProjections) {
  const auto& families = testing::family_models();
  const auto found = std::ranges::find(families, "Qwen3", &testing::FamilyModel::name);
  const ModelConfig config = parse_model_config(found->config, "", {}, "test");
  const auto editor = testing::editor_from("{method: ft-m, whiten: 0.01, modules: {gate: [1]}}");
  testing::expect_says(testing::message_of<ConfigError>([&] { editor->targets(config); }),
                       {"editor.whiten: layer 1", "expected down projections"});
}

}  // namespace
}  // namespace lancet
