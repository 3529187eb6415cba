// Data sets whose record is a question or a prompt, an answer, and an unrelated question with its answer.
#include "formats.h"
#include "lancet/core/strings.h"
#include "record_reader.h"

namespace lancet {
namespace {

/// Reads the record's prompt, answer and, if it has one, subject.
EditRequest read_question(RecordReader& reader, const char* prompt, const char* answer) {
  EditRequest request;
  request.id = reader.id();
  const std::optional<std::string> subject = reader.text(reader.field("subject"));
  reader.fill(subject, reader.required(reader.field(prompt)), request);
  request.target = reader.required(reader.field(answer), "text (what the model shall answer)").value_or("");
  return request;
}

void add_unrelated(RecordReader& reader, EditRequest& request) {
  add_section(request.locality, "loc", read_probe(reader, reader.field("loc"), reader.field("loc_ans")));
}

}  // namespace

std::vector<EditRequest> parse_fever(RecordReader& reader) {
  EditRequest request = read_question(reader, "prompt", "alt");
  request.paraphrases = reader.texts(reader.field("equiv_prompt"));
  add_section(request.locality, "unrel", read_probe(reader, reader.field("unrel_prompt"), reader.field("unrel_ans")));
  return {std::move(request)};
}

/// KnowEdit's WikiBio: the beginning of a biography, and the sentence that should follow.
std::vector<EditRequest> parse_wikibio(RecordReader& reader) {
  EditRequest request;
  request.id = reader.id();
  const std::optional<std::string> subject = reader.required(reader.field("concept"));
  reader.fill(subject, reader.required(reader.field("text")), request);
  request.target = reader.required(reader.field("labels")).value_or("");
  request.locality = read_sections(reader, reader.field("locality"));
  request.portability = read_sections(reader, reader.field("portability"));
  return {std::move(request)};
}

std::vector<EditRequest> parse_qaedit(RecordReader& reader) {
  EditRequest request = read_question(reader, "prompt", "target");
  request.paraphrases = reader.texts(reader.field("rephrase"));
  std::vector<Probe> probes;
  for (const Field& item : reader.elements(reader.field("locality"), "{loc, loc_ans}")) {
    if (item && !item.value->is_object())
      reader.problem(item.path, cat("expected {loc, loc_ans}, got ", shown(*item.value)));
    for (Probe& probe : read_probe(reader, item.at("loc"), item.at("loc_ans"))) probes.push_back(std::move(probe));
  }
  add_section(request.locality, "loc", std::move(probes));
  return {std::move(request)};
}

std::vector<EditRequest> parse_wikibigedit(RecordReader& reader) {
  EditRequest request = read_question(reader, "update", "ans");
  request.paraphrases = reader.answers(reader.field("rephrase"));
  add_unrelated(reader, request);
  add_section(request.portability, "personas", read_probe(reader, reader.field("personas"), reader.field("ans")));
  request.multihop = read_probe(reader, reader.field("mhop"), reader.field("mhop_ans"));
  return {std::move(request)};
}

std::vector<EditRequest> parse_ultraeditbench(RecordReader& reader) {
  EditRequest request = read_question(reader, "prompt", "ans");
  request.paraphrases = reader.texts(reader.field("rephrase_prompt"));
  add_unrelated(reader, request);
  return {std::move(request)};
}

/// ROME's known_1000: facts that a model is known to know. The target is the true answer.
std::vector<EditRequest> parse_known_fact(RecordReader& reader) {
  EditRequest request = read_question(reader, "prompt", "attribute");
  request.relation = reader.text(reader.field("relation_id")).value_or("");
  return {std::move(request)};
}

}  // namespace lancet
