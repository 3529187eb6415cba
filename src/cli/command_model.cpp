// `lancet generate` and `lancet inspect`: look at a model folder.
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "lancet/core/strings.h"
#include "lancet/job/model_session.h"
#include "lancet/models/generate.h"
#include "table.h"

namespace lancet::cli {
namespace {

using Json = nlohmann::ordered_json;

struct GenerateArguments {
  std::string model;
  std::string prompt;
  int64_t tokens = 40;
  std::string dtype = "auto";
  std::string device = "auto";
};

ExitCode run_generate(const GenerateArguments& arguments, const Output& output) {
  begin(output);
  const RunOptions run = parse_run(arguments.device, arguments.dtype);
  const ModelFiles files = open_model(arguments.model, {});
  std::vector<TokenId> ids = files.tokenizer->ids(arguments.prompt);
  if (ids.empty()) throw ConfigError("--prompt: no tokens: expected some text");
  const auto prompt_tokens = static_cast<int64_t>(ids.size());
  const EvaluationSize size{.generation = {1, prompt_tokens + arguments.tokens, prompt_tokens, {}}};
  const CausalLM model = load_model(files, run, evaluation_work(run, files.config, size));
  const GenerateRow row{ids, arguments.tokens};
  const std::vector<TokenId> added = generate(model, std::span(&row, 1), {.eos_ids = files.config.eos_ids})[0];
  const size_t prompt_bytes = files.tokenizer->decode(ids).size();
  ids.insert(ids.end(), added.begin(), added.end());
  const std::string continuation = files.tokenizer->decode(ids).substr(prompt_bytes);
  if (output.json)
    std::cout << Json{{"prompt", arguments.prompt}, {"text", continuation}, {"ids", added}}.dump(1) << "\n";
  else
    std::cout << arguments.prompt << continuation << "\n";
  return ExitCode::kOk;
}

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

void add_generate(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<GenerateArguments>();
  auto output = std::make_shared<Output>();
  CLI::App* command = app.add_subcommand("generate",
                                         "Let a model continue a text (greedy).\n"
                                         "  lancet generate --model out/demo --prompt \"The capital of France is\"");
  command->add_option("--model", arguments->model, "Model folder")->required();
  command->add_option("--prompt", arguments->prompt, "Text to continue")->required();
  command->add_option("--tokens", arguments->tokens, "New tokens at most")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command->add_option("--dtype", arguments->dtype, "auto (the checkpoint's), f32, bf16, f16 or f64")
      ->capture_default_str();
  command
      ->add_option("--device", arguments->device,
                   "auto, or a comma-separated list of cpu and cuda:N, each with =BUDGET if wanted")
      ->capture_default_str();
  add_output_options(*command, *output);
  command->callback([=, &action] { action = [=] { return run_generate(*arguments, *output); }; });
}

void add_inspect(CLI::App& app, Action& action) {
  auto folder = std::make_shared<std::string>();
  auto output = std::make_shared<Output>();
  CLI::App* command =
      app.add_subcommand("inspect", "Show what a model folder holds; reads no weights.\n  lancet inspect DIR");
  command->add_option("model", *folder, "Model folder")->required();
  add_output_options(*command, *output);
  command->callback([=, &action] { action = [=] { return run_inspect(*folder, *output); }; });
}

}  // namespace lancet::cli
