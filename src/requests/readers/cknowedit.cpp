// CKnowEdit: a prompt in Chinese, what a model said (`target_old`), what it should say (`target_new`), and lists of
// questions: {prompt, answer} each, or, as its README describes them, two lists of equal length.
#include "formats.h"
#include "lancet/core/strings.h"
#include "record_reader.h"

namespace lancet {
namespace {

struct QuestionKeys {
  const char* list;
  const char* prompts;
  const char* answers;
};

constexpr QuestionKeys kLocalityKeys{"locality", "locality_prompt", "locality_answer"},
    kPortabilityKeys{"portability", "portability_prompt", "portability_answer"};

/// Reads two lists of equal length. A text counts as a list of one.
std::vector<Probe> read_two_lists(RecordReader& reader, const Field& prompts, const Field& answers) {
  const bool are_lists = prompts && prompts.value->is_array() && answers && answers.value->is_array();
  if (!are_lists) return read_probe(reader, prompts, answers);
  if (prompts.value->size() == answers.value->size()) return read_paired(reader, prompts, answers);
  reader.problem(answers.path, cat("expected a list of ", prompts.value->size(), ", as many as ", prompts.path,
                                   ", got ", answers.value->size()));
  return {};
}

/// An element without a prompt is left out, as in the data set's own script.
std::vector<Probe> read_questions(RecordReader& reader, const QuestionKeys& keys) {
  std::vector<Probe> probes;
  const Field list = reader.field(keys.list);
  for (const Field& item : reader.elements(list, "{prompt, answer}")) {
    if (item && !item.value->is_object())
      reader.problem(item.path, cat("expected {prompt, answer}, got ", shown(*item.value)));
    for (Probe& probe : read_probe(reader, item.at("prompt"), item.at("answer"))) probes.push_back(std::move(probe));
  }
  const Field prompts = reader.field(keys.prompts), answers = reader.field(keys.answers);
  if (list && prompts) reader.problem(keys.prompts, cat("is ", keys.list, " in another form: expected one of the two"));
  for (Probe& probe : read_two_lists(reader, prompts, answers)) probes.push_back(std::move(probe));
  return probes;
}

}  // namespace

/// The records do not name the subject, so the whole prompt is the subject, as in EasyEdit's script.
std::vector<EditRequest> parse_cknowedit(RecordReader& reader) {
  EditRequest request;
  request.id = reader.id();
  const std::optional<std::string> prompt = reader.required(reader.field("prompt"));
  const Field subject = reader.field("subject");
  reader.fill(subject ? reader.text(subject) : prompt, prompt, request);
  request.target = reader.required(reader.field("target_new"), "text (what the model shall answer)").value_or("");
  std::vector<std::string> said = reader.answers(reader.field("target_old"));
  if (!said.empty()) request.target_true = std::move(said.front());
  request.paraphrases = reader.answers(reader.field("rephrase"));
  add_section(request.locality, "loc_hop", read_questions(reader, kLocalityKeys));
  add_section(request.portability, "por_hop", read_questions(reader, kPortabilityKeys));
  return {std::move(request)};
}

}  // namespace lancet
