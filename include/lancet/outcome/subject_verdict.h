// Judges what an edit did to the other facts about its subject. An edit may take, and the model may know nothing else
// about the subject any more. This is reported beside whether the edits took.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lancet/core/config_tree.h"
#include "lancet/eval/evaluate.h"

namespace lancet {

struct EditReport;

/// The metric that tells whether an edit leaves the rest of its subject unchanged.
inline constexpr const char* kSubjectMetric = "subject_kept";
/// The metric that tells whether the new target is said although something else is asked about its subject.
inline constexpr const char* kLeakMetric = "subject_leak";
/// If kSubjectMetric is below this value, an edit gets a warning, and the summary does not call it a success without
/// mentioning that.
inline constexpr double kLeastKept = 0.7;
/// A single subject that keeps less than this share of its other prompts is named in a warning. One subject has few
/// prompts, so that one changed answer is no sign of damage.
inline constexpr double kLeastKeptOfOne = 0.5;

/// The counts of both metrics over all requests.
struct SubjectCount {
  int64_t kept = 0;
  int64_t prompts = 0;
  int64_t leaks = 0;
  int64_t texts = 0;  ///< continuations of "{subject} is" that did not contain the target before the edit

  double share() const { return static_cast<double>(kept) / static_cast<double>(prompts); }
  bool is_low() const { return share() < kLeastKept; }
};
/// Counts both metrics; nullopt: `subject` was not evaluated, or no request has a subject.
std::optional<SubjectCount> count_subjects(const EditReport& report);

/// Returns "other prompts about the edited subjects go on as before in 14 of 16 cases (subject_kept 87.5 %)", or, if
/// the share is low, that the subjects have changed. The text follows "2 of 2 edits took".
std::string subject_text(const SubjectCount& count);

/// Returns what to do if the share is low, or is low for single subjects; empty: neither, or it was not measured.
std::string subject_warning(const EditReport& report, const ConfigTree& editor);

/// An answer about a subject, before and after the edit.
struct ComparedAnswer {
  AskedFor asked = AskedFor::kNextToken;
  std::string prompt;
  std::string before, after;

  bool is_kept() const { return before == after; }
};
/// Returns the answers of one request; empty: none were asked for.
std::vector<ComparedAnswer> compared_answers(const EditReport& report, size_t request);

}  // namespace lancet
