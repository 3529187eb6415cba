#include "lancet/core/config_section.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <utility>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;
using Kind = ConfigTree::Kind;

constexpr std::string_view kAuto = "auto";

/// A value as it appears in a message.
std::string shown(const ConfigTree& value) {
  constexpr size_t kLongest = 60;
  switch (value.kind) {
    case Kind::kNull:
      return "nothing";
    case Kind::kList:
      return "a list";
    case Kind::kMap:
      return "a map";
    case Kind::kScalar:
      break;
  }
  const std::string text = excerpt(value.scalar, kLongest);
  return value.quoted ? cat("the text \"", text, "\"") : text;
}

/// Parses the numbers of JSON and YAML 1.2. "010" is 8 in some YAML readers and 10 in others, so it is refused here.
template <typename T>
std::optional<T> parse_number(const ConfigTree& value, ConfigRange<T> range) {
  if (value.kind != Kind::kScalar || value.quoted) return std::nullopt;
  const std::string_view text = value.scalar;
  const std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
  const auto is_digit = [&](size_t at) { return at < digits.size() && digits[at] >= '0' && digits[at] <= '9'; };
  // from_chars also accepts "nan" and "infinity"
  if (!is_digit(0) && !(digits.starts_with('.') && is_digit(1))) return std::nullopt;
  if (digits[0] == '0' && is_digit(1)) return std::nullopt;
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (number < range.min || number > range.max) return std::nullopt;
  return number;
}

template <typename T>
std::string range_text(ConfigRange<T> range) {
  const bool has_min = range.min != std::numeric_limits<T>::lowest();
  const bool has_max = range.max != std::numeric_limits<T>::max();
  if (has_min && has_max) return cat(" from ", range.min, " to ", range.max);
  if (has_min) return cat(" of at least ", range.min);
  if (has_max) return cat(" of at most ", range.max);
  return "";
}

std::optional<bool> parse_boolean(const ConfigTree& value) {
  // The spellings of YAML 1.2 and Python. YAML 1.1's yes, no, on, off can be words of a request.
  static const std::map<std::string, bool> kWords{{"true", true},   {"True", true},   {"TRUE", true},
                                                  {"false", false}, {"False", false}, {"FALSE", false}};
  if (value.kind != Kind::kScalar || value.quoted) return std::nullopt;
  const auto word = kWords.find(value.scalar);
  return word == kWords.end() ? std::nullopt : std::optional<bool>(word->second);
}

/// Parses every item with `parse`. `got` says which item is wrong.
template <typename T, typename Parse>
std::optional<std::vector<T>> parse_list(const ConfigTree& value, const Parse& parse, std::string& got) {
  if (value.kind != Kind::kList) {
    if (value.kind == Kind::kScalar) got += cat("; write [", value.scalar, "]");
    return std::nullopt;
  }
  std::vector<T> out;
  for (const ConfigTree& item : value.items) {
    std::optional<T> parsed = parse(item);
    if (!parsed) {
      got = cat(shown(item), " as item ", out.size() + 1, " of ", value.items.size());
      return std::nullopt;
    }
    out.push_back(std::move(*parsed));
  }
  return out;
}

std::optional<std::string> parse_text(const ConfigTree& value) {
  return value.kind == Kind::kScalar ? std::optional(value.scalar) : std::nullopt;
}

std::optional<fs::path> resolve_path(const std::string& text, const fs::path& base, std::string& got) {
  if (text.empty()) return std::nullopt;
  if (text.find('\0') != std::string::npos) {  // the system would use only the part before it
    got += " with the character U+0000, at which a path ends";
    return std::nullopt;
  }
  fs::path path = text;
  if (text.front() == '~') {
    const char* home = std::getenv("HOME");
    if (text.size() > 1 && text[1] != '/') {
      got += " (only ~/, your own home folder, is understood)";
      return std::nullopt;
    }
    if (home == nullptr || *home == '\0') {
      got += ", but the environment variable HOME is not set";
      return std::nullopt;
    }
    path = fs::path(home) / fs::path(text.substr(std::min<size_t>(2, text.size())));
  }
  path = fs::absolute(base / path).lexically_normal();
  // "dir/" means the folder: its name must be the last part, so that a folder beside it can be named
  return path.has_filename() || !path.has_relative_path() ? path : path.parent_path();
}

ConfigTree to_tree(int64_t value) { return ConfigTree::number(value); }
ConfigTree to_tree(double value) { return ConfigTree::number(value); }
ConfigTree to_tree(bool value) {
  ConfigTree tree = ConfigTree::text(value ? "true" : "false");
  tree.quoted = false;
  return tree;
}
ConfigTree to_tree(const std::string& value) { return ConfigTree::text(value); }
ConfigTree to_tree(const fs::path& value) { return ConfigTree::text(value.string()); }
template <typename T>
ConfigTree to_tree(const std::vector<T>& values) {
  std::vector<ConfigTree> items;
  for (const T& value : values) items.push_back(to_tree(value));
  return ConfigTree::list(std::move(items));
}

}  // namespace

void ConfigProblems::add(int64_t line, std::string_view path, std::string_view what) {
  messages_.push_back(cat(source_, line > 0 ? cat(":", line) : "", ": ", path, path.empty() ? "" : ": ", what));
}

void ConfigProblems::throw_if_any() const {
  if (!messages_.empty()) throw ConfigError(join(messages_, "\n"));
}

struct ConfigSection::State {
  struct Record {
    std::string key;
    ConfigTree value;
    std::shared_ptr<State> section;  ///< null: `value` is used
  };

  const ConfigTree* tree = nullptr;  ///< null if the section is absent or not a map
  bool is_broken = false;            ///< not a map: this is already a problem, so nothing in it is reported as missing
  bool is_finished = false;
  int64_t line = 0;
  std::string path;
  ConfigProblems* problems = nullptr;
  std::vector<std::string> known_keys;
  std::vector<Record> records;

  std::string path_of(std::string_view key) const { return path.empty() ? std::string(key) : cat(path, ".", key); }

  /// Returns null if the key is absent. An explicit null counts as absent: "limit: null" and "limit:" ask for the
  /// default.
  const ConfigTree* value(std::string_view key) {
    if (std::find(known_keys.begin(), known_keys.end(), key) == known_keys.end()) known_keys.emplace_back(key);
    const ConfigTree* found = tree == nullptr ? nullptr : tree->find(key);
    return found == nullptr || found->kind == Kind::kNull ? nullptr : found;
  }

  void add_problem(std::string_view key, std::string_view what) {
    const ConfigTree* at = tree == nullptr ? nullptr : tree->find(key);
    problems->add(at == nullptr ? line : at->line, path_of(key), what);
  }

  Record& record(std::string_view key) {
    const auto found =
        std::find_if(records.begin(), records.end(), [&](const Record& each) { return each.key == key; });
    return found != records.end() ? *found : records.emplace_back(Record{std::string(key), {}, nullptr});
  }

  /// `parse(value, got)` returns nothing if the value is not `expected`. It can make `got` more precise.
  template <typename T, typename Parse>
  T read(std::string_view key, const std::optional<T>& fallback, const std::string& expected, const Parse& parse) {
    std::optional<T> result = fallback;
    if (const ConfigTree* given = value(key)) {
      std::string got = shown(*given);
      if (std::optional<T> parsed = parse(*given, got))
        result = std::move(parsed);
      else
        add_problem(key, cat("expected ", expected, ", got ", got));
    } else if (!fallback && !is_broken) {
      add_problem(key, cat("is missing: expected ", expected));
    }
    if (!result) return T{};
    record(key) = {std::string(key), to_tree(*result), nullptr};
    return *result;
  }

  std::vector<int64_t> read_integers(std::string_view key, const std::optional<std::vector<int64_t>>& fallback,
                                     const std::string& expected, ConfigRange<int64_t> range) {
    const auto parse_item = [&](const ConfigTree& item) { return parse_number(item, range); };
    return read<std::vector<int64_t>>(key, fallback, expected, [&](const ConfigTree& value, std::string& got) {
      return parse_list<int64_t>(value, parse_item, got);
    });
  }
};

ConfigSection::ConfigSection(const ConfigTree& tree, std::string path, ConfigProblems& problems)
    : state_(std::make_shared<State>()) {
  state_->line = tree.line;
  state_->path = std::move(path);
  state_->problems = &problems;
  if (tree.kind == Kind::kMap) state_->tree = &tree;
  if (tree.kind != Kind::kMap && tree.kind != Kind::kNull) {
    state_->is_broken = true;
    problems.add(tree.line, state_->path, cat("expected a map (key: value), got ", shown(tree)));
  }
}

bool ConfigSection::has(std::string_view key) const { return state_->value(key) != nullptr; }

int64_t ConfigSection::integer(std::string_view key, ConfigRange<int64_t> range, std::optional<int64_t> fallback) {
  return state_->read<int64_t>(key, fallback, "an integer" + range_text(range),
                               [&](const ConfigTree& value, std::string&) { return parse_number(value, range); });
}

double ConfigSection::number(std::string_view key, ConfigRange<double> range, std::optional<double> fallback) {
  return state_->read<double>(key, fallback, "a number" + range_text(range),
                              [&](const ConfigTree& value, std::string&) { return parse_number(value, range); });
}

bool ConfigSection::is_auto(std::string_view key) {
  const ConfigTree* given = state_->value(key);
  const bool is_word = given != nullptr && given->kind == Kind::kScalar && given->scalar == kAuto;
  if (given != nullptr && !is_word) return false;
  record(key, to_tree(std::string(kAuto)));
  return true;
}

bool ConfigSection::is_map(std::string_view key) {
  const ConfigTree* given = state_->value(key);
  return given != nullptr && given->kind == Kind::kMap;
}

std::optional<int64_t> ConfigSection::integer_or_auto(std::string_view key, ConfigRange<int64_t> range) {
  if (is_auto(key)) return std::nullopt;
  return state_->read<int64_t>(key, std::nullopt, cat(kAuto, " or an integer", range_text(range)),
                               [&](const ConfigTree& value, std::string&) { return parse_number(value, range); });
}

std::optional<double> ConfigSection::number_or_auto(std::string_view key, ConfigRange<double> range) {
  if (is_auto(key)) return std::nullopt;
  return state_->read<double>(key, std::nullopt, cat(kAuto, " or a number", range_text(range)),
                              [&](const ConfigTree& value, std::string&) { return parse_number(value, range); });
}

std::optional<std::vector<int64_t>> ConfigSection::integers_or_auto(std::string_view key, ConfigRange<int64_t> range) {
  if (is_auto(key)) return std::nullopt;
  return state_->read_integers(key, std::nullopt, cat(kAuto, " or a list of integers", range_text(range)), range);
}

bool ConfigSection::boolean(std::string_view key, std::optional<bool> fallback) {
  return state_->read<bool>(key, fallback, "true or false",
                            [](const ConfigTree& value, std::string&) { return parse_boolean(value); });
}

std::string ConfigSection::text(std::string_view key, std::optional<std::string> fallback) {
  return state_->read<std::string>(key, fallback, "text",
                                   [](const ConfigTree& value, std::string&) { return parse_text(value); });
}

std::string ConfigSection::choice(std::string_view key, std::span<const std::string> choices,
                                  std::optional<std::string> fallback) {
  const auto parse = [&](const ConfigTree& value, std::string& got) -> std::optional<std::string> {
    if (value.kind != Kind::kScalar) return std::nullopt;
    if (std::find(choices.begin(), choices.end(), value.scalar) != choices.end()) return value.scalar;
    const std::string near = nearest(value.scalar, choices);
    if (!near.empty()) got += cat("; did you mean ", near, "?");
    return std::nullopt;
  };
  return state_->read<std::string>(key, fallback, cat("one of ", join(choices)), parse);
}

fs::path ConfigSection::path(std::string_view key, const fs::path& base, std::optional<fs::path> fallback) {
  std::string ignored;
  if (fallback) fallback = resolve_path(fallback->string(), base, ignored);
  return state_->read<fs::path>(key, fallback, "a path", [&](const ConfigTree& value, std::string& got) {
    if (value.kind != Kind::kScalar) return std::optional<fs::path>();
    return resolve_path(value.scalar, value.folder.empty() ? base : value.folder, got);
  });
}

std::vector<int64_t> ConfigSection::integers(std::string_view key, ConfigRange<int64_t> range,
                                             std::optional<std::vector<int64_t>> fallback) {
  return state_->read_integers(key, fallback, "a list of integers" + range_text(range), range);
}

std::vector<std::string> ConfigSection::texts(std::string_view key, std::optional<std::vector<std::string>> fallback) {
  return state_->read<std::vector<std::string>>(
      key, fallback, "a list of texts",
      [](const ConfigTree& value, std::string& got) { return parse_list<std::string>(value, parse_text, got); });
}

std::vector<std::pair<std::string, double>> ConfigSection::number_map(std::string_view key) {
  ConfigSection entries = section(key);
  std::vector<std::pair<std::string, double>> out;
  if (const ConfigTree* tree = entries.state_->tree)
    for (const auto& [name, value] : tree->entries) out.emplace_back(name, entries.number(name, {}));
  return out;
}

ConfigSection ConfigSection::section(std::string_view key) {
  static const ConfigTree kAbsent;
  const ConfigTree* value = state_->value(key);
  State::Record& record = state_->record(key);
  if (record.section == nullptr) {
    record.section = ConfigSection(value == nullptr ? kAbsent : *value, state_->path_of(key), *state_->problems).state_;
    if (value == nullptr) record.section->line = state_->line;
    // nothing is missing inside a value that is not a map
    record.section->is_broken |= state_->is_broken;
  }
  ConfigSection view = *this;
  view.state_ = record.section;
  return view;
}

const ConfigTree* ConfigSection::raw(std::string_view key) {
  const ConfigTree* value = state_->value(key);
  if (value != nullptr) state_->record(key) = {std::string(key), *value, nullptr};
  return value;
}

void ConfigSection::record(std::string_view key, ConfigTree value) {
  state_->value(key);
  state_->record(key) = {std::string(key), std::move(value), nullptr};
}

void ConfigSection::problem(std::string_view key, std::string_view what) { state_->add_problem(key, what); }

void ConfigSection::abandon(std::string_view key) {
  if (std::exchange(state_->is_finished, true) || state_->tree == nullptr || has(key)) return;
  const std::vector<std::string> wanted{std::string(key)};
  for (const auto& [other, value] : state_->tree->entries)
    if (!nearest(other, wanted).empty()) problem(other, cat("unknown key; did you mean ", key, "?"));
}

void ConfigSection::finish() {
  if (std::exchange(state_->is_finished, true)) return;
  if (state_->tree != nullptr) {
    const std::vector<std::string>& known = state_->known_keys;
    for (const auto& [key, value] : state_->tree->entries) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      const std::string near = nearest(key, known);
      const std::string end = near.empty() ? "." : cat("; did you mean ", near, "?");
      problem(key,
              cat("unknown key", end, known.empty() ? " This section takes none" : cat(" Known here: ", join(known))));
    }
  }
  for (const State::Record& record : state_->records) {
    if (record.section == nullptr) continue;
    section(record.key).finish();
  }
}

ConfigTree ConfigSection::resolved() const {
  ConfigTree out = ConfigTree::map();
  for (const State::Record& record : state_->records) {
    if (record.section == nullptr) {
      out.set(record.key, record.value);
      continue;
    }
    ConfigSection view = *this;
    view.state_ = record.section;
    out.set(record.key, view.resolved());
  }
  return out;
}

}  // namespace lancet
