// Commands and their options, for the parser CLI11. Its headers take longer to compile than a whole command, so only
// command_line.cpp and the code that reads the parser include them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/core/error.h"
#include "lancet/io/output_folder.h"
#include "lancet/job/job_config.h"
#include "lancet/spec/job_spec.h"
#include "lancet/spec/read_option.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace lancet::cli {

/// Runs the chosen command; returns the process's exit code.
using Action = std::function<ExitCode()>;

/// An argument of a command: how it may be given, and what --help says about it.
class Argument {
 public:
  explicit Argument(CLI::Option& option) : option_(option) {}
  Argument& required();
  /// Values of the types "FILE" and "DIR" are completed with paths.
  Argument& type(const std::string& name);
  Argument& shows_default();
  /// `text`: the default that --help shows.
  Argument& shows_default(const std::string& text);
  Argument& between(int64_t least, int64_t most);
  Argument& positive();
  Argument& one_of(const std::vector<std::string>& words);
  /// The option may be given several times, with one value each: `--set a=b job.yaml`.
  Argument& repeats();
  /// The option has one value with several parts.
  Argument& separated_by(char mark);
  Argument& excludes(const Argument& other);

 private:
  CLI::Option& option_;
};

/// `names`: "-q,--quiet", or "job" for a positional argument. The given text is stored in `value`, which must outlive
/// the parser.
Argument add_option(CLI::App& command, const std::string& names, std::string& value, const std::string& help);
Argument add_option(CLI::App& command, const std::string& names, std::filesystem::path& value, const std::string& help);
Argument add_option(CLI::App& command, const std::string& names, std::vector<std::string>& value,
                    const std::string& help);
Argument add_option(CLI::App& command, const std::string& names, int64_t& value, const std::string& help);
Argument add_option(CLI::App& command, const std::string& names, uint64_t& value, const std::string& help);
Argument add_option(CLI::App& command, const std::string& names, std::optional<double>& value, const std::string& help);
/// Calls `take` with the given text. It returns what is wrong with the text; empty if nothing is.
Argument add_option(CLI::App& command, const std::string& name,
                    const std::function<std::string(const std::string&)>& take, const std::string& help);
/// `value` is false unless the flag is given.
Argument add_flag(CLI::App& command, const std::string& names, bool& value, const std::string& help);
/// Calls `take` if the flag is given.
Argument add_flag(CLI::App& command, const std::string& names, const std::function<void()>& take,
                  const std::string& help);

/// Adds a command. `help`: what it does, then indented examples.
CLI::App& add_command(CLI::App& app, const std::string& name, const std::string& help);
/// Adds a command that only has commands of its own, of which one must be chosen.
CLI::App& add_command_group(CLI::App& app, const std::string& name, const std::string& help);
/// Sets `action` to `work` when `command` is chosen.
void on_choice(CLI::App& command, Action& action, Action work);
/// Shows a text below the options of --help. The text is made when it is shown.
void set_footer(CLI::App& command, const std::function<std::string()>& text);

// Flags for declared options (include/lancet/spec). Name, help, choices, range and default come from the declaration,
// and a value is read as in a job.

/// Returns "--quantise-base" for "quantise_base".
std::string flag_of(std::string_view key);

/// The values that were typed for options of one section, by their keys.
class TypedOptions {
 public:
  /// Adds flags for the options to the command. A value that the option's reader refuses is an error of the command
  /// line. Flags also work by their names of earlier versions, which --help does not show. This object must outlive the
  /// parser.
  void add(CLI::App& command, std::span<const AnyOption> options);
  void add(CLI::App& command, std::initializer_list<AnyOption> options);

  const ConfigTree& tree() const { return tree_; }
  /// Returns the section as `parse` reads it.
  template <typename Parse>
  auto read(const Parse& parse) const {
    ConfigProblems problems("command line");
    auto value = parse(ConfigSection(tree_, "", problems));
    problems.throw_if_any();
    return value;
  }
  /// Returns the typed value of one option, else its default.
  template <typename Declared>
  auto value(const Declared& option) const {
    return read([&](ConfigSection section) { return lancet::read(section, option); });
  }
  /// Returns the changes of a job's `section` in the form of --set: "run.devices=[cpu]".
  std::vector<std::string> overrides(std::string_view section) const;

 private:
  void add_one(CLI::App& command, const AnyOption& option);

  ConfigTree tree_ = ConfigTree::map();
};

/// Returns `run:` for a command without a job.
RunOptions parse_run(const TypedOptions& typed);

/// The folder that a command writes, and whether it may replace an earlier output there.
struct OutputArguments {
  std::string folder;
  TypedOptions output;

  IfExists if_exists() const;
};

/// Adds --out, which `help` describes, and --replace. Returns --out.
Argument add_output_folder(CLI::App& command, OutputArguments& arguments, const std::string& help);

}  // namespace lancet::cli
