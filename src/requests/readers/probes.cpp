#include "probes.h"

#include "lancet/core/strings.h"

namespace lancet {
namespace {

Field answers_of(RecordReader& reader, const Field& probe) {
  Field answers = probe.at("answers");
  Field truth = probe.at("ground_truth");
  if (answers && truth) reader.problem(truth.path, "is answers under another name: expected one of the two");
  return answers ? answers : truth;
}

/// EasyEdit's {prompt: [...], ground_truth: [...]}: answer i belongs to prompt i.
std::vector<Probe> read_pairs(RecordReader& reader, const Field& section) {
  const Field prompts = section.at("prompt"), answers = answers_of(reader, section);
  const bool is_list = prompts && prompts.value->is_array();
  if (!is_list || !answers || !answers.value->is_array()) return read_probe(reader, prompts, answers);
  if (prompts.value->size() == answers.value->size()) return read_paired(reader, prompts, answers);
  reader.problem(answers.path, cat("expected a list of ", prompts.value->size(), ", as many as prompts, got ",
                                   answers.value->size()));
  return {};
}

}  // namespace

std::vector<Probe> read_probe(RecordReader& reader, const Field& prompt, const Field& answers) {
  const std::vector<std::string> prompts = reader.answers(prompt), texts = reader.answers(answers);
  std::vector<Probe> probes;
  if (texts.empty()) return probes;
  for (const std::string& text : prompts) probes.push_back({text, texts});
  return probes;
}

std::vector<Probe> read_paired(RecordReader& reader, const Field& prompts, const Field& answers) {
  std::vector<Probe> probes;
  for (size_t i = 0; i < prompts.value->size(); ++i)
    for (Probe& probe : read_probe(reader, prompts.at(i), answers.at(i))) probes.push_back(std::move(probe));
  return probes;
}

std::vector<Probe> read_probes(RecordReader& reader, const Field& list) {
  std::vector<Probe> probes;
  if (!list) return probes;
  if (!list.value->is_array()) {
    reader.problem(list.path, cat("expected a list of {prompt, answers}, got ", shown(*list.value)));
    return probes;
  }
  for (size_t i = 0; i < list.value->size(); ++i) {
    const Field item = list.at(i);
    if (!item) continue;
    const Field prompt = item.at("prompt");
    if (!item.value->is_object())
      reader.problem(item.path, cat("expected {prompt, answers}, got ", shown(*item.value)));
    else if (!item.value->contains("prompt"))
      reader.problem(item.path, "prompt is missing: expected {prompt, answers}");
    else
      for (Probe& probe : read_probe(reader, prompt, answers_of(reader, item))) probes.push_back(std::move(probe));
  }
  return probes;
}

std::vector<ProbeSection> read_sections(RecordReader& reader, const Field& sections) {
  std::vector<ProbeSection> out;
  if (!sections) return out;
  if (!sections.value->is_object()) {
    reader.problem(sections.path, cat("expected an object of sections, got ", shown(*sections.value)));
    return out;
  }
  for (const auto& [name, value] : sections.value->items()) {
    const Field section = sections.at(name.c_str());
    if (section && section.value->is_object())
      add_section(out, name, read_pairs(reader, section));
    else
      add_section(out, name, read_probes(reader, section));
  }
  return out;
}

void add_section(std::vector<ProbeSection>& sections, const std::string& name, std::vector<Probe> probes) {
  if (!probes.empty()) sections.push_back({name, std::move(probes)});
}

bool is_new_question(const Field& portability) { return static_cast<bool>(portability.at("New Question")); }

void add_new_question(RecordReader& reader, const Field& portability, EditRequest& request) {
  add_section(request.portability, "one_hop",
              read_probe(reader, portability.at("New Question"), portability.at("New Answer")));
}

}  // namespace lancet
