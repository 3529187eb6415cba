#include "lancet/tokenizer_files/json_node.h"

#include <algorithm>

#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/tokenizer_files/model_file.h"

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

}  // namespace lancet
