// `lancet import`: other tools' files as parts of a job.
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "commands.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/job_setup/imported_hparams.h"
#include "lancet/plan/model_session.h"

namespace lancet::cli {
namespace {

using Json = nlohmann::ordered_json;
using Fate = ImportedKey::Fate;

struct ImportArguments {
  std::string file;
  std::string model;
  std::string method;
};

/// Returns "v_lr: 0.5 → editor.values.lr".
std::string fate_line(const ImportedKey& key) {
  const std::string head = cat("  ", key.key, ": ", key.value);
  switch (key.fate) {
    case Fate::kMapped:
      return cat(head, "  → ", key.what);
    case Fate::kSame:
      return cat(head, "  = what lancet does: ", key.what);
    case Fate::kNotUsed:
      return cat(head, "  - not used: ", key.what);
    case Fate::kUnknown:
      break;
  }
  return cat(head, "  - not used: an unknown key");
}

ExitCode run_import(const ImportArguments& arguments, const Output& output) {
  begin(output);
  std::optional<DescribedModel> model;
  if (!arguments.model.empty()) model.emplace(describe_model(arguments.model, {}));
  const ImportedHparams imported = import_hparams(arguments.file, arguments.method, model ? &model->config : nullptr);
  if (output.json) {
    Json keys = Json::array();
    for (const ImportedKey& key : imported.keys)
      keys.push_back({{"key", key.key}, {"value", key.value}, {"fate", fate_name(key.fate)}, {"what", key.what}});
    std::cout << Json{{"method", imported.method}, {"yaml", to_yaml(imported.job)}, {"keys", keys}}.dump(1) << "\n";
    return ExitCode::kOk;
  }
  std::cout << to_yaml(imported.job);
  for (const ImportedKey& key : imported.keys) log_line(fate_line(key));
  return ExitCode::kOk;
}

}  // namespace

void add_import(CLI::App& app, Action& action) {
  CLI::App& parent =
      add_command_group(app, "import",
                        "Make parts of a job from files of other tools.\n"
                        "  lancet import hparams EasyEdit/hparams/MEMIT/llama-7b.yaml --model DIR > job.yaml");
  auto arguments = std::make_shared<ImportArguments>();
  auto output = std::make_shared<Output>();
  CLI::App& command =
      add_command(parent, "hparams",
                  "Read a hyper-parameter file of EasyEdit, memit, AlphaEdit, unified-model-editing and "
                  "UltraEdit: prints the sections of a job on\n"
                  "stdout, and on stderr what each key became.\n"
                  "  lancet import hparams EasyEdit/hparams/MEMIT/llama-7b.yaml --model DIR > job.yaml");
  add_option(command, "file", arguments->file, "The file, YAML or JSON").required().type("FILE");
  add_option(command, "--model", arguments->model, "Model folder, to check the layers against its config.json")
      .type("DIR");
  add_option(command, "--method", arguments->method, "The method's name in lancet, if the file does not say it");
  add_output_options(command, *output);
  on_choice(command, action, [=] { return run_import(*arguments, *output); });
}

}  // namespace lancet::cli
