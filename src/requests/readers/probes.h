// Prompts with answers of their own, in the shapes that data sets give them. A probe without a prompt or without an
// answer is left out, as the data sets' own scripts do: they write "" and null where a record has none.
#pragma once

#include <string>
#include <vector>

#include "record_reader.h"

namespace lancet {

/// A list of {prompt, ground_truth | answers}; a list of prompts shares the answers.
std::vector<Probe> read_probes(RecordReader& reader, const Field& list);

/// {name: list of probes} (KnowEdit), or {name: {prompt, ground_truth}} with texts or two lists of equal length
/// (EasyEdit). Sections without a probe are left out.
std::vector<ProbeSection> read_sections(RecordReader& reader, const Field& sections);

/// One probe from two fields; nothing when there is no answer to ask for.
std::vector<Probe> read_probe(RecordReader& reader, const Field& prompt, const Field& answers);

/// Those of two lists of one length: answer i belongs to prompt i.
std::vector<Probe> read_paired(RecordReader& reader, const Field& prompts, const Field& answers);

/// Adds the section `name` unless it would be empty.
void add_section(std::vector<ProbeSection>& sections, const std::string& name, std::vector<Probe> probes);

/// {"New Question", "New Answer"}, which EasyEdit's files add to zsRE and CounterFact; its scripts call it one_hop.
bool is_new_question(const Field& portability);
void add_new_question(RecordReader& reader, const Field& portability, EditRequest& request);

}  // namespace lancet
