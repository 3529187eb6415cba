// The command line. The only place that turns errors into exit codes.
#include <exception>

#include "commands.h"
#include "lancet/core/progress.h"
#include "lancet/core/version.h"

namespace lancet::cli {
namespace {

constexpr const char* kFooter =
    "Exit codes: 0 done; 2 job, command line or request file; 3 checkpoint, tokenizer or output;\n"
    "4 devices or memory; 5 numeric failure, or `accept:` not met; 6 another process failed; 70 a defect in lancet.\n"
    "A job file to start from: data/jobs/demo.yaml; every key: docs/job-file.md.";

int run(int argc, char** argv) {
  CLI::App app{"lancet edits what a language model knows, by small changes of its weights."};
  app.name("lancet");
  app.set_version_flag("--version", std::string("lancet ") + kVersion);
  app.footer(kFooter);
  app.require_subcommand(1);
  Action action;
  add_edit(app, action);
  add_eval(app, action);
  add_stats(app, action);
  add_compare(app, action);
  add_completion(app, action);
  add_doctor(app, action);
  add_generate(app, action);
  add_import(app, action);
  add_inspect(app, action);
  add_launch(app, action);
  add_plan(app, action);
  add_presets(app, action);
  add_report(app, action);
  add_trace(app, action);
  add_tune(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool wanted = error.get_exit_code() == 0;  // --help, --version
    app.exit(error);
    return static_cast<int>(wanted ? ExitCode::kOk : ExitCode::kConfig);
  }
  return static_cast<int>(action());
}

}  // namespace
}  // namespace lancet::cli

int main(int argc, char** argv) {
  try {
    return lancet::cli::run(argc, argv);
  } catch (...) {
    const lancet::cli::Problem problem = lancet::cli::problem_of(std::current_exception());
    lancet::log_error(problem.message);
    return static_cast<int>(problem.code);
  }
}
