// What was pushed, and where to: a small file beside an output, written before a server is changed and after. It has no
// token.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lancet/io/output_folder.h"
#include "lancet/outcome/report_json.h"
#include "lancet/push/push_job.h"

namespace lancet {

/// Two pushes of one output at a time are refused by its lock.
inline constexpr OutputKind kPushOutput{"push"};

class PushJournal {
 public:
  /// Reads what is there. Throws: CheckpointError for a file that is damaged or of a later version.
  explicit PushJournal(const std::filesystem::path& output);

  const std::vector<PushRecord>& records() const { return records_; }
  /// The latest one of the server that is in force or was begun; null: none. `server` empty: of any.
  PushRecord* last(const std::string& server);
  /// The latest under the name that is in force, or was until a later one took its place; null: none.
  PushRecord* serving(const std::string& server, const std::string& name);

  PushRecord& add(PushRecord record);
  /// Sets state and time. write() after.
  static void set_state(PushRecord& record, PushState state);
  /// Throws: CheckpointError when the disk refuses.
  void write() const;

 private:
  std::filesystem::path file_;
  std::vector<PushRecord> records_;
};

Json record_json(const PushRecord& record);

}  // namespace lancet
