// A request as a line of requests.jsonl, in the flat format.
#include <nlohmann/json.hpp>

#include "lancet/requests/request.h"

namespace lancet {
namespace {

using Json = nlohmann::ordered_json;

Json probes_json(const std::vector<Probe>& probes) {
  Json list = Json::array();
  for (const Probe& probe : probes) list.push_back({{"prompt", probe.prompt}, {"answers", probe.answers}});
  return list;
}

void put(Json& record, const char* key, const std::string& text) {
  if (!text.empty()) record[key] = text;
}

void put(Json& record, const char* key, const std::vector<std::string>& texts) {
  if (!texts.empty()) record[key] = texts;
}

void put(Json& record, const char* key, const std::vector<ProbeSection>& sections) {
  for (const ProbeSection& section : sections) record[key][section.name] = probes_json(section.probes);
}

/// Returns the prompt with the subject's place marked: it may contain the subject a second time.
std::string marked_prompt(const EditRequest& request) {
  std::string prompt = request.prompt.text;
  const ByteSpan subject = request.prompt.subject;
  if (!request.subject.empty())
    prompt.replace(static_cast<size_t>(subject.begin), static_cast<size_t>(subject.end - subject.begin), "{}");
  return prompt;
}

}  // namespace

std::string to_json_line(const EditRequest& request) {
  Json record{{"id", request.id}};
  put(record, "subject", request.subject);
  record["prompt"] = marked_prompt(request);
  record["target"] = request.target;
  if (request.target_true) record["target_true"] = *request.target_true;
  put(record, "target_id", request.target_id);
  put(record, "target_aliases", request.target_aliases);
  put(record, "relation", request.relation);
  put(record, "paraphrases", request.paraphrases);
  put(record, "neighborhood", request.neighborhood);
  put(record, "locality", request.locality);
  put(record, "portability", request.portability);
  if (!request.multihop.empty()) record["multihop"] = probes_json(request.multihop);
  put(record, "generation_prompts", request.generation_prompts);
  return record.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace lancet
