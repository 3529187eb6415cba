#include "lancet/requests/request.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "lancet/core/strings.h"
#include "lancet/requests/same_fact.h"

namespace lancet {

// Writes a request as a line of requests.jsonl, in the flat format.

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

/// Returns the prompt with the subject's place marked, because it may contain the subject a second time.
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
  put(record, "rewordings", request.rewordings);
  put(record, "paraphrases", request.paraphrases);
  put(record, "neighborhood", request.neighborhood);
  put(record, "locality", request.locality);
  put(record, "portability", request.portability);
  if (!request.multihop.empty()) record["multihop"] = probes_json(request.multihop);
  put(record, "generation_prompts", request.generation_prompts);
  return record.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// White space in a request's texts that is probably not intended. It gives a warning and not an error: public data sets
// have it, and published figures depend on it.

namespace {

constexpr size_t kShown = 3;

bool is_white(char c) { return kAsciiWhiteSpace.find(c) != std::string_view::npos; }

bool ends_white(std::string_view text) { return !text.empty() && is_white(text.back()); }

/// Whether the text begins with white space. A single space does not count: it would be inserted anyway.
bool begins_white(std::string_view text) {
  if (text.starts_with(' ')) text.remove_prefix(1);
  return !text.empty() && is_white(text.front());
}

/// Returns the first such text of the request: `prompt "Rome is in "`.
std::string stray_text(const EditRequest& request) {
  const auto shown = [](const char* name, std::string_view text) {
    constexpr size_t kLongest = 60;  // the end of the text is shown
    size_t begin = text.size() > kLongest ? text.size() - kLongest : 0;
    while (begin > 0 && begin < text.size() && !begins_character(text[begin])) ++begin;
    return cat(name, " \"", begin > 0 ? "..." : "", text.substr(begin), "\"");
  };
  if (ends_white(request.prompt.text)) return shown("prompt", request.prompt.text);
  for (const std::string& text : request.rewordings)
    if (ends_white(text)) return shown("rewording", text);
  if (ends_white(request.target) || begins_white(request.target)) return shown("target", request.target);
  if (const std::string truth = request.target_true.value_or(""); ends_white(truth) || begins_white(truth))
    return shown("target_true", truth);
  return "";
}

}  // namespace

std::string stray_white_space(std::span<const EditRequest> requests) {
  std::vector<std::string> examples;
  size_t count = 0;
  for (const EditRequest& request : requests) {
    const std::string stray = stray_text(request);
    if (stray.empty()) continue;
    if (++count <= kShown) examples.push_back(cat("request ", request.id, ": ", stray));
  }
  if (count == 0) return "";
  return cat(count, " of ", requests.size(),
             " have white space at the end of a prompt or around a target, which makes ",
             "other tokens (a space between the two is put there by itself): ", join(examples, "; "),
             count > kShown ? "; ..." : "");
}

namespace {

bool is_alias_of(const std::string& target, const EditRequest& other) {
  return std::ranges::any_of(other.target_aliases,
                             [&](const std::string& alias) { return evenly_spaced(alias) == target; });
}

template <typename T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

void append_new(std::vector<std::string>& to, const std::vector<std::string>& from) {
  const std::set<std::string> known(to.begin(), to.end());
  for (const std::string& text : from)
    if (!known.contains(text)) to.push_back(text);
}

void add_measured(EditRequest& to, const EditRequest& from) {
  append_new(to.paraphrases, from.paraphrases);
  append_new(to.neighborhood, from.neighborhood);
  append_new(to.target_aliases, from.target_aliases);
  append_new(to.generation_prompts, from.generation_prompts);
  append(to.locality, from.locality);
  append(to.portability, from.portability);
  if (to.multihop.empty()) to.multihop = from.multihop;
  if (!to.target_true) to.target_true = from.target_true;
}

/// Whether two requests are the same edit: they have the same prompt, and texts that compare with the old target mean
/// the same one.
bool can_join(const EditRequest& one, const EditRequest& other) {
  const bool has_one_old_target = !one.target_true || !other.target_true || one.target_true == other.target_true;
  return one.prompt.text == other.prompt.text && one.target == other.target && one.rewordings == other.rewordings &&
         has_one_old_target && (one.multihop.empty() || other.multihop.empty());
}

}  // namespace

std::string evenly_spaced(std::string_view text) {
  std::string out;
  for (size_t at = text.find_first_not_of(kAsciiWhiteSpace); at != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(kAsciiWhiteSpace, at), text.size());
    out += cat(out.empty() ? "" : " ", text.substr(at, end - at));
    at = text.find_first_not_of(kAsciiWhiteSpace, end);
  }
  return out;
}

std::string marked_prompt(const SubjectPrompt& prompt) {
  std::string text = prompt.text;
  const auto [begin, end] = prompt.subject;
  if (end > begin) text.replace(static_cast<size_t>(begin), static_cast<size_t>(end - begin), "{}");
  return evenly_spaced(text);
}

std::vector<std::string> fact_keys(const EditRequest& request) {
  const std::string subject = evenly_spaced(request.subject), relation = evenly_spaced(request.relation);
  std::vector<std::string> keys{cat("prompt\n", subject, "\n", marked_prompt(request.prompt))};
  if (!subject.empty() && !relation.empty()) keys.push_back(cat("relation\n", subject, "\n", relation));
  return keys;
}

bool has_same_target(const EditRequest& one, const EditRequest& other) {
  const std::string first = evenly_spaced(one.target), second = evenly_spaced(other.target);
  return first == second || is_alias_of(second, one) || is_alias_of(first, other) ||
         (!one.target_id.empty() && evenly_spaced(one.target_id) == evenly_spaced(other.target_id));
}

const EditRequest* LatestFacts::find(const EditRequest& request) const {
  for (const std::string& key : fact_keys(request))
    if (const auto found = latest_.find(key); found != latest_.end()) return found->second;
  return nullptr;
}

const EditRequest* LatestFacts::replace(const EditRequest& request) {
  const EditRequest* const found = find(request);
  for (const std::string& key : fact_keys(request)) latest_[key] = &request;
  return found;
}

RequestPairs find_contradictions(std::span<const EditRequest> requests) {
  LatestFacts latest;
  RequestPairs pairs;
  for (size_t i = 0; i < requests.size(); ++i)
    if (const EditRequest* earlier = latest.replace(requests[i]); earlier && !has_same_target(*earlier, requests[i]))
      pairs.emplace_back(static_cast<size_t>(earlier - requests.data()), i);
  return pairs;
}

RequestFile each_fact_once(RequestFile file) {
  LatestFacts latest;
  std::map<const EditRequest*, EditRequest*> kept_as;  // which remaining request a removed one was joined with
  for (EditRequest& request : file.requests) {
    const EditRequest* earlier = latest.replace(request);
    if (const auto found = kept_as.find(earlier); found != kept_as.end()) earlier = found->second;
    if (earlier == nullptr || !can_join(*earlier, request)) continue;
    EditRequest& kept = file.requests[static_cast<size_t>(earlier - file.requests.data())];
    add_measured(kept, request);
    kept_as[&request] = &kept;
    file.joined.push_back(cat(request.id, " (as ", kept.id, ")"));
  }
  std::vector<EditRequest> left;
  for (EditRequest& request : file.requests)
    if (!kept_as.contains(&request)) left.push_back(std::move(request));
  file.requests = std::move(left);
  return file;
}

}  // namespace lancet
