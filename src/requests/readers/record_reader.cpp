#include "record_reader.h"

#include <algorithm>
#include <array>

#include "key_slips.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

constexpr std::array kIdKeys{"id", "case_id", "known_id"};

bool has_place(std::string_view text) { return text.find("{}") != std::string_view::npos; }

/// The number of characters of at least 100 thousand tokens, more than any model's positions. Longer texts are refused
/// before they are tokenised, because tokens take a hundred times their memory.
constexpr size_t kLongestText = 1'000'000;

std::string path_of(const std::string& object, const std::string& key) {
  return object.empty() ? key : cat(object, ".", key);
}

std::string id_text(const RecordJson& id) { return id.is_string() ? id.get<std::string>() : id.dump(); }

}  // namespace

void NotedKeys::note(const RecordJson& object, const std::string& path, const char* key) {
  const auto [place, is_new] = place_of_.try_emplace(&object, objects_.size());
  if (is_new) objects_.push_back({&object, path, {}});
  objects_[place->second].keys.emplace(key);
}

std::vector<NotedKeys::Slip> NotedKeys::slips(SlipsIn where) const {
  std::vector<Slip> found;
  for (const Object& object : objects_) {
    if (object.path.empty() && where == SlipsIn::kInnerObjects) continue;
    std::vector<std::string> absent;
    for (const std::string& key : object.keys)
      if (!object.json->contains(key)) absent.push_back(key);
    for (const auto& [key, value] : object.json->items())
      if (const std::string meant = object.keys.contains(key) ? "" : meant_key(key, absent); !meant.empty())
        found.push_back({path_of(object.path, key), cat("unknown key; did you mean ", meant, "?")});
  }
  return found;
}

Field Field::at(const char* key) const {
  Field inner{.path = path_of(path, key), .asked = asked};
  if (value == nullptr || !value->is_object()) return inner;
  if (asked != nullptr) asked->note(*value, path, key);
  const auto found = value->find(key);
  if (found != value->end() && !found->is_null()) inner.value = &*found;
  return inner;
}

Field Field::at(size_t index) const {
  const RecordJson& item = (*value)[index];
  return {cat(path, "[", index, "]"), item.is_null() ? nullptr : &item, asked};
}

std::string shown(const RecordJson& value) {
  if (value.is_null()) return "null";
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  return excerpt(value.dump(-1, ' ', false, RecordJson::error_handler_t::replace), 60);
}

std::string RecordPlace::text() const { return cat(source, source.empty() ? "" : ": ", "record ", index); }

RecordReader::RecordReader(const RecordJson& record, const RecordPlace& place, std::vector<std::string>& problems,
                           TargetNeed target)
    : record_(record), place_(place), problems_(problems), problems_before_(problems.size()), target_(target) {}

std::string RecordReader::where() const {
  std::vector<std::string> details;
  if (!place_.details.empty()) details.push_back(place_.details);
  for (const char* key : kIdKeys) {
    const Field id = field(key);
    if (!id || !(id.value->is_string() || id.value->is_number_integer())) continue;
    details.push_back(cat(key, " ", excerpt(id_text(*id.value), 60)));
    break;
  }
  return cat(place_.text(), details.empty() ? "" : " (" + join(details) + ")");
}

std::string RecordReader::id() { return id_in({"", &record_, &asked_}); }

std::string RecordReader::id_in(const Field& part) {
  for (const char* key : kIdKeys) {
    const Field id = part.at(key);
    if (!id) continue;
    const bool is_text = id.value->is_string() && !is_blank(id.value->get_ref<const std::string&>());
    if (is_text || id.value->is_number_integer()) return id_text(*id.value);
    problem(id.path, cat("expected an integer or text, got ", shown(*id.value)));
    return {};
  }
  return std::to_string(place_.index);
}

void RecordReader::problem(std::string_view field, std::string_view what) {
  problems_.push_back(cat(where(), ": ", field, ": ", what));
}

void RecordReader::missing(std::string_view field, std::string_view expected) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : record_.items()) keys.push_back(key);
  problem(field, cat("is missing: expected ", expected, "; the record has ",
                     keys.empty() ? "nothing" : excerpt(join(keys), 200)));
}

Field RecordReader::field(const char* key) const { return Field{"", &record_, &asked_}.at(key); }

void RecordReader::refuse_slips(SlipsIn where) {
  for (const NotedKeys::Slip& slip : asked_.slips(where)) problem(slip.path, slip.what);
}

Field RecordReader::one_of(std::initializer_list<const char*> keys) {
  Field found{.path = *keys.begin()};
  for (const char* key : keys) {
    Field other = field(key);
    if (!other) continue;
    if (found) problem(key, cat("is ", found.path, " under another name: expected one of the two"));
    found = std::move(other);
  }
  return found;
}

std::optional<std::string> RecordReader::text(const Field& field) {
  if (!field) return std::nullopt;
  if (!field.value->is_string()) {
    problem(field.path, cat("expected text, got ", shown(*field.value)));
    return std::nullopt;
  }
  const auto& text = field.value->get_ref<const std::string&>();
  if (is_blank(text)) {
    problem(field.path, "is empty");
    return std::nullopt;
  }
  if (!is_usable(field)) return std::nullopt;
  return text;
}

bool RecordReader::is_usable(const Field& field) {
  const auto& text = field.value->get_ref<const std::string&>();
  const size_t size = text.size();
  if (text.find('\0') != std::string::npos)
    problem(field.path, cat("has the character U+0000, which stands in no text: take it out"));
  else if (size > kLongestText)
    problem(field.path, cat("expected at most ", kLongestText, " bytes, got ", size, ": no model can read as much"));
  else
    return true;
  return false;
}

std::optional<std::string> RecordReader::required(const Field& field, std::string_view expected) {
  if (!field) missing(field.path, expected);
  return text(field);
}

std::vector<Field> RecordReader::elements(const Field& list, std::string_view of) {
  std::vector<Field> out;
  if (!list) return out;
  if (!list.value->is_array()) {
    problem(list.path, cat("expected a list of ", of, ", got ", shown(*list.value)));
    return out;
  }
  for (size_t i = 0; i < list.value->size(); ++i) out.push_back(list.at(i));
  return out;
}

std::vector<std::string> RecordReader::texts(const Field& field) {
  std::vector<std::string> out;
  if (!field) return out;
  if (!field.value->is_array()) {
    if (std::optional<std::string> one = text(field)) out.push_back(std::move(*one));
    return out;
  }
  for (size_t i = 0; i < field.value->size(); ++i) {
    const Field item = field.at(i);
    if (!item)
      problem(item.path, "expected text, got null");
    else if (std::optional<std::string> one = text(item))
      out.push_back(std::move(*one));
  }
  return out;
}

std::vector<std::string> RecordReader::answers(const Field& field) {
  std::vector<std::string> out;
  if (!field) return out;
  if (field.value->is_array()) {
    for (size_t i = 0; i < field.value->size(); ++i)
      for (std::string& answer : answers(field.at(i))) out.push_back(std::move(answer));
  } else if (!field.value->is_string()) {
    problem(field.path, cat("expected text, got ", shown(*field.value)));
  } else if (!is_blank(field.value->get_ref<const std::string&>()) && is_usable(field)) {
    out.push_back(field.value->get<std::string>());
  }
  return out;
}

void RecordReader::labelled(const Field& field, std::string& text_out, std::string* id) {
  if (!field) return;
  const Field str = field.at("str");
  if (!str) return problem(field.path, cat("expected {\"str\": text}, got ", shown(*field.value)));
  text_out = text(str).value_or("");
  if (id != nullptr) *id = text(field.at("id")).value_or("");
}

void RecordReader::fill(const std::optional<std::string>& subject, const std::optional<std::string>& prompt,
                        EditRequest& request) {
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

void RecordReader::reword(const Field& texts_field, EditRequest& request) {
  request.rewordings = texts(texts_field);
  if (request.rewordings.empty()) return;
  if (request.subject.empty()) return problem("rewordings", "expected a subject in the record, which they are about");
  for (const std::string& text : request.rewordings) {
    try {
      fill_prompt(text, request.subject, cat(where(), ": rewordings"));
    } catch (const ConfigError& error) {
      problems_.emplace_back(error.what());
    }
  }
}

void RecordReader::fill_others(EditRequest& request) {
  const auto fill_all = [&](std::vector<std::string>& prompts, const char* name) {
    for (std::string& prompt : prompts) {
      if (!has_place(prompt)) continue;
      try {
        prompt = fill_prompt(prompt, request.subject, cat(where(), ": ", name)).text;
      } catch (const ConfigError& error) {
        problems_.emplace_back(error.what());
      }
    }
  };
  fill_all(request.paraphrases, "paraphrases");
  fill_all(request.generation_prompts, "generation_prompts");
  for (const std::string& prompt : request.neighborhood)
    if (has_place(prompt))
      problem("neighborhood",
              cat("prompt \"", prompt, "\" contains {}: expected a prompt of another subject, written out"));
  const auto check = [&](const std::vector<Probe>& probes, const std::string& name) {
    for (const Probe& probe : probes)
      if (has_place(probe.prompt))
        problem(name, cat("prompt \"", probe.prompt, "\" contains {}: expected a prompt that is written out"));
  };
  for (const ProbeSection& section : request.locality) check(section.probes, "locality." + section.name);
  for (const ProbeSection& section : request.portability) check(section.probes, "portability." + section.name);
  check(request.multihop, "multihop");
}

namespace {

Field answers_of(RecordReader& reader, const Field& probe) {
  Field answers = probe.at("answers");
  Field truth = probe.at("ground_truth");
  if (answers && truth) reader.problem(truth.path, "is answers under another name: expected one of the two");
  return answers ? answers : truth;
}

/// Reads EasyEdit's {prompt: [...], ground_truth: [...]}: answer i belongs to prompt i.
std::vector<Probe> read_pairs(RecordReader& reader, const Field& section) {
  const Field prompts = section.at("prompt"), answers = answers_of(reader, section);
  const bool is_list = prompts && prompts.value->is_array();
  if (!is_list || !answers || !answers.value->is_array()) return read_probe(reader, prompts, answers);
  if (prompts.value->size() == answers.value->size()) return read_paired(reader, prompts, answers);
  reader.problem(answers.path, cat("expected a list of ", prompts.value->size(), ", as many as prompts, got ",
                                   answers.value->size()));
  return {};
}

}  // namespace

std::vector<Probe> read_probe(RecordReader& reader, const Field& prompt, const Field& answers) {
  const std::vector<std::string> prompts = reader.answers(prompt), texts = reader.answers(answers);
  std::vector<Probe> probes;
  if (texts.empty()) return probes;
  for (const std::string& text : prompts) probes.push_back({text, texts});
  return probes;
}

std::vector<Probe> read_paired(RecordReader& reader, const Field& prompts, const Field& answers) {
  std::vector<Probe> probes;
  for (size_t i = 0; i < prompts.value->size(); ++i)
    for (Probe& probe : read_probe(reader, prompts.at(i), answers.at(i))) probes.push_back(std::move(probe));
  return probes;
}

std::vector<Probe> read_probes(RecordReader& reader, const Field& list) {
  std::vector<Probe> probes;
  for (const Field& item : reader.elements(list, "{prompt, answers}")) {
    if (!item) continue;
    const Field prompt = item.at("prompt");
    if (!item.value->is_object())
      reader.problem(item.path, cat("expected {prompt, answers}, got ", shown(*item.value)));
    else if (!item.value->contains("prompt"))
      reader.problem(item.path, "prompt is missing: expected {prompt, answers}");
    else
      for (Probe& probe : read_probe(reader, prompt, answers_of(reader, item))) probes.push_back(std::move(probe));
  }
  return probes;
}

std::vector<ProbeSection> read_sections(RecordReader& reader, const Field& sections) {
  std::vector<ProbeSection> out;
  if (!sections) return out;
  if (!sections.value->is_object()) {
    reader.problem(sections.path, cat("expected an object of sections, got ", shown(*sections.value)));
    return out;
  }
  for (const auto& [name, value] : sections.value->items()) {
    const Field section = sections.at(name.c_str());
    if (section && section.value->is_object())
      add_section(out, name, read_pairs(reader, section));
    else
      add_section(out, name, read_probes(reader, section));
  }
  return out;
}

void add_section(std::vector<ProbeSection>& sections, const std::string& name, std::vector<Probe> probes) {
  if (!probes.empty()) sections.push_back({name, std::move(probes)});
}

bool is_new_question(const Field& portability) { return static_cast<bool>(portability.at("New Question")); }

void add_new_question(RecordReader& reader, const Field& portability, EditRequest& request) {
  add_section(request.portability, "one_hop",
              read_probe(reader, portability.at("New Question"), portability.at("New Answer")));
}

}  // namespace lancet
