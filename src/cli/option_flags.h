// Flags that are declared as options (include/lancet/spec): name, help, choices, range and default are the
// declaration's, and a value is read as in a job.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "command_line.h"
#include "lancet/io/output_folder.h"
#include "lancet/job/job_config.h"
#include "lancet/spec/job_spec.h"
#include "lancet/spec/read_option.h"

namespace lancet::cli {

/// "quantise_base" -> "--quantise-base".
std::string flag_of(std::string_view key);

/// What was typed for options of one section, by their keys.
class TypedOptions {
 public:
  /// Adds their flags to the command. A value that an option's reader would refuse is an error of the command line. A
  /// name that a flag had in an earlier version holds, but is not shown. This outlives the parser.
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
  Argument add(CLI::App& command, const std::string& flag, const AnyOption& option);

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
