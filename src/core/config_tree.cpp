#include "lancet/core/config_tree.h"

#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "lancet/core/error.h"
#include "lancet/core/foreign_text.h"
#include "lancet/core/strings.h"
#include "lancet/core/text_file.h"

namespace lancet {
namespace {

/// The parser's tree takes many times the memory of the text. More requests than fit belong in a file of their own.
constexpr uint64_t kLargestConfig = 16'000'000;

/// The largest number of keys in one map. Each search goes through all keys. A job has less than a hundredth of this.
constexpr size_t kMostKeys = 10'000;

ConfigTree plain_scalar(std::string text) {
  ConfigTree tree;
  tree.kind = ConfigTree::Kind::kScalar;
  tree.scalar = std::move(text);
  return tree;
}

std::vector<std::string> split_path(std::string_view path, const std::string& where) {
  std::vector<std::string> keys;
  for (size_t begin = 0;;) {
    const size_t end = path.find('.', begin);
    keys.emplace_back(path.substr(begin, end - begin));
    if (keys.back().empty())
      throw ConfigError(cat(where, ": the path '", path, "' has an empty part: expected keys joined by dots, as in ",
                            "editor.values.lr=0.5"));
    if (end == std::string_view::npos) return keys;
    begin = end + 1;
  }
}

}  // namespace

void forget_lines(ConfigTree& tree) {
  tree.line = 0;
  for (ConfigTree& item : tree.items) forget_lines(item);
  for (auto& [key, value] : tree.entries) forget_lines(value);
}

void keep_folder(ConfigTree& tree, const std::filesystem::path& folder) {
  tree.folder = folder;
  for (ConfigTree& item : tree.items) keep_folder(item, folder);
  for (auto& [key, value] : tree.entries) keep_folder(value, folder);
}

ConfigTree ConfigTree::text(std::string value) {
  ConfigTree tree = plain_scalar(std::move(value));
  tree.quoted = true;
  return tree;
}

ConfigTree ConfigTree::number(int64_t value) { return plain_scalar(std::to_string(value)); }

ConfigTree ConfigTree::number(double value) {
  if (!std::isfinite(value)) throw std::logic_error("a ConfigTree holds finite numbers only");
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) throw std::logic_error("a double needs more than 32 characters");
  return plain_scalar(std::string(text.data(), end));
}

ConfigTree ConfigTree::list(std::vector<ConfigTree> items) {
  ConfigTree tree;
  tree.kind = Kind::kList;
  tree.items = std::move(items);
  return tree;
}

ConfigTree ConfigTree::map() {
  ConfigTree tree;
  tree.kind = Kind::kMap;
  return tree;
}

const ConfigTree* ConfigTree::find(std::string_view key) const {
  const auto entry = std::find_if(entries.begin(), entries.end(), [&](const auto& each) { return each.first == key; });
  return entry == entries.end() ? nullptr : &entry->second;
}

ConfigTree& ConfigTree::set(std::string key, ConfigTree value) {
  if (kind == Kind::kNull) kind = Kind::kMap;
  if (kind != Kind::kMap) throw std::logic_error(cat("ConfigTree::set('", key, "') on a scalar or a list"));
  const auto entry = std::find_if(entries.begin(), entries.end(), [&](const auto& each) { return each.first == key; });
  if (entry != entries.end()) {
    entry->second = std::move(value);
    return entry->second;
  }
  return entries.emplace_back(std::move(key), std::move(value)).second;
}

void ConfigTree::erase(std::string_view key) {
  std::erase_if(entries, [&](const auto& entry) { return entry.first == key; });
}

ConfigTree load_config(const std::filesystem::path& path) {
  std::string text;
  try {
    text = load_text(path, kLargestConfig);
  } catch (const FileProblem& problem) {
    throw ConfigError(cat(path.string(), ": cannot be read: ", problem.what()));
  }
  if (const std::optional<std::string> foreign = foreign_file(text))
    throw ConfigError(cat(path.string(), ": ", *foreign));
  return parse_config(text, path.string());
}

std::optional<PathObstacle> set_at(ConfigTree& tree, std::span<const std::string> keys, ConfigTree value) {
  ConfigTree* at = &tree;
  for (size_t depth = 0;; ++depth) {
    if (at->kind != ConfigTree::Kind::kNull && at->kind != ConfigTree::Kind::kMap)
      return PathObstacle{depth == 0 ? "the document" : join(keys.first(depth), "."),
                          at->kind == ConfigTree::Kind::kList ? "list" : "single value"};
    if (depth + 1 == keys.size()) break;
    const ConfigTree* next = at->find(keys[depth]);
    at = next != nullptr ? const_cast<ConfigTree*>(next) : &at->set(keys[depth], ConfigTree::map());
  }
  at->set(keys.back(), std::move(value));
  return std::nullopt;
}

void apply_override(ConfigTree& tree, std::string_view assignment) {
  const std::string where = cat("--set ", assignment);
  const size_t equals = assignment.find('=');
  if (equals == std::string_view::npos) throw ConfigError(cat(where, ": expected KEY.KEY=VALUE, found no '='"));
  const std::vector<std::string> keys = split_path(assignment.substr(0, equals), where);
  ConfigTree value = parse_config(assignment.substr(equals + 1), where);
  forget_lines(value);
  keep_folder(value, std::filesystem::current_path());

  if (const std::optional<PathObstacle> obstacle = set_at(tree, keys, std::move(value)))
    throw ConfigError(cat(where, ": ", obstacle->place, " is a ", obstacle->what,
                          ", expected a map; replace it as a whole: --set ", obstacle->place, "=..."));
}

// Turns YAML text into a ConfigTree from yaml-cpp's events, because its nodes do not keep whether a scalar was quoted,
// and on which lines keys are. yaml-cpp 0.7 accepts some truncated or damaged files and misreads them; these cases are
// refused here.

namespace {

/// A problem at a position of yaml-cpp (0-based). The caller, which knows the source's name, adds it.
struct MarkedProblem {
  YAML::Mark mark;
  std::string what;
};

class TreeBuilder final : public YAML::EventHandler {
 public:
  ConfigTree take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) throw MarkedProblem{mark, "expected one document, found the beginning of another"};
  }
  void OnDocumentEnd() override {}
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { refuse_anchor(mark); }
  void OnAnchor(const YAML::Mark& mark, const std::string&) override { refuse_anchor(mark); }

  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override {
    if (key_is_next()) throw MarkedProblem{mark, "a key is missing (a key that is the word null must be quoted)"};
    place(mark, {});
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t, const std::string& value) override {
    if (tag != "tag:yaml.org,2002:str") check_tag(mark, tag);
    check_utf8(mark, value);
    if (key_is_next()) {
      begin_entry(mark, value);
      return;
    }
    ConfigTree scalar = ConfigTree::text(value);
    scalar.quoted = tag != "?";
    place(mark, std::move(scalar));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    begin_collection(mark, tag, ConfigTree::list({}));
  }
  void OnSequenceEnd() override { open_.pop_back(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t, YAML::EmitterStyle::value) override {
    begin_collection(mark, tag, ConfigTree::map());
  }
  void OnMapEnd() override { open_.pop_back(); }

 private:
  /// A collection that is being read. Its parent does not grow until it is closed, so the pointer stays valid.
  struct Open {
    ConfigTree* tree;
    std::optional<ConfigTree*> value;  ///< kMap: where the value of the last key goes
  };

  [[noreturn]] static void refuse_anchor(const YAML::Mark& mark) {
    throw MarkedProblem{mark,
                        "anchors and aliases (&name, *name) are not supported: write the value out (text that begins "
                        "with & or * must be quoted)"};
  }

  static void check_tag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    throw MarkedProblem{
        mark, cat("the tag ", tag, " is not supported: leave it out (text that begins with ! must be quoted)")};
  }

  /// In yaml-cpp an escape such as "\N" can make single bytes, so the scalars are checked, not the document.
  static void check_utf8(const YAML::Mark& mark, const std::string& value) {
    try {
      static_cast<void>(nlohmann::json(value).dump());
    } catch (const nlohmann::json::type_error&) {
      throw MarkedProblem{mark, "text that is not valid UTF-8"};
    }
  }

  bool key_is_next() const {
    return !open_.empty() && open_.back().tree->kind == ConfigTree::Kind::kMap && !open_.back().value.has_value();
  }

  void begin_entry(const YAML::Mark& mark, const std::string& key) {
    ConfigTree& map = *open_.back().tree;
    if (const ConfigTree* first = map.find(key))
      throw MarkedProblem{mark, cat("the key '", key, "' stands twice in one map, first on line ", first->line)};
    if (map.entries.size() >= kMostKeys)
      throw MarkedProblem{mark, cat("a map of more than ", kMostKeys, " keys: is this the right file?")};
    ConfigTree& value = map.set(key, {});
    value.line = mark.line + 1;
    open_.back().value = &value;
  }

  /// Stores a value in its place. An entry of a map has the line of its key, because readers look there.
  ConfigTree& place(const YAML::Mark& mark, ConfigTree value) {
    value.line = mark.line + 1;
    if (open_.empty()) return root_ = std::move(value);
    Open& parent = open_.back();
    if (parent.tree->kind == ConfigTree::Kind::kList) return parent.tree->items.emplace_back(std::move(value));
    ConfigTree& slot = **parent.value;
    parent.value.reset();
    value.line = slot.line;
    return slot = std::move(value);
  }

  void begin_collection(const YAML::Mark& mark, const std::string& tag, ConfigTree empty) {
    check_tag(mark, tag);
    if (key_is_next()) throw MarkedProblem{mark, "a key that is a list or a map: expected text"};
    open_.push_back({&place(mark, std::move(empty)), std::nullopt});
  }

  ConfigTree root_;
  std::vector<Open> open_;
  int documents_ = 0;
};

std::optional<uint32_t> utf16_unit(std::string_view text, size_t at) {
  if (text.substr(at, 2) != "\\u" || at + 6 > text.size()) return std::nullopt;
  return static_cast<uint32_t>(std::stoul(std::string(text.substr(at + 2, 4)), nullptr, 16));
}

void append_utf8(std::string& out, uint32_t code_point) {
  out += static_cast<char>(0xf0 | (code_point >> 18));
  out += static_cast<char>(0x80 | ((code_point >> 12) & 0x3f));
  out += static_cast<char>(0x80 | ((code_point >> 6) & 0x3f));
  out += static_cast<char>(0x80 | (code_point & 0x3f));
}

/// Changes the two things that yaml-cpp does not read as JSON: "\ud83d\ude00" (two UTF-16 units for one character, as
/// every ASCII-only JSON writer makes them) becomes the character, and a tab between values becomes a space. `json`
/// must be valid. Lines stay the same.
std::string json_as_yaml(std::string_view json) {
  std::string out;
  bool in_string = false;
  for (size_t at = 0; at < json.size(); ++at) {
    const char c = json[at];
    if (c == '"') in_string = !in_string;
    if (!in_string) {
      out += c == '\t' ? ' ' : c;
      continue;
    }
    out += c;
    if (c != '\\') continue;
    const std::optional<uint32_t> high = utf16_unit(json, at);
    if (high && *high >= 0xd800 && *high < 0xdc00) {
      out.pop_back();
      append_utf8(out, 0x10000 + ((*high - 0xd800) << 10) + (*utf16_unit(json, at + 6) - 0xdc00));
      at += 11;
    } else {
      out += json[++at];
    }
  }
  return out;
}

bool is_json(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || (text[first] != '{' && text[first] != '[')) return false;
  return nlohmann::json::accept(text.begin(), text.end());
}

/// YAML does not allow control characters, and yaml-cpp takes 0x04 as the end of the file. Bytes from 0xf8 on do not
/// occur in UTF-8; 0xfe and 0xff at the beginning would make yaml-cpp read UTF-16.
void check_bytes(std::string_view text) {
  YAML::Mark mark;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_control = byte < 0x20 && c != '\t' && c != '\n' && c != '\r';
    if (is_control || byte >= 0xf8)
      throw MarkedProblem{mark, cat("the byte ", static_cast<int>(byte), ": expected UTF-8 text")};
    ++mark.column;
    if (c == '\n') {
      ++mark.line;
      mark.column = 0;
    }
  }
}

ConfigTree parse_document(std::string_view text) {
  check_bytes(text);
  std::string yaml = is_json(text) ? json_as_yaml(text) : std::string(text);
  // yaml-cpp does not accept a single CR as a line end
  if (yaml.find('\n') == std::string::npos) std::ranges::replace(yaml, '\r', '\n');
  // In yaml-cpp an unclosed quote takes the rest of the file without an error. The end marker turns it into an error.
  yaml += yaml.empty() || yaml.back() == '\n' ? "...\n" : "\n...\n";
  std::istringstream stream(yaml);
  YAML::Parser parser(stream);
  TreeBuilder builder;
  while (parser.HandleNextDocument(builder)) {
  }
  return builder.take();
}

/// Returns the first line up to `last` (0-based) that is indented with a tab, although YAML needs spaces; -1 if there
/// is none.
int tab_line(std::string_view text, int last) {
  int number = 0;
  for (size_t begin = 0; begin < text.size() && number <= last; ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    const std::string_view indent = line.substr(0, line.find_first_not_of(" \t"));
    if (indent.size() < line.size() && indent.find('\t') != std::string_view::npos) return number;
    begin = end + 1;
  }
  return -1;
}

}  // namespace

ConfigTree parse_config(std::string_view text, std::string_view source) {
  const auto fail = [&](const YAML::Mark& mark, const std::string& what) {
    return ConfigError(cat(source, ":", mark.line + 1, ":", mark.column + 1, ": ", what));
  };
  try {
    return parse_document(text);
  } catch (const MarkedProblem& problem) {
    throw fail(problem.mark, problem.what);
  } catch (const YAML::DeepRecursion& error) {
    throw fail(error.mark, "not valid YAML: nested too deeply");
  } catch (const YAML::Exception& error) {
    if (const int line = tab_line(text, error.mark.line + 1); line >= 0) {
      YAML::Mark mark;
      mark.line = line;
      throw fail(mark,
                 "a tab at the beginning of the line: YAML is indented by spaces alone; replace the tab by spaces");
    }
    const bool in_quotes = error.msg == YAML::ErrorMsg::DOC_IN_SCALAR;
    throw fail(error.mark, cat("not valid YAML: ", in_quotes ? "a quote that is not closed" : error.msg));
  }
}

}  // namespace lancet
