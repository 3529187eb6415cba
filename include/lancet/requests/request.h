// A fact to edit, and the readers of request files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/core/config_tree.h"
#include "lancet/text/prompt.h"

namespace lancet {

/// A prompt that measures an edit, other than the edited prompt.
struct Probe {
  std::string prompt;                ///< filled
  std::vector<std::string> answers;  ///< all of them are right; protocols that score only one take the first
};

/// Probes of one kind, with the data set's name for it: "Relation_Specificity".
struct ProbeSection {
  std::string name;
  std::vector<Probe> probes;
};

/// The section of `portability` that asks for the content of a long target, as questions with short answers.
inline constexpr std::string_view kFactsSection = "facts";

struct EditRequest {
  std::string id;        ///< the record's case_id or id, else its index in the file; unique within a job
  std::string subject;   ///< empty if the record has none (methods that need a subject refuse it)
  SubjectPrompt prompt;  ///< filled; `subject` is an empty span if there is none
  std::string target;    ///< text without a leading space unless the record has one; empty only where it is optional
  std::optional<std::string> target_true;   ///< the model's answer before the edit, if known
  std::vector<std::string> rewordings;      ///< other wordings of the prompt, in which the fact is edited too: texts
                                            ///< that fill_prompt() takes
  std::vector<std::string> paraphrases;     ///< other prompts for the same fact, filled
  std::vector<std::string> neighborhood;    ///< prompts of other subjects that share `target_true`, filled
  std::vector<std::string> target_aliases;  ///< other names of `target`
  std::vector<ProbeSection> locality;       ///< prompts whose answers must not change, with these answers
  std::vector<ProbeSection> portability;    ///< prompts whose answers follow from the edit
  std::vector<Probe> multihop;              ///< several wordings of one question that needs the edit and other facts
  std::vector<std::string> generation_prompts;  ///< prompts about the subject for long texts, filled
  std::string relation;                         ///< the data set's id of the relation ("P103"); may be empty
  std::string target_id;                        ///< the data set's id of `target` ("Q1860"); may be empty
};

/// A fact as a user writes it.
struct Fact {
  std::string prompt;   ///< text with {} in place of the subject, or with the subject itself in it once
  std::string subject;  ///< may be empty for methods that need no subject (docs/methods.md)
  std::string target;   ///< what the model should say after the prompt
};

/// Which records of a source are taken, in file order.
struct RequestRange {
  int64_t skip = 0;
  std::optional<int64_t> limit;
};

inline constexpr std::string_view kAutoFormat = "auto";

/// What to do with a record that cannot be read as a request.
enum class OnBadRecord { kError, kSkip };

/// Whether a record must have a target, that is, what the model is to answer. If it is optional (formats flat,
/// counterfact and mquake), the target may be empty.
enum class TargetNeed { kRequired, kOptional };

/// The options of `requests:` of a job, except the path.
struct RequestFileOptions {
  RequestRange range;                             ///< range of records; one record of MQuAKE gives several requests
  std::string format = std::string(kAutoFormat);  ///< auto: detected from the content; else one of request_formats()
  OnBadRecord on_bad_record = OnBadRecord::kError;
  TargetNeed target = TargetNeed::kRequired;
};

/// Records that were skipped.
struct SkippedRecords {
  int64_t count = 0;
  std::vector<std::string> messages;  ///< every problem: "file: record 3 (case_id 17): field: ..."
};

struct RequestFile {
  std::vector<EditRequest> requests;
  std::string format;                    ///< the format that was found or given
  SkippedRecords skipped;                ///< empty with OnBadRecord::kError
  std::vector<std::string> joined = {};  ///< requests that each_fact_once() removed: "4 (as 1)"
};

/// Returns the names of all formats, in the order of docs/job-file.md, which describes them.
std::vector<std::string> request_formats();

/// Returns the first 20 problems, one line each, and how many more there are.
std::string first_problems(std::span<const std::string> problems);

/// Reads .json (a list of records, or EasyEdit's object of lists), .jsonl (one record per line) or .csv (with a header
/// line). All records of a file have one format, which is detected from the first record with a format's characteristic
/// keys. Throws: ConfigError "file: record 3 (case_id 17): field: ..." for all bad records at once (the first 20 are
/// shown; with OnBadRecord::kSkip only if no record is good), an empty file, a range that selects nothing, and records
/// of no known format or of several. A record is bad, too, if its id occurs twice in the file or a key occurs twice in
/// it.
RequestFile load_request_file(const std::filesystem::path& path, const RequestFileOptions& options);

/// Reads an inline list of flat records in a job file. Throws: ConfigError "record 0: ...", as load_request_file()
/// does.
std::vector<EditRequest> parse_requests(const ConfigTree& list, TargetNeed target = TargetNeed::kRequired);

/// Reads facts as such records. `ids`: one for each. Throws: ConfigError, as parse_requests() does.
std::vector<EditRequest> parse_facts(std::span<const Fact> facts, std::span<const std::string> ids);

/// Returns how many requests have white space at the end of a prompt or around a target, with examples; empty if there
/// is none.
std::string stray_white_space(std::span<const EditRequest> requests);

/// Writes the request as one JSON object in the flat format, on one line. load_request_file() reads it back to the same
/// request.
std::string to_json_line(const EditRequest& request);
/// Reads such a line. Throws: ConfigError for other text.
EditRequest parse_json_line(std::string_view line);

}  // namespace lancet
