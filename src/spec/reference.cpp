// Writes docs/options.md: a table for each section, in the order of the declarations.
#include "lancet/core/strings.h"
#include "lancet/spec/job_spec.h"
#include "lancet/spec/option.h"
#include "lancet/spec/schema.h"

namespace lancet {
namespace {

constexpr std::string_view kHead = R"(# Every option of the job file

`lancet schema --reference` prints this page from the declarations that the program uses to read jobs.
A test checks that the page is up to date.
[job-file.md](job-file.md) explains the sections, with examples.
`lancet schema` prints the same as a JSON Schema, with which an editor checks and completes YAML.

Relative paths start from the folder of the job file.
A key without a value (`limit:`, or `limit: null`) counts as absent.

The column **affects** says what an option changes:

* *results*: the edited model, or what is measured.
* *state*: also the state of a stream, so `continue_from` refuses another value.
* *state if chosen*: if the value is a rule (`auto` or a share), `continue_from` refuses another rule.
* *work*: only how work is run, shown or kept. The results are the same except for rounding.
* *tuned*: `lancet tune` tries multiples of this number, if `tune.search` names no keys.
)";

std::string affects_text(const AnyOption& option) {
  const auto* number = std::get_if<const NumberOption*>(&option);
  if (std::holds_alternative<const SectionOption*>(option) && base_of(option).affects == Affects::kResults) return "";
  const std::string tuned = number != nullptr && !(*number)->tried.empty() ? ", tuned" : "";
  switch (base_of(option).affects) {
    case Affects::kResults:
      return "results" + tuned;
    case Affects::kState:
      return "results, state" + tuned;
    case Affects::kChosenState:
      return "results, state if chosen" + tuned;
    case Affects::kWork:
      return "work";
  }
  return "";
}

std::string default_cell(const AnyOption& option) {
  if (is_required(option)) return "required";
  const std::string text = default_text(option);
  if (!text.empty()) return cat("`", text, "`");
  return std::string(base_of(option).absent);
}

std::string methods_cell(const Option& option) {
  return option.methods.empty() ? "all" : quoted_names(split(option.methods, ' '));
}

/// Returns the table of a section, then the tables of sections inside it.
std::string section_text(std::span<const AnyOption> options, const std::string& place) {
  bool has_methods = false;
  for (const AnyOption& option : options) has_methods = has_methods || !base_of(option).methods.empty();
  std::string text = has_methods ? "\n| key | methods | type | default | affects | what |\n|---|---|---|---|---|---|\n"
                                 : "\n| key | type | default | affects | what |\n|---|---|---|---|---|\n";
  std::string below;
  for (const AnyOption& option : options) {
    const Option& base = base_of(option);
    text += cat("| `", base.key, "` | ", has_methods ? methods_cell(base) + " | " : "", type_text(option), " | ",
                default_cell(option), " | ", affects_text(option), " | ", description_of(option), " |\n");
    const auto* section = std::get_if<const SectionOption*>(&option);
    if (section == nullptr || (*section)->keys.empty()) continue;
    const std::string there = cat(place, place.empty() ? "" : ".", base.key);
    below += cat("\n## `", there, "`\n", section_text((*section)->keys, there));
  }
  return text + below;
}

std::string record_text() {
  std::string text =
      "\n## Records\n\nKeys of records in the job and in files of the format `flat`. Other formats: "
      "[job-file.md](job-file.md#request-records).\n\n| key | type | what |\n|---|---|---|\n";
  for (const RecordField& field : kRecordFields) {
    const char* type = field.type == FieldType::kText     ? "text"
                       : field.type == FieldType::kTarget ? "text or map"
                       : field.type == FieldType::kTexts  ? "text or list of texts"
                                                          : "questions with answers";
    text += cat("| `", field.key, "` | ", type, " | ", field.meaning, " |\n");
  }
  return text;
}

std::string tables_text(const SpecTables& tables) {
  std::string text = "\n## Methods\n\n| method | what |\n|---|---|\n";
  for (const NamedRow& row : tables.methods) text += cat("| `", row.name, "` | ", row.summary, " |\n");
  text += "\n## Protocols\n\nThe column **metrics** lists the metrics that `accept` and `tune.objective` take.\n\n";
  text += "| protocol | metrics | what |\n|---|---|---|\n";
  for (const NamedRow& row : tables.protocols)
    text += cat("| `", row.name, "` | ", quoted_names(row.metrics), " | ", row.summary, " |\n");
  text += "\nOne name for several protocols:\n\n";
  for (const ProtocolSet& set : kProtocolSets)
    text += cat("* `", set.name, "`: ", quoted_names(set.protocols), ";\n  ", set.summary, "\n");
  text += "\n## Formats of request files\n\n";
  for (const std::string& format : tables.formats) text += cat("* `", format, "`\n");
  return text;
}

}  // namespace

std::string options_reference(const SpecTables& tables) {
  return cat(kHead, "\n## The job\n", section_text(JobSpec::kAll, ""), record_text(), tables_text(tables));
}

}  // namespace lancet
