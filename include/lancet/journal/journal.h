// The journal of a model's edits: what was edited, in order, with where it came from and how well it held. Text alone;
// the changes themselves lie beside it (edit_history/edit_history.h). A list of entries that is only ever added to:
// undoing is an entry too. Format: docs/edits.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>

#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lancet/core/strict_json.h"
#include "lancet/requests/request.h"
#include "lancet/text/tokenizer.h"

namespace lancet {

inline constexpr const char* kJournalFile = "journal.jsonl";
/// Folder of an output that its journal lies in.
inline constexpr const char* kEditsFolder = "edits";

/// The folder that has the journal: an output's edits/, or `edits` itself. nullopt: neither has one.
std::optional<std::filesystem::path> find_journal(const std::filesystem::path& edits);

/// The unedited model. Hashes: 32 hexadecimal digits.
struct JournalBase {
  std::string weights = {};    ///< Checkpoint::content_hash
  std::string config = {};     ///< hash of config.json's text
  std::string tokenizer = {};  ///< hash of the tokenizer's files
  std::string folder = {};     ///< path where it lay
};

/// What batches were edited with.
struct EditSetting {
  std::string method = {};
  std::string editor = {};                 ///< its options as they were resolved, YAML
  std::string job = {};                    ///< the job as it was resolved, without requests, YAML
  std::vector<std::string> contexts = {};  ///< templates that stood before prompts
  std::string statistics = {};             ///< key of their content; empty: none
  std::string dtype = {};                  ///< type of weights and activations in the run
  std::string version = {};                ///< lancet's

  bool operator==(const EditSetting&) const = default;
};

/// A request as it was edited.
struct EditRecord {
  EditRequest request = {};
  std::vector<TokenId> prompt_ids = {};
  std::vector<TokenId> target_ids = {};
  int64_t lookup = -1;  ///< place in prompt_ids of the subject's last token; -1: the method knows no subject
};

struct WeightHash {
  std::string weight = {};  ///< "model.layers.3.mlp.down_proj.weight"
  std::string hash = {};    ///< hash of its bytes, rounded to the model's stored type, after the batch
};

/// Requests that were edited together.
struct BatchEntry {
  size_t setting = 0;     ///< place in Journal::settings()
  std::string when = {};  ///< "2026-11-23T08:00:00Z"
  std::vector<EditRecord> edits = {};
  /// The edit (place in `edits`) of each column of every weight's low-rank changes, one change after the other in the
  /// order of application. Empty: the changes are dense, of all edits together.
  std::vector<int64_t> columns = {};
  std::string changes = {};  ///< hash of the file with its changes
  std::string solved = {};   ///< hash of the file with what they were solved from, which an output may leave out
  std::vector<WeightHash> weights = {};
  nlohmann::ordered_json report = {};  ///< what the run noted of it
};

/// How well one edit held, shares in [0, 1] by metric: "efficacy_prob".
struct MeasuredEdit {
  std::map<std::string, double> before = {}, after = {};
  std::optional<bool> success = {};  ///< nullopt: not judged
  std::string why = {};              ///< why it did not take
  std::string when = {};
};

enum class UndoMode {
  kLast,      ///< the last batches were left out
  kDowndate,  ///< columns were taken out of their batches' solves
  kReplay     ///< everything from the first of them on was edited again without them
};

/// "last", "downdate", "replay".
const char* undo_mode_name(UndoMode mode);
/// nullopt: it is no mode's name.
std::optional<UndoMode> find_undo_mode(const std::string& name);

struct UndoEntry {
  std::string when = {};
  UndoMode mode = UndoMode::kLast;
  size_t keeps = 0;                     ///< batches that stand as they are; batches that follow come after them
  std::vector<std::string> edits = {};  ///< ids of what was taken back
  std::string approximation = {};       ///< how it differs from their never having been; empty: not at all
};

class Journal {
 public:
  explicit Journal(JournalBase base);

  /// Checks every entry's hash, their chain, and the end. Throws: CheckpointError that says which line is wrong, and
  /// whether it was changed, cut, reordered, or is of a later version.
  static Journal read(const std::filesystem::path& folder);

  const JournalBase& base() const { return base_; }
  const std::vector<EditSetting>& settings() const { return settings_; }
  /// Batches that stand, in the order in which they were edited.
  const std::vector<BatchEntry>& batches() const { return batches_; }
  /// Returns the requests of all of them, in their order.
  std::vector<EditRequest> requests() const;
  /// Hash of the file with what the method did after the last batch; empty: nothing.
  const std::string& finish() const { return finish_; }
  const std::vector<UndoEntry>& undone() const { return undone_; }
  /// Returns the requests that each of undone() took back, as they were edited.
  std::vector<std::vector<EditRequest>> undone_requests() const;
  /// Measures of edits that stand, by id, as they were measured last.
  const std::map<std::string, MeasuredEdit>& measured() const { return measured_; }
  /// What they were measured on: "the weights rounded to the type they are exported in".
  const std::string& measured_on() const { return measured_on_; }
  /// Hashes of the weights that were measured last, without what the method did after the last batch. Empty where
  /// batches came or went since.
  const std::vector<WeightHash>& measured_weights() const { return measured_weights_; }

  /// Returns the setting's place in settings(): an equal one's, where there is one.
  size_t add_setting(const EditSetting& setting);
  bool has(const std::string& id) const { return ids_.contains(id); }

  /// These throw std::logic_error for what read() would refuse: an id that stands already, a setting that is none,
  /// a batch without edits, shares that are not finite, measures of what does not stand; and leave all as it was.
  void add_batch(const BatchEntry& batch);
  void add_finish(const std::string& changes);
  /// Sets the report of the last batch, which nobody has written yet.
  void set_last_report(nlohmann::ordered_json report);
  void add_measure(const std::string& on, const std::vector<WeightHash>& weights,
                   const std::map<std::string, MeasuredEdit>& edits);
  /// Takes the batches after the first `keeps` away, in which undo.edits stand. Those of them that come back in later
  /// batches (all but undo.edits, unless the mode is kLast) keep their measures.
  void undo(const UndoEntry& undo);
  /// Leaves no trace of it, nor of what came after it: of a batch that nobody has written yet, added last.
  void forget_last_batch();

  /// Returns all of the journal, as read() takes it: a line each, and a last one that says how many they are.
  std::string text() const;

 private:
  void add(nlohmann::ordered_json entry);
  void add_own(const nlohmann::ordered_json& entry);
  void apply(const nlohmann::ordered_json& entry);

  std::vector<nlohmann::ordered_json> entries_;
  JournalBase base_;
  std::vector<EditSetting> settings_;
  std::vector<BatchEntry> batches_;
  std::set<std::string> ids_;  ///< edits that stand
  std::string finish_;
  std::vector<UndoEntry> undone_;
  std::map<std::string, MeasuredEdit> measured_;
  std::string measured_on_;
  std::vector<WeightHash> measured_weights_;
};

/// Ids for edits that come without one: whole numbers from 0 on, beyond all that edits of the journal have or had
/// before they were taken back, and beyond those in `taken`.
std::vector<std::string> new_ids(const Journal& journal, std::span<const std::string> taken, size_t count);

/// Ids of standing edits whose fact a later edit has with another target, each with that fact's latest edit's id
/// (requests/same_fact.h).
using ReplacedEdits = std::map<std::string, std::string>;
ReplacedEdits replaced_edits(const Journal& journal);

/// What `lancet log --json` shows of an edit that stands, and of one that was taken back: docs/edits.md.
nlohmann::ordered_json describe_edit(const Journal& journal, const EditRecord& edit, const ReplacedEdits& replaced);
nlohmann::ordered_json describe_undo(const UndoEntry& undo);

/// Now, "2026-11-23T08:00:00Z".
std::string utc_now();

}  // namespace lancet
