// One fact to edit, and the readers of request files.
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

/// The section of `portability` that has what a long target holds, as questions with short answers.
inline constexpr std::string_view kFactsSection = "facts";

struct EditRequest {
  std::string id;        ///< the record's case_id / id, else its index in the file; unique within a job
  std::string subject;   ///< empty when the record has none (methods that need one refuse it)
  SubjectPrompt prompt;  ///< filled; `subject` is an empty span when there is none
  std::string target;    ///< text without a leading space unless the record has one; empty only where it is optional
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

inline constexpr std::string_view kAutoFormat = "auto";

/// What becomes of a record that cannot be read as a request.
enum class OnBadRecord { kError, kSkip };

/// Whether a record says what the model shall answer. Where it need not (formats flat, counterfact and mquake), its
/// target is empty.
enum class TargetNeed { kRequired, kOptional };

/// `requests:` of a job, but for the path.
struct RequestFileOptions {
  RequestRange range;                             ///< range of records, of which one of MQuAKE's is several requests
  std::string format = std::string(kAutoFormat);  ///< auto: found by content; else one of request_formats()
  OnBadRecord on_bad_record = OnBadRecord::kError;
  TargetNeed target = TargetNeed::kRequired;
};

/// Records that were left out.
struct SkippedRecords {
  int64_t count = 0;
  std::vector<std::string> messages;  ///< every problem: "file: record 3 (case_id 17): field: ..."
};

struct RequestFile {
  std::vector<EditRequest> requests;
  std::string format;                    ///< the one found or given
  SkippedRecords skipped;                ///< none with OnBadRecord::kError
  std::vector<std::string> joined = {};  ///< those that each_fact_once() took away: "4 (as 1)"
};

/// Names of all formats, in the order of docs/job-file.md, which describes them.
std::vector<std::string> request_formats();

/// The first 20, a line each, and how many more there are.
std::string first_problems(std::span<const std::string> problems);

/// Reads .json (a list of records, or EasyEdit's object of lists), .jsonl (a record per line) or .csv (with a header
/// line). All records of a file are of one format, found by the first record that has a format's marks.
/// Throws: ConfigError "file: record 3 (case_id 17): field: ..." for every bad record at once (first 20 shown; with
/// OnBadRecord::kSkip only when no record is good), an empty file, a range that leaves nothing, records of no known
/// format or of several. An id that stands twice, and a key that stands twice in a record, make a record bad.
RequestFile load_request_file(const std::filesystem::path& path, const RequestFileOptions& options);

/// An inline list of flat records in a job file. Throws: ConfigError "record 0: ..." likewise.
std::vector<EditRequest> parse_requests(const ConfigTree& list, TargetNeed target = TargetNeed::kRequired);

/// How many requests have white space at the end of a prompt or around a target, with examples; empty when none has.
std::string stray_white_space(std::span<const EditRequest> requests);

/// One JSON object in the flat format on one line; load_request_file reads it back to the same request.
std::string to_json_line(const EditRequest& request);
/// The request that such a line is of. Throws: ConfigError for other text.
EditRequest parse_json_line(std::string_view line);

}  // namespace lancet
