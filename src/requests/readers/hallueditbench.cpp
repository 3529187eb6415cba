// HalluEditBench: tables, one for each topic and model, of facts that the model gets wrong. They have the right answer
// (`object`; in earlier tables `label`), what the model said (`output_<model>`), and questions of several kinds about
// the fact. locality_question has no answer, because the benchmark compares the model with itself.
#include <array>

#include "formats.h"
#include "lancet/core/strings.h"
#include "record_reader.h"

namespace lancet {
namespace {

struct Hops {
  const char* section;
  const char* question;
  const char* answer;
};

constexpr std::string_view kOutputOfModel = "output_";
constexpr Hops kHops[] = {{"2hop", "question_2hop", "answer_2hop"},
                          {"3hop", "question_3hop", "answer_3hop"},
                          {"4hop", "question_4hop", "answer_4hop"},
                          {"5hop", "question_5hop", "answer_5hop"},
                          {"6hop", "question_6hop", "answer_6hop"}};

/// Returns what the model said; nullopt if the table has no such column, or columns of several models.
std::optional<std::string> said_by_model(RecordReader& reader) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : reader.record().items())
    if (key.starts_with(kOutputOfModel)) keys.push_back(key);
  return keys.size() == 1 ? reader.text(reader.field(keys.front().c_str())) : std::nullopt;
}

struct KnownAnswer {
  const char* section;
  const char* question;
  std::string answer;
};

void add_questions(RecordReader& reader, const std::vector<KnownAnswer>& asked, EditRequest& request) {
  for (const auto& [section, question, answer] : asked) {
    std::vector<Probe> probes;
    for (std::string& prompt : reader.answers(reader.field(question)))
      if (!answer.empty()) probes.push_back({std::move(prompt), {answer}});
    add_section(request.portability, section, std::move(probes));
  }
}

/// The line with the letters is asked after the question, as in the benchmark.
void add_multiple_choice(RecordReader& reader, EditRequest& request) {
  std::vector<Probe> probes =
      read_probe(reader, reader.field("multiple_choice_with_letters"), reader.field("multiple_choice_labels"));
  for (Probe& probe : probes) probe.prompt = cat(request.prompt.text, " ", probe.prompt);
  add_section(request.portability, "multiple_choice", std::move(probes));
}

}  // namespace

std::vector<EditRequest> parse_hallueditbench(RecordReader& reader) {
  EditRequest request;
  request.id = reader.id();
  const std::optional<std::string> subject = reader.required(reader.field("subject"));
  reader.fill(subject, reader.required(reader.field("question")), request);
  request.target = reader.required(reader.one_of({"object", "label"}), "text (the right answer)").value_or("");
  request.target_true = said_by_model(reader);
  request.relation = reader.text(reader.field("relation")).value_or("");
  request.paraphrases = reader.answers(reader.field("paraphrased_question"));
  add_questions(reader,
                {{"yes", "yes_question", "Yes"},
                 {"no", "no_question", "No"},
                 {"reversed_relation", "reversed_relation_question", subject.value_or("")}},
                request);
  add_multiple_choice(reader, request);
  for (const Hops& hops : kHops)
    add_section(request.portability, hops.section,
                read_probe(reader, reader.field(hops.question), reader.field(hops.answer)));
  return {std::move(request)};
}

}  // namespace lancet
