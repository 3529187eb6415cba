// `lancet export`: edits as an adapter for other programs, a model as a GGUF file or back, and a model without records
// of its edits.
#include <algorithm>
#include <array>
#include <iostream>
#include <memory>

#include "commands.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/export/checkpoint_job.h"
#include "lancet/export/export_job.h"
#include "lancet/export/gguf_job.h"
#include "lancet/spec/adapter_spec.h"
#include "terminal.h"

namespace lancet::cli {
namespace {

constexpr const char* kLeaks =
    "what was edited can be read off the numbers themselves: subjects can be recovered from edited weights and from "
    "their factors. Without its records an output names nobody, but it is not anonymous";

struct ExportArguments {
  std::string source, model, type = "auto", shard_size = "4GB";
  bool exact = false, strip = false;
  TypedOptions adapter;
  OutputArguments output;
};

/// Returns the option for vLLM: the smallest of its sizes that is not below the rank.
std::string vllm_text(const AdapterReport& report) {
  constexpr std::array<int64_t, 8> kSizes{8, 16, 32, 64, 128, 256, 320, 512};
  const auto* size = std::find_if(kSizes.begin(), kSizes.end(), [&](int64_t each) { return each >= report.rank; });
  return size == kSizes.end() ? "" : cat("  for vLLM: --enable-lora --max-lora-rank ", *size, "\n");
}

int64_t found_rank(const AdapterReport& report) {
  int64_t rank = 0;
  for (const AdapterModule& module : report.modules) rank = std::max(rank, module.numeric_rank);
  return rank;
}

std::string adapter_text(const AdapterReport& report, const ExportAdapterJob& job) {
  std::vector<std::vector<std::string>> rows{{"module", "directions", "rank", "lost of its norm, %"}};
  for (const AdapterModule& module : report.modules)
    rows.push_back({module.name, std::to_string(module.directions), std::to_string(module.numeric_rank),
                    short_number(100 * module.relative_loss())});
  return cat("\n", format_table(rows), "  written: ", job.out.string(), ", rank ", report.rank, " (the edits have ",
             found_rank(report), "), ", dtype_name(job.dtype), ", ",
             bytes_text(static_cast<uint64_t>(report.file_bytes)), "\n",
             job.format == AdapterFormat::kPeft ? vllm_text(report) : "");
}

ExitCode run_export_adapter(const ExportArguments& arguments, const Output& output) {
  begin(output);
  ExportAdapterJob job = arguments.adapter.read(parse_adapter_options);
  job.edited = arguments.source;
  job.model = arguments.model;
  job.out = arguments.output.folder;
  job.if_exists = arguments.output.if_exists();
  job.excess = arguments.exact ? ExcessRank::kRefuse : ExcessRank::kTruncate;
  job.provenance = arguments.strip ? Provenance::kStripped : Provenance::kKept;
  const AdapterReport report = export_adapter(job);
  if (arguments.strip) log_warning(kLeaks);
  if (output.json)
    std::cout << to_json(report, job);
  else if (!output.quiet)
    std::cout << adapter_text(report, job);
  return ExitCode::kOk;
}

ExitCode run_export_model(const ExportArguments& arguments, const Output& output) {
  begin(output);
  if (!arguments.strip)
    throw ConfigError(
        "lancet export model: expected --strip-provenance: what it is for is a copy without records; a "
        "whole copy is made by cp -r");
  const ExportModelJob job{
      .model = arguments.source, .out = arguments.output.folder, .if_exists = arguments.output.if_exists()};
  const ExportModelReport report = export_model(job);
  log_warning(kLeaks);
  if (output.json)
    std::cout << to_json(report, job);
  else if (!output.quiet)
    std::cout << cat("\n  written: ", job.out.string(), ": ", join(report.files),
                     "\n  left out: ", report.left_out.empty() ? "nothing" : join(report.left_out), "\n");
  return ExitCode::kOk;
}

constexpr std::array kMatrixTypes{GgufMatrixType::kAuto, GgufMatrixType::kF32, GgufMatrixType::kF16,
                                  GgufMatrixType::kBf16, GgufMatrixType::kQ8_0};

std::string gguf_text(const ExportGgufReport& report, const ExportGgufJob& job) {
  std::vector<std::string> types;
  for (const auto& [type, count] : report.types) types.push_back(cat(count, " ", type));
  return cat("\n  written: ", job.out.string(), ", ", bytes_text(static_cast<uint64_t>(report.file_bytes)),
             "\n  architecture ", report.architecture, ", tokenizer ", report.tokenizer, "; tensors: ", join(types),
             "\n");
}

ExitCode run_export_gguf(const ExportArguments& arguments, const Output& output) {
  begin(output);
  ExportGgufJob job{
      .model = arguments.source, .out = arguments.output.folder, .if_exists = arguments.output.if_exists()};
  for (const GgufMatrixType type : kMatrixTypes)
    if (gguf_matrix_type_name(type) == arguments.type) job.type = type;
  const ExportGgufReport report = export_gguf_file(job);
  if (output.json)
    std::cout << to_json(report, job);
  else if (!output.quiet)
    std::cout << gguf_text(report, job);
  return ExitCode::kOk;
}

struct CheckpointType {
  const char* name;
  DType dtype;
};
constexpr std::array kCheckpointTypes{CheckpointType{"bf16", DType::kBF16}, CheckpointType{"f16", DType::kF16},
                                      CheckpointType{"f32", DType::kF32}};

ExitCode run_export_checkpoint(const ExportArguments& arguments, const Output& output) {
  begin(output);
  ExportCheckpointJob job{
      .model = arguments.source, .out = arguments.output.folder, .if_exists = arguments.output.if_exists()};
  for (const auto& [name, dtype] : kCheckpointTypes)
    if (name == arguments.type) job.dtype = dtype;
  const std::optional<int64_t> shard = parse_bytes(arguments.shard_size);
  if (!shard)
    throw ConfigError(cat("--max-shard-size ", arguments.shard_size, ": expected a size such as 4GB or 500MiB"));
  job.shard_bytes = static_cast<uint64_t>(*shard);
  const ExportCheckpointReport report = export_checkpoint_folder(job);
  if (output.json)
    std::cout << to_json(report, job);
  else if (!output.quiet)
    std::cout << cat("\n  written: ", job.out.string(), ": ", join(report.files),
                     "\n  weights: ", dtype_name(report.dtype), ", ",
                     bytes_text(static_cast<uint64_t>(report.weight_bytes)), "\n");
  return ExitCode::kOk;
}

using Arguments = std::shared_ptr<ExportArguments>;

void add_export_options(CLI::App& command, const Arguments& arguments, Output& output) {
  add_output_folder(command, arguments->output, "Folder to write").required();
  add_flag(command, "--strip-provenance", arguments->strip,
           "Write only what programs load, without records of the edits; see the warning");
  add_output_options(command, output);
}

void add_export_adapter(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<ExportArguments>();
  auto output = std::make_shared<Output>();
  CLI::App& command = add_command(app, "adapter",
                                  "Write the edits of an output as a LoRA adapter.\n"
                                  "  lancet export adapter out/demo --out out/demo-adapter\n"
                                  "  lancet export adapter out/demo --format gguf --out out/demo-gguf");
  add_option(command, "edited", arguments->source, "Output of lancet edit").required().type("DIR");
  arguments->adapter.add(command, AdapterSpec::kAll);
  add_flag(command, "--exact", arguments->exact, "Refuse changes of a higher rank, instead of truncating them");
  add_option(command, "--model", arguments->model, "Base model of the edits, if it is no longer where it was")
      .type("DIR");
  add_export_options(command, arguments, *output);
  on_choice(command, action, [=] { return run_export_adapter(*arguments, *output); });
}

void add_export_gguf(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<ExportArguments>();
  auto output = std::make_shared<Output>();
  CLI::App& command = add_command(app, "gguf",
                                  "A model folder as one GGUF file, for llama.cpp, Ollama and LM Studio.\n"
                                  "  lancet export gguf out/demo --out demo.gguf\n"
                                  "  lancet export gguf MODEL --type Q8_0 --out model-q8_0.gguf");
  add_option(command, "model", arguments->source, "Model folder, or an output of lancet edit").required().type("DIR");
  std::vector<std::string> types;
  for (const GgufMatrixType type : kMatrixTypes) types.push_back(gguf_matrix_type_name(type));
  add_option(command, "--type", arguments->type, "Of matrices; auto: the type that the folder has").one_of(types);
  add_output_folder(command, arguments->output, "GGUF file to write").required().type("FILE");
  add_output_options(command, *output);
  on_choice(command, action, [=] { return run_export_gguf(*arguments, *output); });
}

void add_export_checkpoint(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<ExportArguments>();
  auto output = std::make_shared<Output>();
  CLI::App& command = add_command(app, "checkpoint",
                                  "A GGUF file as a model folder in full precision, for transformers.\n"
                                  "  lancet export checkpoint model.gguf --out model");
  add_option(command, "model", arguments->source, "GGUF file, or an output of lancet edit that has one")
      .required()
      .type("FILE");
  std::vector<std::string> types{"auto"};
  for (const CheckpointType& type : kCheckpointTypes) types.emplace_back(type.name);
  add_option(command, "--dtype", arguments->type, "Of the weights; auto: bf16, or the file's if it is not quantised")
      .one_of(types);
  add_option(command, "--max-shard-size", arguments->shard_size, "Of a file of weights, unless one tensor is larger")
      .type("SIZE")
      .shows_default();
  add_output_folder(command, arguments->output, "Folder to write").required();
  add_output_options(command, *output);
  on_choice(command, action, [=] { return run_export_checkpoint(*arguments, *output); });
}

void add_export_model(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<ExportArguments>();
  auto output = std::make_shared<Output>();
  CLI::App& command = add_command(app, "model",
                                  "Copy an output without the records of its edits.\n"
                                  "  lancet export model out/demo --strip-provenance --out out/demo-bare");
  add_option(command, "model", arguments->source, "Output of lancet edit in any form").required().type("DIR");
  add_export_options(command, arguments, *output);
  on_choice(command, action, [=] { return run_export_model(*arguments, *output); });
}

}  // namespace

void add_export(CLI::App& app, Action& action) {
  CLI::App& group = add_command_group(app, "export",
                                      "Write edits or a model for other programs, or a model without its records.\n"
                                      "  lancet export adapter out/demo --out out/demo-adapter\n"
                                      "  lancet export gguf out/demo --out demo.gguf\n"
                                      "  lancet export model out/demo --strip-provenance --out out/demo-bare");
  add_export_adapter(group, action);
  add_export_gguf(group, action);
  add_export_checkpoint(group, action);
  add_export_model(group, action);
}

}  // namespace lancet::cli
