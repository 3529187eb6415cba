// The fields of one record of a request file, for the parsers of all formats. A wrong field adds a problem and then
// counts as absent, so that all problems of a record are found at once.
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

/// Keeps the order of the file, which is the order of a data set's sections.
using RecordJson = nlohmann::ordered_json;

struct RecordPlace {
  std::string source;   ///< the file; empty for records in the job
  int64_t index = 0;    ///< index in the source
  std::string details;  ///< "line 4"; may be empty

  /// Returns "requests.json: record 3".
  std::string text() const;
};

enum class SlipsIn { kAllObjects, kInnerObjects };

/// The keys that a format's parser has looked for, in which objects.
class NotedKeys {
 public:
  void note(const RecordJson& object, const std::string& path, const char* key);

  struct Slip {
    std::string path;
    std::string what;  ///< "unknown key; did you mean target_true?"
  };
  /// Returns keys that nothing has looked for, and that look like a misspelling of a key that was looked for but is
  /// missing. Other keys are ignored, because public files have many.
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

/// A value of a record, and its name in messages: "requested_rewrite.target_new".
struct Field {
  std::string path;
  const RecordJson* value = nullptr;  ///< null: absent; an explicit null counts as absent
  NotedKeys* asked = nullptr;         ///< is told of each key; null: nobody needs it

  explicit operator bool() const { return value != nullptr; }
  Field at(const char* key) const;  ///< absent if this is not an object
  Field at(size_t index) const;     ///< this must be a list
};

/// A value as it appears in a message.
std::string shown(const RecordJson& value);

class RecordReader {
 public:
  /// All arguments must outlive the reader.
  RecordReader(const RecordJson& record, const RecordPlace& place, std::vector<std::string>& problems,
               TargetNeed target = TargetNeed::kRequired);

  bool is_good() const { return problems_.size() == problems_before_; }
  const RecordJson& record() const { return record_; }
  bool needs_target() const { return target_ == TargetNeed::kRequired; }

  /// Returns "requests.json: record 3 (case_id 17)".
  std::string where() const;
  /// Adds a problem for each misspelt key. Call it after the record was read.
  void refuse_slips(SlipsIn where);
  /// Returns the record's own id, else its index. The same file gives the same ids, whatever part of it is read.
  std::string id();
  /// As id(), for a part of the record that has an id.
  std::string id_in(const Field& part);

  void problem(std::string_view field, std::string_view what);
  void missing(std::string_view field, std::string_view expected);

  Field field(const char* key) const;
  /// Reads a field that has several names. A record may have only one of these keys.
  Field one_of(std::initializer_list<const char*> keys);

  /// Returns the elements of a list; null in place of a list counts as absent. Anything else is a problem and gives no
  /// elements. `of`: "{prompt, answers}".
  std::vector<Field> elements(const Field& list, std::string_view of);
  /// Reads a text that is not blank.
  std::optional<std::string> text(const Field& field);
  /// As text(), but a problem and an empty text if it is absent. `expected`: "text (what the model shall answer)".
  std::optional<std::string> required(const Field& field, std::string_view expected = "text");
  /// Reads a list of texts. A text counts as a list of one.
  std::vector<std::string> texts(const Field& field);
  /// Reads texts in lists of any depth. Blank ones are left out, because data sets write them if they have no answer.
  std::vector<std::string> answers(const Field& field);
  /// Reads `text` and `id` from {"str": text, "id": text}. Anything else is a problem.
  void labelled(const Field& field, std::string& text, std::string* id);

  /// Reads subject and prompt: the prompt contains the subject, or has {} in its place.
  void fill(const std::optional<std::string>& subject, const std::optional<std::string>& prompt, EditRequest& request);
  /// Reads other wordings of the prompt, each of which contains the subject or has {} in its place. fill() comes first.
  void reword(const Field& texts, EditRequest& request);
  /// Finds the subject's place in paraphrases and generation prompts. A place in prompts about others is a problem.
  void fill_others(EditRequest& request);

 private:
  /// Whether a text is short enough for any model, and has no character U+0000. Adds a problem if not.
  bool is_usable(const Field& field);

  const RecordJson& record_;
  const RecordPlace& place_;
  std::vector<std::string>& problems_;
  size_t problems_before_;
  TargetNeed target_;
  mutable NotedKeys asked_;
};

// Prompts with their own answers, in the forms that data sets have. A probe without a prompt or without an answer is
// left out, as in the data sets' own scripts: they write "" and null if a record has none.

/// Reads a list of {prompt, ground_truth | answers}. Several prompts in one element share the answers.
std::vector<Probe> read_probes(RecordReader& reader, const Field& list);

/// Reads {name: list of probes} (KnowEdit), or {name: {prompt, ground_truth}} with texts or two lists of equal length
/// (EasyEdit). Sections without a probe are left out.
std::vector<ProbeSection> read_sections(RecordReader& reader, const Field& sections);

/// Reads one probe from two fields; returns nothing if there is no answer.
std::vector<Probe> read_probe(RecordReader& reader, const Field& prompt, const Field& answers);

/// Reads two lists of equal length: answer i belongs to prompt i.
std::vector<Probe> read_paired(RecordReader& reader, const Field& prompts, const Field& answers);

/// Adds the section `name` unless it is empty.
void add_section(std::vector<ProbeSection>& sections, const std::string& name, std::vector<Probe> probes);

/// Whether it is {"New Question", "New Answer"}, which EasyEdit's files add to zsRE and CounterFact. EasyEdit's scripts
/// call it one_hop.
bool is_new_question(const Field& portability);
void add_new_question(RecordReader& reader, const Field& portability, EditRequest& request);

}  // namespace lancet
