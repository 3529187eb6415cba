// Data sets with long texts as targets: UnKE (TrustedLLM/UnKE, data/final_data_v3.json), EditEverything
// (jianghoucheng/AnyEdit, data/editevery.json) and AKEW (bobxwu/AKEW, datasets/). They list the facts in the text.
#include "formats.h"
#include "lancet/core/strings.h"
#include "record_reader.h"

namespace lancet {
namespace {

constexpr const char* kLongTarget = "text (what the model shall answer)";

/// Turns two lists of equal length, questions and answers, into the section of facts.
void read_facts(RecordReader& reader, EditRequest& request) {
  const Field questions = reader.field("sub_question"), answers = reader.field("sub_answer");
  const auto size = [](const Field& list) { return list && list.value->is_array() ? list.value->size() : 0; };
  if ((questions && !questions.value->is_array()) || size(questions) != size(answers)) {
    reader.problem("sub_question",
                   cat("expected a list as long as sub_answer, got ", size(questions), " and ", size(answers)));
    return;
  }
  if (questions) add_section(request.portability, std::string(kFactsSection), read_paired(reader, questions, answers));
}

/// Reads {question, answer, para_question}, which UnKE and EditEverything share.
EditRequest read_question(RecordReader& reader) {
  EditRequest request;
  reader.fill(std::nullopt, reader.required(reader.field("question")), request);
  request.target = reader.required(reader.field("answer"), kLongTarget).value_or("");
  request.id = reader.id();
  request.paraphrases = reader.texts(reader.field("para_question"));
  return request;
}

/// Reads {subject, prompt with {}, target} of each triple into which the text was split.
std::vector<Probe> read_triples(RecordReader& reader, const Field& triples) {
  std::vector<Probe> facts;
  for (const Field& triple : reader.elements(triples, "{subject, prompt, target}")) {
    const std::optional<std::string> subject = reader.text(triple.at("subject")),
                                     prompt = reader.text(triple.at("prompt"));
    std::vector<std::string> answers = reader.answers(triple.at("target"));
    if (!subject || !prompt || answers.empty()) continue;
    std::string filled = *prompt;
    if (const size_t place = filled.find("{}"); place != std::string::npos) filled.replace(place, 2, *subject);
    facts.push_back({std::move(filled), std::move(answers)});
  }
  return facts;
}

/// In CounterFact's records the prompt is complete, but may lack the subject. In the others, subject and question mark
/// are missing.
void read_akew_prompt(RecordReader& reader, const Field& rewrite, EditRequest& request) {
  std::optional<std::string> subject = reader.required(rewrite.at("subject"));
  if (const std::optional<std::string> whole = reader.text(rewrite.at("prompt_full"))) {
    if (subject && whole->find(*subject) == std::string::npos) subject.reset();
    reader.fill(subject, whole, request);
  } else if (const std::optional<std::string> prompt = reader.required(rewrite.at("prompt"))) {
    reader.fill(subject, *prompt + "?", request);
  }
}

EditRequest read_akew(RecordReader& reader, const Field& rewrite) {
  EditRequest request;
  read_akew_prompt(reader, rewrite, request);
  request.target = reader.required(rewrite.at("fact_new_uns"), kLongTarget).value_or("");
  if (const std::optional<std::string> question = reader.text(rewrite.at("question")))
    request.paraphrases.push_back(*question);
  add_section(request.portability, std::string(kFactsSection),
              read_triples(reader, rewrite.at("unsfact_triplets_GPT")));
  return request;
}

}  // namespace

std::vector<EditRequest> parse_unke(RecordReader& reader) {
  EditRequest request = read_question(reader);
  read_facts(reader, request);
  return {std::move(request)};
}

std::vector<EditRequest> parse_editeverything(RecordReader& reader) { return {read_question(reader)}; }

std::vector<EditRequest> parse_akew(RecordReader& reader) {
  const Field rewrite = reader.field("requested_rewrite");
  if (!rewrite || !(rewrite.value->is_object() || (rewrite.value->is_array() && !rewrite.value->empty()))) {
    reader.problem("requested_rewrite", "expected an object with fact_new_uns, or a list of such");
    return {};
  }
  const std::string id = reader.id();
  std::vector<EditRequest> requests;
  const bool is_list = rewrite.value->is_array();
  for (size_t i = 0; i < (is_list ? rewrite.value->size() : 1); ++i) {
    requests.push_back(read_akew(reader, is_list ? rewrite.at(i) : rewrite));
    requests.back().id = is_list ? cat(id, ".", i) : id;
  }
  if (std::vector<std::string> others = reader.texts(reader.field("paraphrase_prompts")); !is_list)
    for (std::string& other : others) requests.front().paraphrases.push_back(std::move(other));
  return requests;
}

}  // namespace lancet
