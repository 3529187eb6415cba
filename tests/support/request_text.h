// A request as text with all its fields, for comparisons in tests.
#pragma once

#include <string>
#include <vector>

#include "lancet/requests/request.h"

namespace lancet::testing {

inline void put(std::string& out, const std::string& name, const std::string& value) {
  if (!value.empty()) out += name + ": " + value + "\n";
}

inline void put(std::string& out, const std::string& name, const std::vector<std::string>& values) {
  for (const std::string& value : values) put(out, name, value);
}

inline void put(std::string& out, const std::string& name, const std::vector<Probe>& probes) {
  for (const Probe& probe : probes) {
    std::string answers;
    for (const std::string& answer : probe.answers) answers += (answers.empty() ? "" : " / ") + answer;
    put(out, name, probe.prompt + " -> " + answers);
  }
}

inline void put(std::string& out, const std::string& name, const std::vector<ProbeSection>& sections) {
  for (const ProbeSection& section : sections) put(out, name + " " + section.name, section.probes);
}

/// All fields of a request, those that are absent left out; the subject's place in <>.
inline std::string text_of(const EditRequest& request) {
  std::string out, prompt = request.prompt.text;
  if (!request.subject.empty()) {
    prompt.insert(static_cast<size_t>(request.prompt.subject.end), ">");
    prompt.insert(static_cast<size_t>(request.prompt.subject.begin), "<");
  }
  put(out, "id", request.id);
  put(out, "subject", request.subject);
  put(out, "prompt", prompt);
  put(out, "target", request.target);
  if (request.target_true) out += "true: " + *request.target_true + "\n";
  put(out, "target_id", request.target_id);
  put(out, "alias", request.target_aliases);
  put(out, "relation", request.relation);
  put(out, "paraphrase", request.paraphrases);
  put(out, "neighbor", request.neighborhood);
  put(out, "locality", request.locality);
  put(out, "portability", request.portability);
  put(out, "multihop", request.multihop);
  put(out, "generation", request.generation_prompts);
  return out;
}

inline std::string text_of(const std::vector<EditRequest>& requests) {
  std::string out;
  for (const EditRequest& request : requests) out += text_of(request) + "\n";
  return out;
}

}  // namespace lancet::testing
