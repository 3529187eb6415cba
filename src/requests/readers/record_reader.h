// The fields of one record of a request file: what every format's parser works with. A wrong field becomes a problem
// and reads as absent, so that all problems of a record are found at once.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/requests/request.h"

namespace lancet {

/// Keeps the order of the file: a data set's sections are in it.
using RecordJson = nlohmann::ordered_json;

struct RecordPlace {
  std::string source;   ///< the file; empty for records that stand in a job
  int64_t index = 0;    ///< index in the source
  std::string details;  ///< "line 4"; may be empty

  /// "requests.json: record 3".
  std::string text() const;
};

enum class SlipsIn { kAllObjects, kInnerObjects };

/// Which keys of which objects a format's parser has looked for.
class NotedKeys {
 public:
  void note(const RecordJson& object, const std::string& path, const char* key);

  struct Slip {
    std::string path;
    std::string what;  ///< "unknown key; did you mean target_true?"
  };
  /// Keys that nothing has looked for and that are, but for a slip, one that was looked for and is not there. Other
  /// keys mean nothing here: public files have many.
  std::vector<Slip> slips(SlipsIn where = SlipsIn::kAllObjects) const;

 private:
  struct Object {
    const RecordJson* json = nullptr;
    std::string path;  ///< "requested_rewrite"; empty: the record itself
    std::set<std::string, std::less<>> keys;
  };
  std::vector<Object> objects_;
  std::map<const RecordJson*, size_t> place_of_;
};

/// A value of a record and its name in messages: "requested_rewrite.target_new".
struct Field {
  std::string path;
  const RecordJson* value = nullptr;  ///< null: absent; an explicit null is absent too
  NotedKeys* asked = nullptr;         ///< told of each key; null: nobody asks

  explicit operator bool() const { return value != nullptr; }
  Field at(const char* key) const;  ///< absent when this is no object
  Field at(size_t index) const;     ///< this is a list
};

/// A value as it appears in a message.
std::string shown(const RecordJson& value);

class RecordReader {
 public:
  /// All outlive the reader.
  RecordReader(const RecordJson& record, const RecordPlace& place, std::vector<std::string>& problems,
               TargetNeed target = TargetNeed::kRequired);

  bool is_good() const { return problems_.size() == problems_before_; }
  const RecordJson& record() const { return record_; }
  bool needs_target() const { return target_ == TargetNeed::kRequired; }

  /// "requests.json: record 3 (case_id 17)".
  std::string where() const;
  /// Notes a problem for each slip in a key, once the record is read.
  void refuse_slips(SlipsIn where);
  /// The record's own id, else its index: the same file gives the same ids whatever part of it is taken.
  std::string id();
  /// Likewise of a part of the record that has the id.
  std::string id_in(const Field& part);

  void problem(std::string_view field, std::string_view what);
  void missing(std::string_view field, std::string_view expected);

  Field field(const char* key) const;
  /// The keys are names of the same field, of which a record has one.
  Field one_of(std::initializer_list<const char*> keys);

  /// The elements of a list, a null as an absent one; none and a problem for anything else. `of`: "{prompt, answers}".
  std::vector<Field> elements(const Field& list, std::string_view of);
  /// Reads a text that is not blank.
  std::optional<std::string> text(const Field& field);
  /// Reads likewise; empty and a problem when it is absent. `expected`: "text (what the model shall answer)".
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
  /// Whether a field of text is not too long for any model, and has no character U+0000; else a problem.
  bool is_usable(const Field& field);

  const RecordJson& record_;
  const RecordPlace& place_;
  std::vector<std::string>& problems_;
  size_t problems_before_;
  TargetNeed target_;
  mutable NotedKeys asked_;
};

// Prompts with answers of their own, in the shapes that data sets give them. A probe without a prompt or without an
// answer is left out, as the data sets' own scripts do: they write "" and null where a record has none.

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
