// zsRE as MEND's authors prepared it: a question, its true answers, another answer, and a question of Natural Questions
// that has nothing to do with it. Its public forms are edited differently:
//   zsre            to the other answer, `alt`, as EasyEdit does; the unrelated question as it stands
//   zsre-true       to answers[0], which is true, as memit does; the unrelated question with "?" after it
//   zsre-alt        likewise to `alt`, where a record has no true answers
//   ultraedit-zsre  UltraEdit's files, which name the new answer `ans`; likewise with "?"
// The unrelated question keeps its "nq question: ", as in all of them.
#include "formats.h"
#include "record_reader.h"

namespace lancet {
namespace {

enum class UnrelatedQuestion { kAsItStands, kWithMark };

EditRequest read_zsre_question(RecordReader& reader, UnrelatedQuestion mark) {
  EditRequest request;
  request.id = reader.id();
  const std::optional<std::string> subject = reader.text(reader.field("subject"));
  reader.fill(subject, reader.required(reader.field("src")), request);
  request.paraphrases = reader.texts(reader.field("rephrase"));
  std::vector<Probe> probes = read_probe(reader, reader.field("loc"), reader.field("loc_ans"));
  if (mark == UnrelatedQuestion::kWithMark)
    for (Probe& probe : probes) probe.prompt += "?";
  add_section(request.locality, "nq", std::move(probes));
  add_new_question(reader, reader.field("portability"), request);
  return request;
}

std::vector<std::string> true_answers(RecordReader& reader) {
  const Field field = reader.field("answers");
  if (!field) reader.missing("answers", "a list of true answers");
  std::vector<std::string> answers = reader.texts(field);
  if (field && answers.empty() && reader.is_good()) reader.problem("answers", "is empty");
  return answers;
}

}  // namespace

std::vector<EditRequest> parse_zsre(RecordReader& reader) {
  EditRequest request = read_zsre_question(reader, UnrelatedQuestion::kAsItStands);
  request.target = reader.required(reader.field("alt"), "text (the answer to edit to)").value_or("");
  std::vector<std::string> answers = true_answers(reader);
  if (!answers.empty()) request.target_true = std::move(answers.front());
  return {std::move(request)};
}

std::vector<EditRequest> parse_zsre_alt(RecordReader& reader) {
  EditRequest request = read_zsre_question(reader, UnrelatedQuestion::kAsItStands);
  request.target = reader.required(reader.field("alt"), "text (the answer to edit to)").value_or("");
  static_cast<void>(reader.field("answers"));  // then a misspelling of this key in zsre's records is found
  return {std::move(request)};
}

std::vector<EditRequest> parse_zsre_true(RecordReader& reader) {
  EditRequest request = read_zsre_question(reader, UnrelatedQuestion::kWithMark);
  std::vector<std::string> answers = true_answers(reader);
  if (answers.empty()) return {};
  request.target = answers.front();
  request.target_aliases.assign(answers.begin() + 1, answers.end());
  return {std::move(request)};
}

std::vector<EditRequest> parse_ultraedit_zsre(RecordReader& reader) {
  EditRequest request = read_zsre_question(reader, UnrelatedQuestion::kWithMark);
  request.target = reader.required(reader.field("ans"), "text (the answer to edit to)").value_or("");
  return {std::move(request)};
}

}  // namespace lancet
