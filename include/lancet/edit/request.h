// One fact to edit, and the readers of request files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/core/config_tree.h"
#include "lancet/text/prompt.h"

namespace lancet {

/// A prompt besides the edited one.
struct Probe {
  std::string prompt;                ///< filled
  std::vector<std::string> answers;  ///< each of them is right; protocols that score one take the first
};

/// Probes of one kind, as a data set names it: "Relation_Specificity".
struct ProbeSection {
  std::string name;
  std::vector<Probe> probes;
};

struct EditRequest {
  std::string id;        ///< the record's case_id / id, else its index in the file; unique within a job
  std::string subject;   ///< empty when the record has none (methods that need one refuse it)
  SubjectPrompt prompt;  ///< filled; `subject` is an empty span when there is none
  std::string target;    ///< without a leading space unless the record has one; empty only where it is optional
  std::optional<std::string> target_true;       ///< what the model said before, where known
  std::vector<std::string> paraphrases;         ///< other prompts for the same fact, filled
  std::vector<std::string> neighborhood;        ///< prompts of other subjects that share `target_true`, filled
  std::vector<std::string> target_aliases;      ///< other names of `target`
  std::vector<ProbeSection> locality;           ///< what the edit shall leave alone, with answers of its own
  std::vector<ProbeSection> portability;        ///< what follows from the edit
  std::vector<Probe> multihop;                  ///< wordings of one question that needs the edit and other facts
  std::vector<std::string> generation_prompts;  ///< about the subject, for long texts, filled
  std::string relation;                         ///< the data set's id of the relation ("P103"); may be empty
  std::string target_id;                        ///< the data set's id of `target` ("Q1860"); may be empty
};

/// Which records of a source are taken, in file order.
struct RequestRange {
  int64_t skip = 0;
  std::optional<int64_t> limit;
};

/// Whether a record must say what is to be edited in.
enum class TargetUse {
  kNeeded,
  kOptional  ///< for measurements: a flat record may lack its target, and `attribute` is its true answer too
};

/// Reads .json (a list of records) or .jsonl. The shape is found by content, per file:
///   CounterFact   {case_id, requested_rewrite: {prompt with {}, subject, target_new: {str}, target_true: {str}},
///                  paraphrase_prompts, neighborhood_prompts, ...}
///   flat          {prompt, subject, target | target_new, id | case_id, target_true | ground_truth, paraphrases,
///   neighborhood,
///                  rephrase_prompt, locality_prompt}: lancet's own and EasyEdit's; a string stands for a list of one
/// Throws: ConfigError "file: record 3 (case_id 17): field: ..." for every bad record at once (first 20 shown), an
/// empty file, a range that leaves nothing, an id that stands twice.
std::vector<EditRequest> load_requests(const std::filesystem::path& path, RequestRange range,
                                       TargetUse targets = TargetUse::kNeeded);

/// An inline list of flat records in a job file. Throws: ConfigError "requests: record 0: ..." likewise.
std::vector<EditRequest> parse_requests(const ConfigTree& list);

/// One JSON object in lancet's flat shape on one line; load_requests reads it back to the same request.
std::string to_json_line(const EditRequest& request);

}  // namespace lancet
