#include "lancet/tokenizer_files/json_node.h"

#include <algorithm>
#include <cstdint>

#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/core/text_file.h"
#include "lancet/gguf/gguf_model.h"

namespace lancet {

nlohmann::json load_json(const std::filesystem::path& file) {
  return parse_json(read_model_file(file, "tokenizer"), file);
}

nlohmann::json parse_json(std::string_view text, const std::filesystem::path& file) {
  try {
    return parse_strict_json(text);
  } catch (const JsonProblem& problem) {
    throw TokenizerError(cat("tokenizer: ", file.string(), ": ", problem.what(), "; download the file again"));
  }
}

JsonNode::JsonNode(const nlohmann::json& value, const JsonNode& parent, const std::string& step)
    : value_(&value), file_(parent.file_), place_(parent.place_) {
  if (!place_.empty() && step.front() != '[') place_ += '.';
  place_ += step;
}

void JsonNode::fail(std::string_view what) const { throw TokenizerError(cat(where(), ": ", what)); }

std::string JsonNode::where() const { return cat("tokenizer: ", file_->string(), place_.empty() ? "" : ": ", place_); }

bool JsonNode::has(std::string_view key) const {
  if (!value_->is_object()) fail("expected an object");
  const auto found = value_->find(key);
  return found != value_->end() && !found->is_null();
}

JsonNode JsonNode::at(std::string_view key) const {
  if (!value_->is_object()) fail("expected an object");
  const auto found = value_->find(key);
  if (found == value_->end()) fail(cat("the key \"", key, "\" is missing"));
  return {*found, *this, std::string(key)};
}

void JsonNode::require_keys(std::initializer_list<std::string_view> known) const {
  if (!value_->is_object()) fail("expected an object");
  for (const auto& [key, value] : value_->items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    std::vector<std::string> names(known.begin(), known.end());
    fail(cat("the key \"", key, "\" is not known here, so what it does to the ids is not either (known: ", join(names),
             ")"));
  }
}

const std::string& JsonNode::text() const {
  if (!value_->is_string()) fail("expected a string");
  return value_->get_ref<const std::string&>();
}

bool JsonNode::boolean() const {
  if (!value_->is_boolean()) fail("expected true or false");
  return value_->get<bool>();
}

int64_t JsonNode::integer() const {
  if (!value_->is_number_integer() || value_->get<int64_t>() < 0) fail("expected a whole number that is not negative");
  return value_->get<int64_t>();
}

std::vector<JsonNode> JsonNode::items() const {
  if (!value_->is_array()) fail("expected a list");
  std::vector<JsonNode> nodes;
  for (size_t i = 0; i < value_->size(); ++i) nodes.push_back(JsonNode((*value_)[i], *this, cat("[", i, "]")));
  return nodes;
}

namespace {

/// Returns how many bytes at `at`, where there is no valid character, could begin one; at least 1.
size_t broken_bytes(std::string_view text, size_t at) {
  // the smallest and the largest character with these first bytes: if any is valid, one of these two is
  for (const size_t length : {size_t{3}, size_t{2}}) {
    if (at + length > text.size() || length >= utf8_bytes(text[at])) continue;
    for (const char filler : {'\x80', '\xBF'}) {
      std::string whole(text.substr(at, length));
      whole.resize(utf8_bytes(text[at]), filler);
      if (decode_utf8_at(whole, 0).bytes != 0) return length;
    }
  }
  return 1;
}

std::string replace_by(std::string_view bytes, size_t (*broken)(std::string_view text, size_t at)) {
  std::string out;
  for (size_t at = 0; at < bytes.size();) {
    const size_t length = decode_utf8_at(bytes, at).bytes;
    if (length == 0) {
      out += kReplacementCharacter;
      at += broken(bytes, at);
    } else {
      out += bytes.substr(at, length);
      at += length;
    }
  }
  return out;
}

}  // namespace

void require_utf8(std::string_view text) {
  if (const auto at = first_invalid_utf8(text)) {
    throw TokenizerError(
        cat("text to tokenise: byte ", *at, " of ", text.size(), ": not valid UTF-8; convert the text to UTF-8 first"));
  }
}

size_t utf8_bytes(char lead) {
  const auto byte = static_cast<uint8_t>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

bool is_white_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

std::string replace_invalid_utf8(std::string_view bytes) {
  return replace_by(bytes, [](std::string_view, size_t) { return size_t{1}; });
}

std::string replace_broken_utf8(std::string_view bytes) { return replace_by(bytes, broken_bytes); }

namespace {

/// If there is a GGUF file instead of the model folder, returns its text of that name; nullopt if it is a folder, or
/// has no such text.
std::optional<std::string> text_in_gguf(const std::filesystem::path& file) {
  const std::filesystem::path folder = file.parent_path();
  if (!is_gguf_file(folder)) return std::nullopt;
  try {
    return gguf_side_text(GgufFile::open(folder), file.filename().string());
  } catch (const CheckpointError& error) {
    throw TokenizerError(error.what());
  }
}

}  // namespace

bool has_model_file(const std::filesystem::path& file) {
  if (is_gguf_file(file.parent_path())) {
    const std::vector<std::string> names = gguf_side_names(GgufFile::open(file.parent_path()));
    return std::ranges::find(names, file.filename().string()) != names.end();
  }
  std::error_code ignored;
  return std::filesystem::symlink_status(file, ignored).type() != std::filesystem::file_type::not_found;
}

std::string read_model_file(const std::filesystem::path& file, std::string_view what) {
  constexpr uint64_t kLargest = 512'000'000;  // the largest vocabularies take a tenth of this
  if (std::optional<std::string> text = text_in_gguf(file)) return *std::move(text);
  try {
    return load_text(file, kLargest);
  } catch (const FileProblem& problem) {
    throw TokenizerError(cat(what, ": ", file.string(), ": cannot be read: ", problem.what()));
  }
}

}  // namespace lancet
