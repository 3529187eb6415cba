#include "order_fields.h"

#include <algorithm>

#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

/// Fields that only concern a provider, and do not change the answer.
constexpr std::string_view kIdleFields[] = {"user",
                                            "metadata",
                                            "store",
                                            "service_tier",
                                            "safety_identifier",
                                            "prompt_cache_key",
                                            "prompt_cache_retention",
                                            "parallel_tool_calls"};

/// A field with a value that has no effect.
struct IdleValue {
  std::string_view key;
  std::string_view value;  ///< the value as JSON text
};
constexpr IdleValue kIdleValues[] = {{"presence_penalty", "0"},
                                     {"frequency_penalty", "0"},
                                     {"repetition_penalty", "1"},
                                     {"length_penalty", "1"},
                                     {"min_p", "0"},
                                     {"min_tokens", "0"},
                                     {"best_of", "1"},
                                     {"suffix", R"("")"},
                                     {"logit_bias", "{}"},
                                     {"tools", "[]"},
                                     {"functions", "[]"},
                                     {"tool_choice", R"("none")"},
                                     {"function_call", R"("none")"},
                                     {"response_format", R"({"type": "text"})"},
                                     {"modalities", R"(["text"])"},
                                     {"echo", "false"},
                                     {"ignore_eos", "false"},
                                     {"use_beam_search", "false"},
                                     {"return_token_ids", "false"},
                                     {"skip_special_tokens", "true"},
                                     {"add_generation_prompt", "true"}};

}  // namespace

void refuse_field(const std::string& key, const std::string& expected) {
  throw ApiProblem({.status = 400, .message = cat(key, ": expected ", expected), .parameter = key});
}

OrderFields::OrderFields(std::string_view body) {
  try {
    fields_ = parse_strict_json(body);
  } catch (const JsonProblem& problem) {
    throw ApiProblem({.status = 400, .message = problem.what()});
  }
  if (!fields_.is_object()) throw ApiProblem({.status = 400, .message = "expected a JSON object"});
}

const nlohmann::json* OrderFields::find(const std::string& key) {
  read_.insert(key);
  const auto found = fields_.find(key);
  return found == fields_.end() || found->is_null() ? nullptr : &*found;
}

std::optional<int64_t> OrderFields::number(const std::string& key, int64_t least, int64_t most) {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return std::nullopt;
  const bool is_small = value->is_number_unsigned()  // a larger number than 2^63 would be read as negative
                            ? value->get<uint64_t>() <= static_cast<uint64_t>(std::max<int64_t>(most, 0))
                            : value->is_number_integer() && *value <= most;
  if (!is_small || *value < least) refuse_field(key, cat("a whole number from ", least, " to ", most));
  return value->get<int64_t>();
}

std::optional<double> OrderFields::fraction(const std::string& key, double least, double most) {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number() || *value < least || *value > most)
    refuse_field(key, cat("a number from ", least, " to ", most));
  return value->get<double>();
}

std::optional<bool> OrderFields::choice(const std::string& key) {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) refuse_field(key, "true or false");
  return value->get<bool>();
}

std::optional<std::string> OrderFields::text(const std::string& key) {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) refuse_field(key, "a text");
  return value->get<std::string>();
}

void OrderFields::refuse_others() const {
  for (const auto& [key, value] : fields_.items()) {
    if (read_.contains(key) || value.is_null()) continue;
    if (std::ranges::find(kIdleFields, std::string_view(key)) != std::end(kIdleFields)) continue;
    const auto is_idle = [&, &name = key, &given = value](const IdleValue& idle) {
      return idle.key == name && nlohmann::json::parse(idle.value) == given;
    };
    if (std::ranges::any_of(kIdleValues, is_idle)) continue;
    const std::string shown = printable(excerpt(key, 60));
    throw ApiProblem({.status = 400,
                      .message = cat(shown,
                                     ": lancet serve does not honour it, and it may change the answer: leave it "
                                     "out"),
                      .parameter = shown,
                      .code = "unsupported_parameter"});
  }
}

}  // namespace lancet
