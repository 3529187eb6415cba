#include "command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "lancet/core/strings.h"
#include "lancet/spec/given_option.h"
#include "lancet/spec/option.h"

namespace lancet::cli {

Argument& Argument::required() {
  option_.required();
  return *this;
}

Argument& Argument::type(const std::string& name) {
  option_.type_name(name);
  return *this;
}

Argument& Argument::shows_default() {
  option_.capture_default_str();
  return *this;
}

Argument& Argument::shows_default(const std::string& text) {
  option_.default_str(text);
  return *this;
}

Argument& Argument::between(int64_t least, int64_t most) {
  option_.check(CLI::Range(least, most));
  return *this;
}

Argument& Argument::positive() {
  option_.check(CLI::PositiveNumber);
  return *this;
}

Argument& Argument::one_of(const std::vector<std::string>& words) {
  option_.check(CLI::IsMember(words).description(""));
  return *this;
}

Argument& Argument::repeats() {
  option_.take_all()->allow_extra_args(false);
  return *this;
}

Argument& Argument::separated_by(char mark) {
  option_.delimiter(mark)->allow_extra_args(false);
  return *this;
}

Argument& Argument::excludes(const Argument& other) {
  option_.excludes(&other.option_);
  return *this;
}

namespace {

template <typename Value>
Argument add(CLI::App& command, const std::string& names, Value& value, const std::string& help) {
  return Argument(*command.add_option(names, value, help));
}

}  // namespace

Argument add_option(CLI::App& command, const std::string& names, std::string& value, const std::string& help) {
  return add(command, names, value, help);
}

Argument add_option(CLI::App& command, const std::string& names, std::filesystem::path& value,
                    const std::string& help) {
  return add(command, names, value, help);
}

Argument add_option(CLI::App& command, const std::string& names, std::vector<std::string>& value,
                    const std::string& help) {
  return add(command, names, value, help);
}

Argument add_option(CLI::App& command, const std::string& names, int64_t& value, const std::string& help) {
  return add(command, names, value, help);
}

Argument add_option(CLI::App& command, const std::string& names, uint64_t& value, const std::string& help) {
  return add(command, names, value, help);
}

Argument add_option(CLI::App& command, const std::string& names, std::optional<double>& value,
                    const std::string& help) {
  return add(command, names, value, help);
}

Argument add_option(CLI::App& command, const std::string& name,
                    const std::function<std::string(const std::string&)>& take, const std::string& help) {
  const auto take_checked = [name, take](const std::string& given) {
    if (const std::string problem = take(given); !problem.empty()) throw CLI::ValidationError(name, problem);
  };
  return Argument(*command.add_option_function<std::string>(name, take_checked, help));
}

Argument add_flag(CLI::App& command, const std::string& names, bool& value, const std::string& help) {
  return Argument(*command.add_flag(names, value, help));
}

Argument add_flag(CLI::App& command, const std::string& names, const std::function<void()>& take,
                  const std::string& help) {
  return Argument(*command.add_flag_callback(names, take, help));
}

CLI::App& add_command(CLI::App& app, const std::string& name, const std::string& help) {
  return *app.add_subcommand(name, help);
}

CLI::App& add_command_group(CLI::App& app, const std::string& name, const std::string& help) {
  CLI::App& group = add_command(app, name, help);
  group.require_subcommand(1);
  return group;
}

void on_choice(CLI::App& command, Action& action, Action work) {
  command.callback([&action, work = std::move(work)] { action = work; });
}

void set_footer(CLI::App& command, const std::function<std::string()>& text) { command.footer(text); }

namespace {

bool is_list(const AnyOption& option) { return std::holds_alternative<const TextsOption*>(option); }

ConfigTree unquoted(const std::string& text) {
  ConfigTree value = ConfigTree::text(text);
  value.quoted = false;
  return value;
}

/// Returns the value as a job would have it. For a list, "a,b" is short for "[a, b]".
ConfigTree typed_value(const AnyOption& option, const std::string& text) {
  if (!is_list(option)) return unquoted(text);
  const bool has_brackets = text.starts_with('[') && text.ends_with(']');
  std::vector<ConfigTree> items;
  for (const std::string& item : split(has_brackets ? text.substr(1, text.size() - 2) : text, ','))
    items.push_back(unquoted(item.substr(std::min(item.find_first_not_of(' '), item.size()))));
  return ConfigTree::list(std::move(items));
}

std::string type_name(const AnyOption& option) {
  if (const std::vector<std::string> choices = choices_of(option); !choices.empty())
    return cat("{", join(choices, ","), "}");
  if (std::holds_alternative<const IntegerOption*>(option)) return "INT";
  if (std::holds_alternative<const NumberOption*>(option)) return "NUMBER";
  return is_list(option) ? "TEXT,..." : "TEXT";
}

/// Returns for example "Number type of the factors; auto: f16 for gguf, f32 for peft".
std::string help_of(const AnyOption& option) {
  std::string text = description_of(option);
  if (const std::string range = range_text(option); !range.empty()) text += cat(" (a number", range, ")");
  std::erase(text, '`');
  if (text.front() >= 'a' && text.front() <= 'z' && !description_of(option).starts_with('`'))
    text.front() = static_cast<char>(text.front() - 'a' + 'A');
  return text;
}

}  // namespace

std::string flag_of(std::string_view key) {
  std::string flag = cat("--", key);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

void TypedOptions::add(CLI::App& command, std::initializer_list<AnyOption> options) {
  add(command, std::span(options.begin(), options.size()));
}

void TypedOptions::add(CLI::App& command, std::span<const AnyOption> options) {
  for (const AnyOption& option : options) add_one(command, option);
}

void TypedOptions::add_one(CLI::App& command, const AnyOption& option) {
  const std::string key(base_of(option).key), flag = flag_of(key);
  if (std::holds_alternative<const FlagOption*>(option)) {
    add_flag(
        command, flag, [this, key] { tree_.set(key, unquoted("true")); }, help_of(option));
    return;
  }
  const auto take = [this, key, option](const std::string& text) {
    tree_.set(key, typed_value(option, text));
    return given_problem(option, *tree_.find(key));
  };
  add_option(command, flag, take, help_of(option)).type(type_name(option)).shows_default(default_text(option));
}

std::vector<std::string> TypedOptions::overrides(std::string_view section) const {
  std::vector<std::string> all;
  for (const auto& [key, value] : tree_.entries) {
    std::vector<std::string> items;
    for (const ConfigTree& item : value.items) items.push_back(item.scalar);
    const bool is_scalar = value.kind == ConfigTree::Kind::kScalar;
    all.push_back(cat(section, ".", key, "=", is_scalar ? value.scalar : cat("[", join(items), "]")));
  }
  return all;
}

RunOptions parse_run(const TypedOptions& typed) { return typed.read(parse_run_options); }

IfExists OutputArguments::if_exists() const {
  return output.value(OutputSpec::kReplace) ? IfExists::kReplace : IfExists::kError;
}

Argument add_output_folder(CLI::App& command, OutputArguments& arguments, const std::string& help) {
  Argument folder = add_option(command, "--out", arguments.folder, help).type("DIR");
  arguments.output.add(command, {&OutputSpec::kReplace});
  return folder;
}

}  // namespace lancet::cli
