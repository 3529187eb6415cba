// Writes the subjects of edits to report.json.
#pragma once

#include "lancet/outcome/edit_report.h"
#include "lancet/outcome/report_json.h"
#include "lancet/outcome/subject_verdict.h"

namespace lancet {

/// Returns the other questions about a request's subject, and their answers.
inline Json subject_json(const EditReport& report, size_t request) {
  Json answers = Json::array();
  for (const ComparedAnswer& answer : compared_answers(report, request))
    answers.push_back({{"asked", asked_for_name(answer.asked)},
                       {"prompt", answer.prompt},
                       {"before", answer.before},
                       {"after", answer.after},
                       {"kept", answer.is_kept()}});
  return answers;
}

/// Returns null if nothing was measured.
inline Json subjects_json(const EditReport& report) {
  const std::optional<SubjectCount> count = count_subjects(report);
  if (!count) return nullptr;
  return {{"kept", count->kept},         {"prompts", count->prompts}, {"leaks", count->leaks},
          {"texts", count->texts},       {"is_low", count->is_low()}, {"least", kLeastKept},
          {"text", subject_text(*count)}};
}

}  // namespace lancet
