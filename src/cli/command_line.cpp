#include "command_line.h"

#include <CLI/CLI.hpp>
#include <utility>

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

Argument& Argument::hidden() {
  option_.group("");
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

}  // namespace lancet::cli
