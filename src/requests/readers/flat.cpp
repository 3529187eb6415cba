// {prompt, subject, target, ...}: your own records, the request dictionaries of memit and EasyEdit, and KnowEdit's
// ZsRE, wiki_recent and wiki_counterfact, which are those of EasyEdit with sections.
#include <algorithm>

#include "formats.h"
#include "lancet/core/strings.h"
#include "lancet/spec/requests_spec.h"
#include "record_reader.h"

namespace lancet {
namespace {

constexpr std::string_view kNaturalQuestions = "nq question: ";

const std::vector<std::string>& flat_keys() {
  static const std::vector<std::string> kKeys = [] {
    std::vector<std::string> keys;
    for (const RecordField& field : kRecordFields) keys.emplace_back(field.key);
    return keys;
  }();
  return kKeys;
}

void read_target(RecordReader& reader, EditRequest& request) {
  const Field target = reader.one_of({"target", "target_new"});
  if (target && target.value->is_object())
    reader.labelled(target, request.target, &request.target_id);
  else if (target || reader.needs_target())
    request.target = reader.required(target, "text (what the model shall answer)").value_or("");
  if (const std::optional<std::string> id = reader.text(reader.field("target_id"))) request.target_id = *id;
}

/// Several answers may be true (["Aspidoceratidae", ...]); the first is used.
void read_true(RecordReader& reader, EditRequest& request) {
  const Field field = reader.one_of({"target_true", "ground_truth"});
  if (field && field.value->is_object()) {
    reader.labelled(field, request.target_true.emplace(), nullptr);
    return;
  }
  std::vector<std::string> answers = reader.texts(field);
  if (!answers.empty()) request.target_true = std::move(answers.front());
}

/// A locality prompt only counts as neighborhood if its answer is the request's true one, because specificity is
/// measured against that. A prompt with another answer ("nq question: ...") becomes a section.
void read_neighborhood(RecordReader& reader, EditRequest& request) {
  const Field prompts = reader.one_of({"neighborhood", "locality_prompt"});
  const Field answer = reader.field("locality_ground_truth");
  const std::vector<std::string> texts = reader.texts(prompts), answers = reader.texts(answer);
  if (prompts.path == "neighborhood" || answers.empty() || answers.front() == request.target_true) {
    request.neighborhood = texts;
    return;
  }
  std::vector<Probe> probes;
  for (const std::string& text : texts) probes.push_back({text, answers});
  const bool is_nq = !texts.empty() && texts.front().starts_with(kNaturalQuestions);
  add_section(request.locality, is_nq ? "nq" : "neighborhood", std::move(probes));
}

void read_all_sections(RecordReader& reader, EditRequest& request) {
  for (ProbeSection& section : read_sections(reader, reader.field("locality")))
    request.locality.push_back(std::move(section));
  const Field portability = reader.field("portability");
  if (is_new_question(portability))
    add_new_question(reader, portability, request);
  else
    request.portability = read_sections(reader, portability);
}

}  // namespace

std::vector<EditRequest> parse_flat(RecordReader& reader) {
  EditRequest request;
  request.id = reader.id();
  const std::optional<std::string> subject = reader.text(reader.field("subject"));
  reader.fill(subject, reader.required(reader.field("prompt")), request);
  read_target(reader, request);
  read_true(reader, request);
  request.target_aliases = reader.texts(reader.field("target_aliases"));
  reader.reword(reader.field("rewordings"), request);
  request.paraphrases = reader.texts(reader.one_of({"paraphrases", "rephrase_prompt", "rephrase"}));
  read_neighborhood(reader, request);
  read_all_sections(reader, request);
  request.multihop = read_probes(reader, reader.field("multihop"));
  request.generation_prompts = reader.texts(reader.field("generation_prompts"));
  request.relation = reader.text(reader.one_of({"relation", "relation_id"})).value_or("");
  return {std::move(request)};
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

}  // namespace lancet
