#include "option_flags.h"

#include <algorithm>

#include "lancet/core/strings.h"
#include "lancet/spec/given_option.h"
#include "lancet/spec/option_text.h"

namespace lancet::cli {
namespace {

/// Flags of earlier versions, by the keys that they are of.
constexpr std::pair<std::string_view, const char*> kEarlierFlags[] = {{"devices", "--device"},
                                                                      {"quantise_base", "--frozen"}};

bool is_list(const AnyOption& option) { return std::holds_alternative<const TextsOption*>(option); }

ConfigTree unquoted(const std::string& text) {
  ConfigTree value = ConfigTree::text(text);
  value.quoted = false;
  return value;
}

/// The value that a job would have; of a list "a,b" is short for "[a, b]".
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

/// "Of the factors; auto: f16 in gguf, f32 in peft".
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
  for (const AnyOption& option : options) {
    const std::string_view key = base_of(option).key;
    add(command, flag_of(key), option);
    for (const auto& [of_key, flag] : kEarlierFlags)
      if (of_key == key) add(command, flag, option).hidden();
  }
}

Argument TypedOptions::add(CLI::App& command, const std::string& flag, const AnyOption& option) {
  const std::string key(base_of(option).key);
  if (std::holds_alternative<const FlagOption*>(option))
    return add_flag(
        command, flag, [this, key] { tree_.set(key, unquoted("true")); }, help_of(option));
  const auto take = [this, key, option](const std::string& text) {
    tree_.set(key, typed_value(option, text));
    return given_problem(option, *tree_.find(key));
  };
  return add_option(command, flag, take, help_of(option)).type(type_name(option)).shows_default(default_text(option));
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
