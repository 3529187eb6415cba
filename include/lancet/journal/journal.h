// The journal of a model's edits: what was edited, in order, its origin, and how well it held. It is text only; the
// changes are in files beside it (edit_history/edit_history.h). Entries are only ever appended: undoing is an entry
// too. Format: docs/edits.md.
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
/// The folder of an output that holds its journal.
inline constexpr const char* kEditsFolder = "edits";

/// Returns the folder with the journal: an output's edits/, or `edits` itself. An output may be
/// named by its model file (existing_output). nullopt: neither has one.
std::optional<std::filesystem::path> find_journal(const std::filesystem::path& edits);

/// The unedited model. Hashes have 32 hexadecimal digits.
struct JournalBase {
  std::string weights = {};    ///< Checkpoint::content_hash
  std::string config = {};     ///< hash of config.json's text
  std::string tokenizer = {};  ///< hash of the tokenizer's files
  std::string folder = {};     ///< path where it was
};

/// The settings with which batches were edited.
struct EditSetting {
  std::string method = {};
  std::string editor = {};                 ///< its resolved options, YAML
  std::string job = {};                    ///< the resolved job without requests, YAML
  std::vector<std::string> contexts = {};  ///< context templates
  std::string statistics = {};             ///< hash of their content; empty: none
  std::string dtype = {};                  ///< type of weights and activations in the run
  std::string version = {};                ///< version of lancet

  bool operator==(const EditSetting&) const = default;
};

/// A request as it was edited.
struct EditRecord {
  EditRequest request = {};
  std::vector<TokenId> prompt_ids = {};
  std::vector<TokenId> target_ids = {};
  int64_t lookup = -1;  ///< place of the subject's last token in prompt_ids; -1: the method uses no subject
};

struct WeightHash {
  std::string weight = {};  ///< "model.layers.3.mlp.down_proj.weight"
  std::string hash = {};    ///< hash of its bytes after the batch, rounded to the model's stored type
};

/// Requests that were edited together.
struct BatchEntry {
  size_t setting = 0;     ///< index in Journal::settings()
  std::string when = {};  ///< "2026-11-23T08:00:00Z"
  std::vector<EditRecord> edits = {};
  /// For each column of every weight's low-rank changes, its edit (place in `edits`), change after change in the order
  /// of application. Empty: the changes are dense and belong to all edits together.
  std::vector<int64_t> columns = {};
  std::string changes = {};  ///< hash of the file with its changes
  std::string solved = {};   ///< hash of the file with their solved systems, which an output may leave out
  std::vector<WeightHash> weights = {};
  nlohmann::ordered_json report = {};  ///< the run's report of the batch
};

/// How well one edit held: shares in [0, 1] by metric, such as "efficacy_prob".
struct MeasuredEdit {
  std::map<std::string, double> before = {}, after = {};
  std::optional<bool> success = {};  ///< nullopt: not judged
  std::string why = {};              ///< why the edit failed
  std::string when = {};
};

enum class UndoMode {
  kLast,      ///< the last batches were left out
  kDowndate,  ///< columns were removed from the solves of their batches
  kReplay     ///< everything from the first removed edit's batch on was edited again without the removed edits
};

/// Returns "last", "downdate", "replay".
const char* undo_mode_name(UndoMode mode);
/// Returns the mode of a name; nullopt: there is none.
std::optional<UndoMode> find_undo_mode(const std::string& name);

struct UndoEntry {
  std::string when = {};
  UndoMode mode = UndoMode::kLast;
  size_t keeps = 0;                     ///< number of batches that stay unchanged; later batches come after them
  std::vector<std::string> edits = {};  ///< ids of the removed edits
  std::string approximation = {};       ///< how the result differs from a journal without the edits; empty: not at all
};

class Journal {
 public:
  explicit Journal(JournalBase base);

  /// Reads a journal and checks every entry's hash, their chain, and the end. Throws: CheckpointError that says which
  /// line is wrong, and whether it was changed, cut, reordered, or is of a later version.
  static Journal read(const std::filesystem::path& folder);

  const JournalBase& base() const { return base_; }
  const std::vector<EditSetting>& settings() const { return settings_; }
  /// Returns the standing batches (those that were not undone), in the order in which they were edited.
  const std::vector<BatchEntry>& batches() const { return batches_; }
  /// Returns the requests of all standing batches, in order.
  std::vector<EditRequest> requests() const;
  /// Returns the hash of the file with the method's change after the last batch; empty: there is none.
  const std::string& finish() const { return finish_; }
  const std::vector<UndoEntry>& undone() const { return undone_; }
  /// Returns, for each of undone(), the requests that it removed, as they were edited.
  std::vector<std::vector<EditRequest>> undone_requests() const;
  /// Returns the latest measurements of standing edits, by id.
  const std::map<std::string, MeasuredEdit>& measured() const { return measured_; }
  /// Returns what they were measured on: "the weights rounded to the type they are exported in".
  const std::string& measured_on() const { return measured_on_; }
  /// Returns the hashes of the last measured weights, without the method's change after the last batch. Empty if
  /// batches were added or removed since.
  const std::vector<WeightHash>& measured_weights() const { return measured_weights_; }

  /// Returns the setting's index in settings(). An equal setting is not added again.
  size_t add_setting(const EditSetting& setting);
  bool has(const std::string& id) const { return ids_.contains(id); }

  /// These throw std::logic_error, and change nothing, for what read() would refuse: an id that is already in use, a
  /// setting that does not exist, a batch without edits, shares that are not finite, and measurements of edits that do
  /// not stand.
  void add_batch(const BatchEntry& batch);
  void add_finish(const std::string& changes);
  /// Sets the report of the last batch, which must not have been written yet.
  void set_last_report(nlohmann::ordered_json report);
  void add_measure(const std::string& on, const std::vector<WeightHash>& weights,
                   const std::map<std::string, MeasuredEdit>& edits);
  /// Removes the batches after the first `keeps`, which contain undo.edits. Their other edits come back in later
  /// batches, unless the mode is kLast, and then keep their measurements.
  void undo(const UndoEntry& undo);
  /// Removes the batch that was added last, and everything after it, without a trace. The batch must not have been
  /// written.
  void forget_last_batch();

  /// Returns the journal's text as read() accepts it: a line per entry, and a last line with their number.
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

/// Returns ids for edits that have none: whole numbers from 0 on, larger than all ids that standing or removed edits of
/// the journal use, and than those in `taken`.
std::vector<std::string> new_ids(const Journal& journal, std::span<const std::string> taken, size_t count);

/// Maps the id of each standing edit that a later edit of the same fact with another target replaced to the id of the
/// latest edit of that fact (requests/same_fact.h).
using ReplacedEdits = std::map<std::string, std::string>;
ReplacedEdits replaced_edits(const Journal& journal);

/// Return what `lancet log --json` shows of a standing edit, and of an undo: docs/edits.md.
nlohmann::ordered_json describe_edit(const Journal& journal, const EditRecord& edit, const ReplacedEdits& replaced);
nlohmann::ordered_json describe_undo(const UndoEntry& undo);

/// Returns the current time: "2026-11-23T08:00:00Z".
std::string utc_now();

}  // namespace lancet
