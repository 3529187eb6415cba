// The command line. Only this file turns errors into exit codes.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <iterator>
#include <new>
#include <optional>
#include <string_view>
#include <system_error>

#include "commands.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/core/version.h"
#include "lancet/runtime/tensor.h"
#include "parse_problem.h"
#include "terminal.h"

namespace lancet::cli {
namespace {

constexpr const char* kFooter =
    "Exit codes: 0 done; 2 job, command line or request file; 3 checkpoint, tokenizer or output;\n"
    "4 devices or memory; 5 numeric failure, or `accept:` not met; 6 another process failed; 70 a defect in lancet;\n"
    "129, 130, 143 stopped by SIGHUP, SIGINT (Ctrl-C), SIGTERM, as a shell shows it.\n"
    "A job file to start from: lancet init --model DIR; every key: docs/options.md.";

constexpr size_t kShownArgument = 80;  ///< bytes
// The groups of commands, by what people do with them. docs/commands.md and the completion of shells follow them.
constexpr const char* kEditing = "Change what a model knows";
constexpr const char* kMeasuring = "Ask, measure and compare models";
constexpr const char* kPreparing = "Prepare a job";
constexpr const char* kHandingOver = "Hand a model over to others";
constexpr const char* kAround = "Processes, shells and help";

struct Command {
  std::string_view name;
  void (*add)(CLI::App& app, Action& action);
  const char* group;
  bool describes_others = false;
};
/// In the order of --help.
constexpr Command kCommands[] = {{"edit", add_edit, kEditing},
                                 {"erase", add_erase, kEditing},
                                 {"undo", add_undo, kEditing},
                                 {"merge", add_merge, kEditing},
                                 {"apply", add_apply, kEditing},
                                 {"log", add_log, kEditing},
                                 {"generate", add_generate, kMeasuring},
                                 {"eval", add_eval, kMeasuring},
                                 {"compare", add_compare, kMeasuring},
                                 {"report", add_report, kMeasuring},
                                 {"diff", add_diff, kMeasuring},
                                 {"trace", add_trace, kMeasuring},
                                 {"inspect", add_inspect, kMeasuring},
                                 {"init", add_init, kPreparing},
                                 {"doctor", add_doctor, kPreparing},
                                 {"plan", add_plan, kPreparing},
                                 {"stats", add_stats, kPreparing},
                                 {"tune", add_tune, kPreparing},
                                 {"presets", add_presets, kPreparing},
                                 {"import", add_import, kPreparing},
                                 {"schema", add_schema, kPreparing},
                                 {"serve", add_serve, kHandingOver},
                                 {"push", add_push, kHandingOver},
                                 {"export", add_export, kHandingOver},
                                 {"quantise", add_quantise, kHandingOver},
                                 {"launch", add_launch, kAround, true},
                                 {"completion", add_completion, kAround, true},
                                 {"help", add_help, kAround}};

void add_in_group(const Command& command, CLI::App& app, Action& action) {
  command.add(app, action);
  app.get_subcommand(std::string(command.name))->group(command.group);
}

/// Adds the command that the first word names. Adds all if it names none, or a command that describes others.
void add_commands(CLI::App& app, Action& action, std::string_view word) {
  const auto* named = std::ranges::find(kCommands, word, &Command::name);
  if (named != std::end(kCommands) && !named->describes_others) return add_in_group(*named, app, action);
  for (const Command& command : kCommands) add_in_group(command, app, action);
}

/// What was printed is a result, too: if it was not written completely, this is an error for every command.
ExitCode with_output_told(ExitCode code, const VisibleStream& output) {
  std::cout.flush();
  if (std::cout.good()) return code;
  const std::string why = output.error() != 0 ? std::generic_category().message(output.error()) : "unknown reason";
  log_error(cat("stdout: what was printed is not complete: ", why));
  return code == ExitCode::kOk ? ExitCode::kCheckpoint : code;
}

/// Refuses arguments that are not UTF-8. Names go into JSON documents and to servers, which accept only UTF-8, so
/// another name would arrive.
void refuse_other_bytes(int argc, char** argv) {
  for (int i = 1; i < argc; ++i)
    if (const std::optional<size_t> at = first_invalid_utf8(argv[i]))
      throw ConfigError(cat("argument ", i, ", '", excerpt(argv[i], kShownArgument),
                            "': expected UTF-8, got other bytes from the ", *at + 1,
                            "th on: rename the file, or write the name in UTF-8 (a terminal in the locale of ",
                            "the name shows it)"));
}

ExitCode run(int argc, char** argv) {
  refuse_other_bytes(argc, argv);
  set_numerics();
  CLI::App app{"lancet edits what a language model knows, by small changes of its weights."};
  app.name("lancet");
  app.set_version_flag("--version", std::string("lancet ") + kVersion);
  app.footer(kFooter);
  app.require_subcommand(1);
  Action action;
  add_commands(app, action, argc > 1 ? argv[1] : "");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool is_wanted = error.get_exit_code() == 0;  // the user asked for --help or --version
    if (!is_wanted || has_unknown_command(app)) throw ConfigError(parse_problem(app, error));
    app.exit(error);
    return ExitCode::kOk;
  }
  return action();
}

std::terminate_handler end_of_others = nullptr;

/// Ends the process if memory runs out in code that cannot throw: for example nlohmann::json needs memory to free a
/// list. Nothing is half-written then, as after a kill, and the exit code is that of exhausted memory.
[[noreturn]] void end_without_memory() {
  try {
    if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    constexpr std::string_view kWords = "lancet: error: out of memory\n";
    static_cast<void>(!::write(STDERR_FILENO, kWords.data(), kWords.size()));
    ::_exit(static_cast<int>(ExitCode::kPlacement));
  } catch (...) {
    // as the standard handler does
  }
  end_of_others();
  std::abort();
}

/// Reports every error, and turns it into the exit code.
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
  // a write beyond the largest file size (ulimit -f) then gives an error with the file's name
  std::signal(SIGXFSZ, SIG_IGN);
  end_of_others = std::set_terminate(end_without_memory);
  const VisibleStream output(std::cout), errors(std::cerr);
  return static_cast<int>(with_output_told(run_told(argc, argv), output));
}
