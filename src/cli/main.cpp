// The command line. The only place that turns errors into exit codes.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <string_view>
#include <system_error>

#include "commands.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/core/version.h"
#include "lancet/runtime/numerics.h"
#include "parse_problem.h"
#include "visible_stream.h"

namespace lancet::cli {
namespace {

constexpr const char* kFooter =
    "Exit codes: 0 done; 2 job, command line or request file; 3 checkpoint, tokenizer or output;\n"
    "4 devices or memory; 5 numeric failure, or `accept:` not met; 6 another process failed; 70 a defect in lancet;\n"
    "129, 130, 143 stopped by SIGHUP, SIGINT (Ctrl-C), SIGTERM, as a shell shows it.\n"
    "A job file to start from: lancet init --model DIR; every key: docs/options.md.";

/// What was printed is a result too: one that did not arrive is an error, whatever command printed it.
ExitCode with_output_told(ExitCode code) {
  errno = 0;
  std::cout.flush();
  if (std::cout.good()) return code;
  const std::string why = errno != 0 ? std::generic_category().message(errno) : "unknown reason";
  log_error(cat("stdout: what was printed is not complete: ", why));
  return code == ExitCode::kOk ? ExitCode::kCheckpoint : code;
}

ExitCode run(int argc, char** argv) {
  set_numerics();
  CLI::App app{"lancet edits what a language model knows, by small changes of its weights."};
  app.name("lancet");
  app.set_version_flag("--version", std::string("lancet ") + kVersion);
  app.footer(kFooter);
  app.require_subcommand(1);
  Action action;
  add_edit(app, action);
  add_erase(app, action);
  add_eval(app, action);
  add_log(app, action);
  add_apply(app, action);
  add_undo(app, action);
  add_merge(app, action);
  add_stats(app, action);
  add_compare(app, action);
  add_completion(app, action);
  add_diff(app, action);
  add_doctor(app, action);
  add_export(app, action);
  add_generate(app, action);
  add_help(app, action);
  add_import(app, action);
  add_init(app, action);
  add_inspect(app, action);
  add_launch(app, action);
  add_plan(app, action);
  add_presets(app, action);
  add_push(app, action);
  add_quantise(app, action);
  add_report(app, action);
  add_schema(app, action);
  add_serve(app, action);
  add_trace(app, action);
  add_tune(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool is_wanted = error.get_exit_code() == 0;  // --help, --version
    if (!is_wanted || has_unknown_command(app)) throw ConfigError(parse_problem(app, error));
    app.exit(error);
    return ExitCode::kOk;
  }
  return action();
}

std::terminate_handler end_of_others = nullptr;

/// Memory may run out where nothing can be thrown: nlohmann::json takes some to give back a list. Nothing is
/// half-written then, as after a kill, and the exit code is the one that exhausted memory has elsewhere.
[[noreturn]] void end_without_memory() {
  try {
    if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    constexpr std::string_view kWords = "lancet: error: out of memory\n";
    static_cast<void>(!::write(STDERR_FILENO, kWords.data(), kWords.size()));
    ::_exit(static_cast<int>(ExitCode::kPlacement));
  } catch (...) {
    // what the standard's handler says of it
  }
  end_of_others();
  std::abort();
}

/// Every error is told, and becomes the exit code.
ExitCode run_told(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (...) {
    const Problem problem = problem_of(std::current_exception());
    log_error(problem.message);
    return problem.code;
  }
}

}  // namespace
}  // namespace lancet::cli

int main(int argc, char** argv) {
  using namespace lancet::cli;
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow (ulimit -f) is an error with its name, not the end
  end_of_others = std::set_terminate(end_without_memory);
  const VisibleStream output(std::cout), errors(std::cerr);
  return static_cast<int>(with_output_told(run_told(argc, argv)));
}
