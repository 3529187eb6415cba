// `requests:` of a job, other files of requests that it names, and records that stand in it.
#pragma once

#include "lancet/spec/option.h"

namespace lancet {

struct RequestsSpec {
  static constexpr PathOption kPath{{.key = "path", .meaning = "file of records: .json, .jsonl or .csv"}};
  static constexpr IntegerOption kSkip{
      {.key = "skip", .meaning = "records that are passed over", .unit = "records"}, {.min = 0}, 0};
  static constexpr IntegerOption kLimit{
      {.key = "limit", .meaning = "records that are taken", .unit = "records", .absent = "all"}, {.min = 1}};
  static constexpr TextOption kFormat{
      {.key = "format", .meaning = "format of the file; `auto`: found by its content"}, "auto", Vocabulary::kFormats};
  static constexpr std::string_view kBadRecordNames[] = {"error", "skip"};
  static constexpr ChoiceOption kOnBadRecord{
      {.key = "on_bad_record", .meaning = "`skip`: such records are left out, counted and listed"}, kBadRecordNames};
  /// Options of files besides `requests`.
  static constexpr AnyOption kFile[] = {&kPath, &kSkip, &kLimit, &kFormat};
  static constexpr AnyOption kAll[] = {&kPath, &kSkip, &kLimit, &kFormat, &kOnBadRecord};
};

/// What a field of a record may be.
enum class FieldType {
  kText,
  kTarget,  ///< text, or {str, id}
  kTexts,   ///< a text or a list
  kProbes   ///< questions with answers, as data sets nest them
};

struct RecordField {
  std::string_view key;
  FieldType type;
  std::string_view meaning;
};

/// Records of the format `flat`, the only one of records that stand in a job.
inline constexpr RecordField kRecordFields[] = {
    {"id", FieldType::kText, "unique in a job; default: the record's number in the file"},
    {"case_id", FieldType::kText, "another name of `id`"},
    {"prompt", FieldType::kText, "has `{}` where the subject goes, or holds the subject exactly once"},
    {"subject", FieldType::kText, "what the fact is about; `ultraedit` and `ft*` need none"},
    {"target", FieldType::kTarget,
     "text, or `{str, id}`; follows the prompt after a space. Refused where one token of the tokenizer holds the "
     "prompt's last letters and the target's first"},
    {"target_new", FieldType::kTarget, "another name of `target`"},
    {"target_true", FieldType::kTexts, "what the model said before; of several the first"},
    {"ground_truth", FieldType::kTexts, "another name of `target_true`"},
    {"target_id", FieldType::kText, "the data set's id of the target"},
    {"target_aliases", FieldType::kTexts, "other names of the target"},
    {"paraphrases", FieldType::kTexts, "other wordings, measured alone; `{}` is the subject here too"},
    {"rephrase", FieldType::kTexts, "another name of `paraphrases`"},
    {"neighborhood", FieldType::kTexts, "prompts of other subjects with the same true target"},
    {"relation", FieldType::kText, "the data set's id of the relation"},
    {"relation_id", FieldType::kText, "another name of `relation`"},
    {"locality", FieldType::kProbes,
     "sections by name: lists of `{prompt, answers}` (KnowEdit), or `{prompt, answers}` with texts or two lists of "
     "equal length (EasyEdit). `ground_truth` is another name of `answers`. Lists of answers may be nested: each of "
     "them is right"},
    {"portability", FieldType::kProbes, "as `locality`"},
    {"multihop", FieldType::kProbes, "a list of `{prompt, answers}`: wordings of one question"},
    {"rephrase_prompt", FieldType::kTexts, "another name of `paraphrases`"},
    {"locality_prompt", FieldType::kTexts,
     "another name of `neighborhood`; with a `locality_ground_truth` that is another than the true target, a locality "
     "section (`nq`, or `neighborhood`) instead"},
    {"locality_ground_truth", FieldType::kTexts, "the answer to `locality_prompt`"},
    {"generation_prompts", FieldType::kTexts, "about the subject; `{}` is the subject"},
};

}  // namespace lancet
