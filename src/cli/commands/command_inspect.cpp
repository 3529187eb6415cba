// `lancet inspect`: what a model folder holds.
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "lancet/core/strings.h"
#include "lancet/plan/model_session.h"

namespace lancet::cli {
namespace {

using Json = nlohmann::ordered_json;

int64_t count_parameters(const ModelConfig& config) {
  int64_t parameters = 0;
  for (const WeightSpec& spec : weight_table(config)) {
    int64_t size = 1;
    for (const int64_t dim : spec.shape) size *= dim;
    parameters += size;
  }
  return parameters;
}

Json model_json(const ModelFiles& files) {
  const ModelConfig& config = files.config;
  return {{"format", "lancet-inspect-1"},
          {"folder", files.checkpoint.folder().string()},
          {"family", config.family->name},
          {"layers", config.n_layers},
          {"hidden_size", config.d_model},
          {"mlp_size", config.d_ffn},
          {"attention_heads", config.n_heads},
          {"key_value_heads", config.n_kv_heads},
          {"head_size", config.head_dim},
          {"vocabulary", config.vocab_size},
          {"positions", config.max_positions},
          {"tied_embeddings", config.tied_embeddings},
          {"parameters", count_parameters(config)},
          {"stored_type", dtype_name(config.dtype)},
          {"shards", files.checkpoint.shards().size()},
          {"tensor_bytes", files.checkpoint.tensor_bytes()},
          {"tokenizer", files.tokenizer->description()}};
}

std::string model_text(const ModelFiles& files) {
  const ModelConfig& config = files.config;
  const std::vector<std::pair<std::string, std::string>> facts{
      {"folder", files.checkpoint.folder().string()},
      {"family", std::string(config.family->name)},
      {"layers", cat(config.n_layers)},
      {"hidden size", cat(config.d_model)},
      {"MLP size", cat(config.d_ffn)},
      {"attention heads",
       cat(config.n_heads, " (", config.n_kv_heads, " for keys/values), head size ", config.head_dim)},
      {"vocabulary", cat(config.vocab_size)},
      {"positions", cat(config.max_positions)},
      {"embeddings", config.tied_embeddings ? "tied to the head" : "separate from the head"},
      {"parameters", cat(count_parameters(config))},
      {"stored type", std::string(dtype_name(config.dtype))},
      {"shards", cat(files.checkpoint.shards().size(), ", ", bytes_text(files.checkpoint.tensor_bytes()))},
      {"tokenizer", files.tokenizer->description()}};
  size_t width = 0;
  for (const auto& [name, value] : facts) width = std::max(width, name.size());
  std::string out;
  for (const auto& [name, value] : facts)
    out += cat("  ", name, std::string(width - name.size() + 3, ' '), value, "\n");
  return out;
}

ExitCode run_inspect(const std::string& folder, const Output& output) {
  begin(output);
  const ModelFiles files = open_model(folder, {});
  std::cout << (output.json ? model_json(files).dump(1) + "\n" : model_text(files));
  return ExitCode::kOk;
}

}  // namespace

void add_inspect(CLI::App& app, Action& action) {
  auto folder = std::make_shared<std::string>();
  auto output = std::make_shared<Output>();
  CLI::App& command =
      add_command(app, "inspect", "Show what a model folder holds; reads no weights.\n  lancet inspect DIR");
  add_option(command, "model", *folder, "Model folder").required().type("DIR");
  add_output_options(command, *output);
  on_choice(command, action, [=] { return run_inspect(*folder, *output); });
}

}  // namespace lancet::cli
