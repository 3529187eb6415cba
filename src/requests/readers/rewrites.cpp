// The formats with a "requested_rewrite": CounterFact (and multi-CounterFact), in which it is one fact, and MQuAKE, in
// which it is the list of facts that the multi-hop questions need.
#include <algorithm>

#include "formats.h"
#include "lancet/core/strings.h"
#include "record_reader.h"

namespace lancet {
namespace {

/// Reads what both have: prompt with {}, subject, target_new: {str, id}, target_true: {str}, relation_id.
EditRequest read_rewrite(RecordReader& reader, const Field& rewrite) {
  EditRequest request;
  for (const char* key : {"prompt", "subject"})
    if (!rewrite.at(key)) reader.missing(rewrite.at(key).path, "text");
  const Field target_new = rewrite.at("target_new");
  if (!target_new && reader.needs_target()) reader.missing(target_new.path, "text");
  reader.fill(reader.text(rewrite.at("subject")), reader.text(rewrite.at("prompt")), request);
  if (target_new) reader.labelled(target_new, request.target, &request.target_id);
  if (const Field target = rewrite.at("target_true")) reader.labelled(target, request.target_true.emplace(), nullptr);
  request.relation = reader.text(rewrite.at("relation_id")).value_or("");
  return request;
}

/// Adds a paraphrase once, unless it is the edited prompt.
void add_paraphrase(EditRequest& request, const std::optional<std::string>& text) {
  if (!text || *text == request.prompt.text) return;
  std::vector<std::string>& all = request.paraphrases;
  if (std::find(all.begin(), all.end(), *text) == all.end()) all.push_back(*text);
}

/// MQuAKE's hops are the questions on the way to the answer. A hop about the request's subject whose answer is the
/// request's target is another wording of the edited fact, and has other names of the target.
void add_hop(RecordReader& reader, const Field& hop, EditRequest& request) {
  const std::optional<std::string> answer = reader.text(hop.at("answer"));
  const std::optional<std::string> question = reader.text(hop.at("question")), cloze = reader.text(hop.at("cloze"));
  const bool is_about_it = (question && question->find(request.subject) != std::string::npos) ||
                           (cloze && cloze->find(request.subject) != std::string::npos);
  if (answer != request.target || !is_about_it) return;
  add_paraphrase(request, question);
  add_paraphrase(request, cloze);
  for (std::string& alias : reader.answers(hop.at("answer_alias"))) {
    std::vector<std::string>& all = request.target_aliases;
    if (alias != request.target && std::find(all.begin(), all.end(), alias) == all.end()) all.push_back(alias);
  }
}

std::vector<Probe> read_questions(RecordReader& reader) {
  std::vector<std::string> answers{reader.required(reader.field("new_answer")).value_or("")};
  for (std::string& alias : reader.answers(reader.field("new_answer_alias")))
    if (std::find(answers.begin(), answers.end(), alias) == answers.end()) answers.push_back(std::move(alias));
  std::vector<Probe> probes;
  for (const std::string& question : reader.texts(reader.field("questions"))) probes.push_back({question, answers});
  return probes;
}

}  // namespace

std::vector<EditRequest> parse_counterfact(RecordReader& reader) {
  const Field rewrite = reader.field("requested_rewrite");
  if (!rewrite) {
    reader.missing("requested_rewrite", "an object of prompt, subject, target_new");
    return {};
  }
  if (!rewrite.value->is_object()) {
    reader.problem("requested_rewrite", cat("expected an object, got ", shown(*rewrite.value)));
    return {};
  }
  EditRequest request = read_rewrite(reader, rewrite);
  request.id = reader.id();
  reader.reword(reader.field("rewordings"), request);  // no published record has it
  request.paraphrases = reader.texts(reader.field("paraphrase_prompts"));
  request.neighborhood = reader.texts(reader.field("neighborhood_prompts"));
  request.generation_prompts = reader.texts(reader.field("generation_prompts"));
  add_new_question(reader, reader.field("portability"), request);
  return {std::move(request)};
}

std::vector<EditRequest> parse_mquake(RecordReader& reader) {
  const Field rewrites = reader.field("requested_rewrite");
  if (!rewrites || !rewrites.value->is_array() || rewrites.value->empty()) {
    reader.problem("requested_rewrite", "expected a list of at least one {prompt, subject, target_new}");
    return {};
  }
  const std::string id = reader.id();
  const Field hops = reader.field("new_single_hops");
  std::vector<EditRequest> requests;
  for (size_t i = 0; i < rewrites.value->size(); ++i) {
    const Field rewrite = rewrites.at(i);
    EditRequest request = read_rewrite(reader, rewrite);
    request.id = cat(id, ".", i);
    add_paraphrase(request, reader.text(rewrite.at("question")));
    if (hops && hops.value->is_array())
      for (size_t hop = 0; hop < hops.value->size(); ++hop) add_hop(reader, hops.at(hop), request);
    requests.push_back(std::move(request));
  }
  requests.front().multihop = read_questions(reader);
  return requests;
}

}  // namespace lancet
