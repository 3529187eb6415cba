#include "request_record.h"

#include <algorithm>
#include <initializer_list>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

using Json = nlohmann::json;

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos; }

bool has_place(std::string_view text) { return text.find("{}") != std::string_view::npos; }

/// A value as it appears in a message.
std::string shown(const Json& value) {
  if (value.is_null()) return "null";
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  return excerpt(value.dump(-1, ' ', false, Json::error_handler_t::replace), 60);
}

const std::vector<std::string>& flat_keys() {
  static const std::vector<std::string> kKeys{"id",
                                              "case_id",
                                              "prompt",
                                              "subject",
                                              "target",
                                              "target_new",
                                              "target_true",
                                              "ground_truth",
                                              "paraphrases",
                                              "neighborhood",
                                              "rephrase_prompt",
                                              "locality_prompt",
                                              "locality_ground_truth"};
  return kKeys;
}

/// Reads the fields of one record; every wrong one becomes a problem and reads as absent.
class RecordReader {
 public:
  RecordReader(const Json& record, const RecordPlace& place, std::vector<std::string>& problems)
      : record_(record), place_(place), problems_(problems), problems_before_(problems.size()) {}

  bool is_good() const { return problems_.size() == problems_before_; }

  /// "requests.json: record 3 (case_id 17)".
  std::string where() const {
    std::vector<std::string> details;
    if (!place_.details.empty()) details.push_back(place_.details);
    for (const char* key : {"id", "case_id"}) {
      const Json* id = find(record_, key);
      if (id == nullptr || !(id->is_string() || id->is_number_integer())) continue;
      details.push_back(cat(key, " ", id_text(*id)));
      break;
    }
    return cat(place_.source, ": record ", place_.index, details.empty() ? "" : " (" + join(details) + ")");
  }

  void problem(std::string_view field, std::string_view what) {
    problems_.push_back(cat(where(), ": ", field, ": ", what));
  }

  /// The record's own id, else its index: the same file gives the same ids whatever part of it is taken.
  std::string id() {
    for (const char* key : {"id", "case_id"}) {
      const Json* id = find(record_, key);
      if (id == nullptr) continue;
      const bool is_text = id->is_string() && !is_blank(id->get_ref<const std::string&>());
      if (is_text || id->is_number_integer()) return id_text(*id);
      problem(key, cat("expected an integer or text, got ", shown(*id)));
      return {};
    }
    return std::to_string(place_.index);
  }

  /// `path` names the field in messages; `value` may be null (absent).
  std::optional<std::string> text(const std::string& path, const Json* value) {
    if (value == nullptr) return std::nullopt;
    if (!value->is_string()) {
      problem(path, cat("expected text, got ", shown(*value)));
      return std::nullopt;
    }
    const auto& text = value->get_ref<const std::string&>();
    if (is_blank(text)) {
      problem(path, "is empty");
      return std::nullopt;
    }
    return text;
  }

  /// A string stands for a list of one.
  std::vector<std::string> texts(const std::string& path, const Json* value) {
    std::vector<std::string> out;
    if (value == nullptr) return out;
    if (!value->is_array()) {
      if (std::optional<std::string> one = text(path, value)) out.push_back(std::move(*one));
      return out;
    }
    for (size_t i = 0; i < value->size(); ++i)
      if (std::optional<std::string> one = text(cat(path, "[", i, "]"), &(*value)[i])) out.push_back(std::move(*one));
    return out;
  }

  /// A field and its name: the keys are names of the same field, of which a record has one.
  std::pair<std::string, const Json*> one_of(std::initializer_list<const char*> keys) {
    std::pair<std::string, const Json*> found{*keys.begin(), nullptr};
    for (const char* key : keys) {
      const Json* value = find(record_, key);
      if (value == nullptr) continue;
      if (found.second != nullptr)
        problem(key, cat("is ", found.first, " under another name: expected one of the two"));
      found = {key, value};
    }
    return found;
  }

  void missing(std::string_view field, std::string_view expected) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : record_.items()) keys.push_back(key);
    problem(field, cat("is missing: expected ", expected, "; the record has ",
                       keys.empty() ? "nothing" : excerpt(join(keys), 200)));
  }

  /// Null when absent; an explicit null is absent too.
  static const Json* find(const Json& object, const char* key) {
    if (!object.is_object()) return nullptr;
    const auto value = object.find(key);
    return value == object.end() || value->is_null() ? nullptr : &*value;
  }

  /// Subject and prompt together: a prompt is filled, or has a place for the subject.
  void fill(const std::optional<std::string>& subject, const std::optional<std::string>& prompt, EditRequest& request) {
    if (subject && has_place(*subject)) return problem("subject", "contains {}, which marks its place in a prompt");
    if (!prompt) return;
    request.subject = subject.value_or("");
    if (subject) {
      try {
        request.prompt = fill_prompt(*prompt, *subject, where());
      } catch (const ConfigError& error) {
        problems_.emplace_back(error.what());
      }
    } else if (has_place(*prompt)) {
      missing("subject", cat("text for the {} in prompt \"", *prompt, "\""));
    } else {
      request.prompt.text = *prompt;
    }
  }

  /// Paraphrases may have a place for the subject too. Prompts of other subjects cannot.
  void fill_others(EditRequest& request) {
    for (std::string& paraphrase : request.paraphrases) {
      if (!has_place(paraphrase)) continue;
      try {
        paraphrase = fill_prompt(paraphrase, request.subject, cat(where(), ": paraphrases")).text;
      } catch (const ConfigError& error) {
        problems_.emplace_back(error.what());
      }
    }
    for (const std::string& prompt : request.neighborhood)
      if (has_place(prompt))
        problem("neighborhood",
                cat("prompt \"", prompt, "\" contains {}: expected a prompt of another subject, written out"));
  }

  const Json& record() const { return record_; }

 private:
  static std::string id_text(const Json& id) { return id.is_string() ? id.get<std::string>() : id.dump(); }

  const Json& record_;
  const RecordPlace& place_;
  std::vector<std::string>& problems_;
  size_t problems_before_;
};

/// {prompt with {}, subject, target_new: {str}, target_true: {str}} under "requested_rewrite".
void parse_counterfact(RecordReader& reader, EditRequest& request) {
  const Json* rewrite = RecordReader::find(reader.record(), "requested_rewrite");
  if (rewrite == nullptr) return reader.missing("requested_rewrite", "an object, as in the first record");
  if (!rewrite->is_object())
    return reader.problem("requested_rewrite", cat("expected an object, got ", shown(*rewrite)));
  const auto field = [&](const char* key) {
    return reader.text(cat("requested_rewrite.", key), RecordReader::find(*rewrite, key));
  };
  const auto target = [&](const char* key) -> std::optional<std::string> {
    const Json* value = RecordReader::find(*rewrite, key);
    if (value == nullptr) return std::nullopt;
    if (const Json* text = RecordReader::find(*value, "str"))
      return reader.text(cat("requested_rewrite.", key, ".str"), text);
    reader.problem(cat("requested_rewrite.", key), cat("expected {\"str\": text}, got ", shown(*value)));
    return std::nullopt;
  };
  for (const char* key : {"prompt", "subject", "target_new"})
    if (RecordReader::find(*rewrite, key) == nullptr) reader.missing(cat("requested_rewrite.", key), "text");
  reader.fill(field("subject"), field("prompt"), request);
  request.target = target("target_new").value_or("");
  request.target_true = target("target_true");
  request.paraphrases = reader.texts("paraphrase_prompts", RecordReader::find(reader.record(), "paraphrase_prompts"));
  request.neighborhood =
      reader.texts("neighborhood_prompts", RecordReader::find(reader.record(), "neighborhood_prompts"));
}

/// Several answers may be true (["Aspidoceratidae", ...]): the first stands for them.
std::optional<std::string> first_answer(RecordReader& reader, std::pair<std::string, const Json*> field) {
  const std::vector<std::string> answers = reader.texts(field.first, field.second);
  return answers.empty() ? std::nullopt : std::optional(answers.front());
}

/// A locality prompt is a neighbour only when its answer is the request's true one: specificity is measured against
/// that. zsRE's
/// ("nq question: ...") has an answer of its own and is left out.
std::vector<std::string> neighborhood(RecordReader& reader, const EditRequest& request) {
  const auto [name, value] = reader.one_of({"neighborhood", "locality_prompt"});
  std::vector<std::string> prompts = reader.texts(name, value);
  if (name != "locality_prompt") return prompts;
  const Json* answer = RecordReader::find(reader.record(), "locality_ground_truth");
  if (answer != nullptr && first_answer(reader, {"locality_ground_truth", answer}) != request.target_true) return {};
  return prompts;
}

void parse_flat(RecordReader& reader, TargetUse targets, EditRequest& request) {
  const auto [target_name, target] = reader.one_of({"target", "target_new"});
  const Json* prompt = RecordReader::find(reader.record(), "prompt");
  if (prompt == nullptr) reader.missing("prompt", "text");
  if (target == nullptr && targets == TargetUse::kNeeded)
    reader.missing("target", "text (what the model shall answer)");
  reader.fill(reader.text("subject", RecordReader::find(reader.record(), "subject")), reader.text("prompt", prompt),
              request);
  request.target = reader.text(target_name, target).value_or("");
  request.target_true =
      first_answer(reader, targets == TargetUse::kNeeded ? reader.one_of({"target_true", "ground_truth"})
                                                         : reader.one_of({"target_true", "ground_truth", "attribute"}));
  const auto [paraphrases_name, paraphrases] = reader.one_of({"paraphrases", "rephrase_prompt"});
  request.paraphrases = reader.texts(paraphrases_name, paraphrases);
  request.neighborhood = neighborhood(reader, request);
}

void refuse_unknown_keys(RecordReader& reader) {
  const std::vector<std::string>& known = flat_keys();
  for (const auto& [key, value] : reader.record().items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string near = nearest(key, known);
    reader.problem(
        key, cat("unknown key", near.empty() ? ". Known here: " + join(known) : cat("; did you mean ", near, "?")));
  }
}

}  // namespace

RecordShape shape_of(const Json& record) {
  return record.is_object() && record.contains("requested_rewrite") ? RecordShape::kCounterFact : RecordShape::kFlat;
}

std::optional<EditRequest> parse_record(const Json& record, const RecordPlace& place, RecordOptions options,
                                        std::vector<std::string>& problems) {
  RecordReader reader(record, place, problems);
  if (!record.is_object()) {
    problems.push_back(cat(reader.where(), ": expected an object, got ", shown(record)));
    return std::nullopt;
  }
  EditRequest request;
  request.id = reader.id();
  if (options.unknown_keys == UnknownKeys::kRefuse) refuse_unknown_keys(reader);
  if (options.shape == RecordShape::kCounterFact)
    parse_counterfact(reader, request);
  else
    parse_flat(reader, options.targets, request);
  // With a wrong subject or prompt, the paraphrases have problems of its making only.
  if (reader.is_good()) reader.fill_others(request);
  return reader.is_good() ? std::optional(std::move(request)) : std::nullopt;
}

}  // namespace lancet
