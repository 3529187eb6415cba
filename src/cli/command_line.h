// Commands and their options, for the parser CLI11. Its headers take longer to compile than a whole command: they are
// seen by command_line.cpp and by what reads the parser, not by every command.
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

/// What the chosen command does; returns the process's exit code.
using Action = std::function<ExitCode()>;

/// How an option may be given, and what --help says of it.
class Argument {
 public:
  explicit Argument(CLI::Option& option) : option_(option) {}
  Argument& required();
  /// "FILE" and "DIR" are completed with paths.
  Argument& type(const std::string& name);
  Argument& shows_default();
  /// `text`: what --help shows as the default.
  Argument& shows_default(const std::string& text);
  Argument& between(int64_t least, int64_t most);
  Argument& positive();
  Argument& one_of(const std::vector<std::string>& words);
  /// Several times, one value each: `--set a=b job.yaml`.
  Argument& repeats();
  /// One value, of several parts.
  Argument& separated_by(char mark);
  Argument& excludes(const Argument& other);

 private:
  CLI::Option& option_;
};

/// `names`: "-q,--quiet", or "job" of what is given by its place. What is given goes to `value`, which outlives the
/// parser.
Argument add_option(CLI::App& command, const std::string& names, std::string& value, const std::string& help);
Argument add_option(CLI::App& command, const std::string& names, std::filesystem::path& value, const std::string& help);
Argument add_option(CLI::App& command, const std::string& names, std::vector<std::string>& value,
                    const std::string& help);
Argument add_option(CLI::App& command, const std::string& names, int64_t& value, const std::string& help);
Argument add_option(CLI::App& command, const std::string& names, uint64_t& value, const std::string& help);
Argument add_option(CLI::App& command, const std::string& names, std::optional<double>& value, const std::string& help);
/// `take` is called with what is given, and returns what is wrong with it; empty: nothing.
Argument add_option(CLI::App& command, const std::string& name,
                    const std::function<std::string(const std::string&)>& take, const std::string& help);
/// False unless given.
Argument add_flag(CLI::App& command, const std::string& names, bool& value, const std::string& help);
/// `take` is called if given.
Argument add_flag(CLI::App& command, const std::string& names, const std::function<void()>& take,
                  const std::string& help);

/// A command that does `work` when it is chosen. `help`: what it does, then examples, indented.
CLI::App& add_command(CLI::App& app, const std::string& name, const std::string& help);
/// A command of which one of its own commands is to be chosen.
CLI::App& add_command_group(CLI::App& app, const std::string& name, const std::string& help);
/// Puts `work` into `action` when `command` is chosen.
void on_choice(CLI::App& command, Action& action, Action work);
/// Puts the text below the options of --help; made when it is shown.
void set_footer(CLI::App& command, const std::function<std::string()>& text);

// Flags that are declared as options (include/lancet/spec): name, help, choices, range and default are the
// declaration's, and a value is read as in a job.

/// "quantise_base" -> "--quantise-base".
std::string flag_of(std::string_view key);

/// What was typed for options of one section, by their keys.
class TypedOptions {
 public:
  /// Adds their flags to the command. A value that an option's reader would refuse is an error of the command line.
  /// This outlives the parser.
  void add(CLI::App& command, std::span<const AnyOption> options);
  void add(CLI::App& command, std::initializer_list<AnyOption> options);

  const ConfigTree& tree() const { return tree_; }
  /// The section as `parse` reads it.
  template <typename Parse>
  auto read(const Parse& parse) const {
    ConfigProblems problems("command line");
    auto value = parse(ConfigSection(tree_, "", problems));
    problems.throw_if_any();
    return value;
  }
  /// What was typed for one option, else its default.
  template <typename Declared>
  auto value(const Declared& option) const {
    return read([&](ConfigSection section) { return lancet::read(section, option); });
  }
  /// Changes of a job's `section`, as --set has them: "run.devices=[cpu]".
  std::vector<std::string> overrides(std::string_view section) const;

 private:
  void add_one(CLI::App& command, const AnyOption& option);

  ConfigTree tree_ = ConfigTree::map();
};

/// `run:` of a command without a job.
RunOptions parse_run(const TypedOptions& typed);

/// The folder that a command writes, and whether an earlier output may be there.
struct OutputArguments {
  std::string folder;
  TypedOptions output;

  IfExists if_exists() const;
};

/// Adds --out, which `help` describes, and --replace. Returns --out.
Argument add_output_folder(CLI::App& command, OutputArguments& arguments, const std::string& help);

}  // namespace lancet::cli
