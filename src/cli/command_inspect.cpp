// `lancet inspect`: what a model folder holds.
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "lancet/core/strings.h"
#include "lancet/job/model_session.h"

namespace lancet::cli {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::pair<std::string, std::string>> describe(const ModelFiles& files) {
  const ModelConfig& config = files.config;
  int64_t parameters = 0;
  for (const WeightSpec& spec : weight_table(config)) {
    int64_t size = 1;
    for (const int64_t dim : spec.shape) size *= dim;
    parameters += size;
  }
  return {{"folder", files.checkpoint.folder().string()},
          {"family", std::string(config.family->name)},
          {"layers", std::to_string(config.n_layers)},
          {"hidden size", std::to_string(config.d_model)},
          {"MLP size", std::to_string(config.d_ffn)},
          {"attention heads",
           cat(config.n_heads, " (", config.n_kv_heads, " for keys/values), head size ", config.head_dim)},
          {"vocabulary", std::to_string(config.vocab_size)},
          {"positions", std::to_string(config.max_positions)},
          {"embeddings", config.tied_embeddings ? "tied to the head" : "separate from the head"},
          {"parameters", std::to_string(parameters)},
          {"stored type", std::string(dtype_name(config.dtype))},
          {"shards", cat(files.checkpoint.shards().size(), ", ", bytes_text(files.checkpoint.tensor_bytes()))},
          {"tokenizer", files.tokenizer->description()}};
}

ExitCode run_inspect(const std::string& folder, const Output& output) {
  const ModelFiles files = open_model(folder, {});
  const auto facts = describe(files);
  if (output.json) {
    Json json = Json::object();
    for (const auto& [name, value] : facts) json[name] = value;
    std::cout << json.dump(1) << "\n";
    return ExitCode::kOk;
  }
  size_t width = 0;
  for (const auto& [name, value] : facts) width = std::max(width, name.size());
  for (const auto& [name, value] : facts)
    std::cout << "  " << name << std::string(width - name.size() + 3, ' ') << value << "\n";
  return ExitCode::kOk;
}

}  // namespace

void add_inspect(CLI::App& app, Action& action) {
  auto folder = std::make_shared<std::string>();
  auto output = std::make_shared<Output>();
  CLI::App* command =
      app.add_subcommand("inspect", "Show what a model folder holds; reads no weights.\n  lancet inspect DIR");
  command->add_option("model", *folder, "Model folder")->required()->type_name("DIR");
  add_output_options(*command, *output);
  command->callback([=, &action] { action = [=] { return run_inspect(*folder, *output); }; });
}

}  // namespace lancet::cli
