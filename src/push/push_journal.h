// The list of pushes: a small file beside an output, which is written before a server is changed and afterwards. It has
// no tokens.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lancet/io/output_folder.h"
#include "lancet/outcome/report_json.h"
#include "lancet/push/push_job.h"

namespace lancet {

/// Its lock refuses two pushes of one output at the same time.
inline constexpr OutputKind kPushOutput{"push"};

class PushJournal {
 public:
  /// Reads the existing file. Throws: CheckpointError if it is damaged, or written by a later version.
  explicit PushJournal(const std::filesystem::path& output);

  const std::vector<PushRecord>& records() const { return records_; }
  /// Returns the latest push to the server that is active or was begun; null if there is none. `server`: empty for any.
  PushRecord* last(const std::string& server);
  /// Returns the latest push under the name that is active, or was replaced by a later one; null if there is none.
  PushRecord* serving(const std::string& server, const std::string& name);

  PushRecord& add(PushRecord record);
  /// Sets state and time. Call write() afterwards.
  static void set_state(PushRecord& record, PushState state);
  /// Throws: CheckpointError if the disk refuses.
  void write() const;

 private:
  std::filesystem::path file_;
  std::vector<PushRecord> records_;
};

Json record_json(const PushRecord& record);

}  // namespace lancet
