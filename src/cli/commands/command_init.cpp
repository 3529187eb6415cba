// `lancet init`: a job to begin with.
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"
#include "lancet/job_setup/job_template.h"

namespace lancet::cli {
namespace {

namespace fs = std::filesystem;

struct InitArguments {
  std::string model, requests, out;
};

/// Whether `--out` names the file for the job, and not the folder for the edited model.
bool names_job(const std::string& out) { return out.ends_with(".yaml") || out.ends_with(".yml"); }

void write_job(const std::string& job, const fs::path& file) {
  if (fs::exists(file)) throw ConfigError(cat("--out: ", file.string(), ": exists already: choose another name"));
  if (const fs::path folder = fs::absolute(file).parent_path(); !fs::is_directory(folder))
    throw ConfigError(cat("--out: ", folder.string(), ": is no folder: make it first"));
  write_text_file(file, job);
}

ExitCode run_init(const InitArguments& arguments, const Output& output) {
  begin(output);
  const bool to_file = names_job(arguments.out);
  JobTemplateOptions options{.requests = arguments.requests};
  (to_file ? options.job : options.out) = arguments.out;
  const std::string job = make_job_template(open_model(arguments.model, {}), options);
  if (to_file) write_job(job, arguments.out);
  if (output.json)
    std::cout << nlohmann::ordered_json{{"yaml", job}}.dump(1) << "\n";
  else if (!to_file)
    std::cout << job;
  if (arguments.requests.empty()) log_line("next: put your facts in the place of the examples under requests:");
  log_line(to_file ? cat("next: lancet edit ", arguments.out, " --rehearse")
                   : "next: lancet edit job.yaml --rehearse, with the name of the file that this went to");
  return ExitCode::kOk;
}

}  // namespace

void add_init(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<InitArguments>();
  auto output = std::make_shared<Output>();
  CLI::App& command = add_command(app, "init",
                                  "Print a job with comments for a model, to which you add your own facts.\n"
                                  "  lancet init --model DIR --out job.yaml\n"
                                  "  lancet init --model DIR > job.yaml\n"
                                  "  lancet init --model DIR --requests facts.csv --out edited > job.yaml");
  add_option(command, "--model", arguments->model, "Model folder").required().type("DIR");
  add_option(command, "--requests", arguments->requests, "Request file; default: examples inside the job").type("FILE");
  add_option(
      command, "--out", arguments->out,
      "If the name ends in .yaml: file for the job, whose paths are then relative to it. Else: folder for the edited "
      "model; default: edited, beside the job")
      .type("FILE|DIR");
  add_output_options(command, *output, "Print the job's text in one JSON document");
  on_choice(command, action, [=] { return run_init(*arguments, *output); });
}

}  // namespace lancet::cli
