// The fields of one record of a request file: what every format's parser works with. A wrong field becomes a problem
// and reads as absent, so that all problems of a record are found at once.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/requests/request.h"

namespace lancet {

/// Keeps the order of the file: a data set's sections are in it.
using RecordJson = nlohmann::ordered_json;

struct RecordPlace {
  std::string source;   ///< the file; empty for records that stand in a job
  int64_t index = 0;    ///< in the source
  std::string details;  ///< "line 4"; may be empty

  /// "requests.json: record 3".
  std::string text() const;
};

/// A value of a record and its name in messages: "requested_rewrite.target_new".
struct Field {
  std::string path;
  const RecordJson* value = nullptr;  ///< null: absent; an explicit null is absent too

  explicit operator bool() const { return value != nullptr; }
  Field at(const char* key) const;  ///< absent when this is no object
  Field at(size_t index) const;     ///< this is a list
};

/// A value as it appears in a message.
std::string shown(const RecordJson& value);

class RecordReader {
 public:
  /// All outlive the reader.
  RecordReader(const RecordJson& record, const RecordPlace& place, std::vector<std::string>& problems);

  bool is_good() const { return problems_.size() == problems_before_; }
  const RecordJson& record() const { return record_; }

  /// "requests.json: record 3 (case_id 17)".
  std::string where() const;
  /// The record's own id, else its index: the same file gives the same ids whatever part of it is taken.
  std::string id();

  void problem(std::string_view field, std::string_view what);
  void missing(std::string_view field, std::string_view expected);

  Field field(const char* key) const;
  /// The keys are names of the same field, of which a record has one.
  Field one_of(std::initializer_list<const char*> keys);

  /// Not blank.
  std::optional<std::string> text(const Field& field);
  /// The same, empty and a problem when it is absent. `expected`: "text (what the model shall answer)".
  std::optional<std::string> required(const Field& field, std::string_view expected = "text");
  /// A text stands for a list of one.
  std::vector<std::string> texts(const Field& field);
  /// Texts in lists of any depth. Blank ones are left out: data sets write them where they have no answer.
  std::vector<std::string> answers(const Field& field);
  /// What to take for `text` and `id` of {"str": text, "id": text}; a problem for anything else.
  void labelled(const Field& field, std::string& text, std::string* id);

  /// Subject and prompt together: a prompt is filled, or has a place for the subject.
  void fill(const std::optional<std::string>& subject, const std::optional<std::string>& prompt, EditRequest& request);
  /// Places for the subject in paraphrases and generation prompts; a problem for those in prompts of others.
  void fill_others(EditRequest& request);

 private:
  /// Whether a field of text is not too long for any model; else a problem.
  bool is_bounded(const Field& field);

  const RecordJson& record_;
  const RecordPlace& place_;
  std::vector<std::string>& problems_;
  size_t problems_before_;
};

}  // namespace lancet
