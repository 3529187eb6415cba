// `lancet init`: a job to begin with.
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "lancet/core/reporter.h"
#include "lancet/job/job_template.h"

namespace lancet::cli {
namespace {

struct InitArguments {
  std::string model, requests, out;
};

ExitCode run_init(const InitArguments& arguments, const Output& output) {
  begin(output);
  const std::string job =
      make_job_template(open_model(arguments.model, {}), {.requests = arguments.requests, .out = arguments.out});
  std::cout << (output.json ? nlohmann::ordered_json{{"yaml", job}}.dump(1) + "\n" : job);
  if (arguments.requests.empty()) log_line("next: put your facts in the place of the examples under requests:");
  log_line("next: lancet edit job.yaml --rehearse, with the name of the file that this went to");
  return ExitCode::kOk;
}

}  // namespace

void add_init(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<InitArguments>();
  auto output = std::make_shared<Output>();
  CLI::App& command = add_command(app, "init",
                                  "Print a commented job for a model, to put one's own facts in.\n"
                                  "  lancet init --model DIR > job.yaml\n"
                                  "  lancet init --model DIR --requests facts.csv --out edited > job.yaml");
  add_option(command, "--model", arguments->model, "Model folder").required().type("DIR");
  add_option(command, "--requests", arguments->requests, "Request file; default: examples in the job itself")
      .type("FILE");
  add_option(command, "--out", arguments->out, "Folder for the edited model; default: edited, beside the job")
      .type("DIR");
  add_output_options(command, *output, "The job's text in one JSON document");
  on_choice(command, action, [=] { return run_init(*arguments, *output); });
}

}  // namespace lancet::cli
