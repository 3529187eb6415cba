// GPTQ folders of AutoGPTQ's time, whose settings lie in quantize_config.json, beside those that have them in
// config.json.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <map>
#include <nlohmann/json.hpp>

#include "lancet/checkpoint/checkpoint.h"
#include "lancet/checkpoint/checkpoint_export.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"
#include "lancet/job_setup/parse_job.h"
#include "lancet/models/batching.h"
#include "lancet/models/memory.h"
#include "lancet/models/model_files.h"
#include "lancet/pipeline/edit_job.h"
#include "support/edit_setup.h"
#include "support/gptq_model.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;
using testing::TempDir;
using testing::TinyModel;

OrderedJson parsed(const fs::path& file) { return OrderedJson::parse(read_text_file(file, "config")); }

/// Writes a model as programs of today do.
void write_new(const fs::path& folder) {
  testing::write_gptq_model(folder, testing::config_text({}), 1);
  OrderedJson config = parsed(folder / "config.json");
  OrderedJson settings = config["quantization_config"];
  settings.erase("quant_method");
  settings["quant_method"] = "gptq";
  config.erase("quantization_config");
  config["quantization_config"] = settings;
  write_text_file(folder / "config.json", config.dump(2) + "\n");
}

/// Writes the same model as AutoGPTQ did.
void write_old(const fs::path& folder) {
  write_new(folder);
  OrderedJson config = parsed(folder / "config.json"), settings = config["quantization_config"];
  settings.erase("quant_method");
  config.erase("quantization_config");
  write_text_file(folder / "config.json", config.dump(2) + "\n");
  write_text_file(folder / kQuantizeConfigFile, settings.dump(4));
}

Tensor logits_in(const TinyModel& tiny) {
  const CausalLM model = tiny.load(at::kFloat);
  const TokenBatch batch = make_batch(testing::kRows);
  const torch::NoGradGuard no_grad;
  return model.logits(
      model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence, model.all_layers()).flatten(0, 1));
}

std::map<std::string, std::string> files_in(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const char* name : {"config.json", "model.safetensors", "tokenizer.json"})
    files[name] = read_text_file(folder / name, name);
  EXPECT_FALSE(fs::exists(folder / kQuantizeConfigFile));
  return files;
}

/// The output of an edit in a form.
fs::path edited(const TinyModel& tiny, const TempDir& folder, const std::string& form) {
  const std::string yaml =
      cat("model: ", tiny.folder.path().string(), "\nrequests:\n- {prompt: '{} was born in', subject: Tina Arena, ",
          "target: Rome}\neditor: {method: ft-m, modules: {down: [1]}, steps: 2, lr: 0.01}\nevaluate: [efficacy]\n",
          "run: {dtype: f32, devices: cpu}\noutput: {dir: out, format: ", form,
          form == "quantised" ? ", rounding: nearest" : "", "}\n");
  run_edit_job(parse_job(parse_config(yaml, "test"), folder.path(), "test", JobPurpose::kEdit), alone());
  return folder.path() / "out";
}

TEST(OldGptqFolders, AreReadAsThoseWithTheirSettingsInConfigJson) {
  const TinyModel now(write_new), old(write_old);
  EXPECT_EQ(old.checkpoint.config_text(), now.checkpoint.config_text());
  ASSERT_NE(old.config.quantised, nullptr);
  EXPECT_EQ(old.config.quantised->method(), "gptq");
  EXPECT_TRUE(logits_in(old).equal(logits_in(now)));
  const QuantiseRule rule{{{WeightKind::kDown, 1}}, {}};
  const auto planned = [&](const fs::path& described) {
    const ModelConfig config = describe_model(described, {}).config;
    return weight_bytes(config, {0, config.n_layers}, at::kFloat, rule);
  };
  EXPECT_EQ(planned(old.folder.path()), planned(now.folder.path()));
  EXPECT_EQ(planned(old.folder / "config.json"), planned(now.folder.path()));
  EXPECT_LT(planned(old.folder.path()), planned(TinyModel().folder.path()));
}

TEST(OldGptqFolders, LeaveAsFoldersThatSayItThemselves) {
  const TinyModel now(write_new), old(write_old);
  for (const char* form : {"mixed", "quantised"}) {
    const TempDir of_now, of_old;
    const fs::path expected = edited(now, of_now, form), found = edited(old, of_old, form);
    EXPECT_EQ(files_in(found), files_in(expected)) << form;
    const ModelFiles again = open_model(found, {});
    EXPECT_NE(again.config.quantised, nullptr) << form;
    EXPECT_TRUE(again.checkpoint.has_own_config()) << form;
  }
  const TempDir copy;
  export_checkpoint(old.checkpoint, {}, copy.path());
  EXPECT_EQ(files_in(copy.path()), files_in(now.folder.path()));
}

TEST(OldGptqFolders, ConfigJsonWinsWhereBothAreThere) {
  const TinyModel now(write_new);
  const std::string text = now.checkpoint.config_text();
  for (const char* other : {R"({"bits": 8, "group_size": 128, "desc_act": false})", "damaged"}) {
    write_text_file(now.folder / kQuantizeConfigFile, other);
    const Checkpoint both = Checkpoint::open(now.folder.path());
    EXPECT_EQ(both.config_text(), text);
    EXPECT_TRUE(both.has_own_config());
  }
}

TEST(OldGptqFolders, SettingsThatSayNothingAreNone) {
  const TinyModel now(write_new), old(write_old);
  for (const char* nothing : {"null", "false"}) {
    OrderedJson config = parsed(old.folder / "config.json");
    config["quantization_config"] = OrderedJson::parse(nothing);
    write_text_file(old.folder / "config.json", config.dump());
    EXPECT_EQ(Checkpoint::open(old.folder.path()).config_text(), now.checkpoint.config_text()) << nothing;
  }
}

TEST(OldGptqFolders, DamagedSettingsAreNamed) {
  const TinyModel old(write_old);
  for (const char* damaged : {"[]", "{", R"({"bits": 4, "bits": 8})"}) {
    write_text_file(old.folder / kQuantizeConfigFile, damaged);
    try {
      Checkpoint::open(old.folder.path());
      ADD_FAILURE() << damaged;
    } catch (const CheckpointError& error) {
      EXPECT_NE(std::string(error.what()).find("quantize_config.json: expected a JSON object"), std::string::npos)
          << error.what();
    }
  }
  write_text_file(old.folder / kQuantizeConfigFile, R"({"bits": 4, "quant_method": "hqq"})");
  EXPECT_THROW(open_model(old.folder.path(), {}), CheckpointError);
}

}  // namespace
}  // namespace lancet
