// `requests:` of a job, other files of requests that it names, and records that stand in it.
#pragma once

#include "lancet/spec/option.h"

namespace lancet {

struct RequestsSpec {
  static constexpr PathOption kPath{{.key = "path", .meaning = "file with the records: .json, .jsonl or .csv"}};
  static constexpr IntegerOption kSkip{
      {.key = "skip", .meaning = "number of records at the beginning of the file that are skipped", .unit = "records"},
      {.min = 0},
      0};
  static constexpr IntegerOption kLimit{{.key = "limit",
                                         .meaning = "largest number of records that are read, after the skipped ones",
                                         .unit = "records",
                                         .absent = "all"},
                                        {.min = 1}};
  static constexpr TextOption kFormat{
      {.key = "format", .meaning = "format of the file; `auto`: recognised from its content"},
      "auto",
      Vocabulary::kFormats};
  static constexpr std::string_view kBadRecordNames[] = {"error", "skip"};
  static constexpr ChoiceOption kOnBadRecord{
      {.key = "on_bad_record",
       .meaning = "what happens if a record cannot be used: `error`: the job ends with an error; `skip`: the record is "
                  "left out, and a warning lists it"},
      kBadRecordNames};
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
    {"prompt", FieldType::kText, "text with `{}` in the place of the subject, or with the subject itself exactly once"},
    {"subject", FieldType::kText, "what the fact is about; `ultraedit` and `ft*` need none"},
    {"target", FieldType::kTarget,
     "what the model should say after the prompt and a space: a text, or `{str, id}`. It is refused if one token would "
     "have the prompt's last letters and the target's first ones"},
    {"target_new", FieldType::kTarget, "another name of `target`"},
    {"target_true", FieldType::kTexts,
     "the true answer, which the model said before the edit; of several, the first one is used"},
    {"ground_truth", FieldType::kTexts, "another name of `target_true`"},
    {"target_id", FieldType::kText, "id of the target in the data set"},
    {"target_aliases", FieldType::kTexts, "other names of the target"},
    {"paraphrases", FieldType::kTexts,
     "other wordings of the prompt, which are only measured; `{}` is the subject here, too"},
    {"rephrase", FieldType::kTexts, "another name of `paraphrases`"},
    {"neighborhood", FieldType::kTexts, "prompts about other subjects that have the same true answer"},
    {"rewordings", FieldType::kTexts,
     "other wordings of `prompt`, written as it is, in which the fact is edited too; no figure is measured on them"},
    {"relation", FieldType::kText, "id of the relation in the data set"},
    {"relation_id", FieldType::kText, "another name of `relation`"},
    {"locality", FieldType::kProbes,
     "questions about other facts, in sections with names: a section is a list of `{prompt, answers}` (KnowEdit), or "
     "one `{prompt, answers}` with texts or two lists of equal length (EasyEdit). `ground_truth` is another name of "
     "`answers`. Lists of answers may be nested: each answer is right"},
    {"portability", FieldType::kProbes, "questions that follow from the edited fact, in the form of `locality`"},
    {"multihop", FieldType::kProbes, "a list of `{prompt, answers}`: several wordings of one multi-hop question"},
    {"rephrase_prompt", FieldType::kTexts, "another name of `paraphrases`"},
    {"locality_prompt", FieldType::kTexts,
     "another name of `neighborhood`; but if `locality_ground_truth` differs from the true answer, a section of "
     "`locality` (`nq`, or `neighborhood`)"},
    {"locality_ground_truth", FieldType::kTexts, "the answer to `locality_prompt`"},
    {"generation_prompts", FieldType::kTexts,
     "prompts about the subject, after which the model writes freely; `{}` is the subject"},
};

}  // namespace lancet
