#include "stream_start.h"

#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "lancet/runtime/collectives.h"

namespace lancet {
namespace {

bool keeps_history(const StreamParts& parts) { return parts.recorded && parts.ranks.is_root(); }

}  // namespace

StreamStart after_nothing(const StreamParts& parts) { return {.state = parts.editor.make_state()}; }

StreamStart after_output(const StreamParts& parts, std::optional<EditHistory> earlier) {
  StreamState stream;
  parts.ranks.run_collectively("progress", [&] {
    if (earlier) stream = {earlier->state(parts.editor.make_state()), earlier->changes(), {}};
  });
  share_stream(stream, parts.inputs.files.config, parts.ranks);
  parts.transaction.rollback();
  restore_changes(stream.changes, parts.model, parts.transaction);
  StreamStart start{.state = std::move(stream.editor)};
  if (keeps_history(parts)) start.history = std::move(earlier);
  return start;
}

StreamStart after_standing(const StreamParts& parts, EditHistory earlier) {
  StreamStart start{.state = earlier.state(parts.editor.make_state())};
  if (keeps_history(parts)) start.history = std::move(earlier);
  return start;
}

StreamStart after_batches(const StreamParts& parts, StreamStart start, std::optional<EditProgress> done) {
  std::vector<std::string> records;
  if (done)
    for (const BatchReport& batch : done->batches) records.push_back(to_record(batch));
  records = broadcast_texts(parts.ranks, records);
  if (records.empty()) {
    if (done && keeps_history(parts)) start.history = std::move(done->history);
    return start;
  }
  start = after_output(parts, done ? std::optional(std::move(done->history)) : std::nullopt);
  for (size_t i = 0; i < records.size(); ++i) {
    start.batches.push_back(from_record(records[i], parts.batches[i].size()));
    start.batches.back().requests = parts.batches[i];
  }
  return start;
}

StreamStart after_interrupted(const StreamParts& parts, StreamStart start, ProgressStore* store) {
  std::optional<EditProgress> progress;
  parts.ranks.run_collectively("progress", [&] {
    if (store != nullptr) progress = store->load(parts.batches, parts.inputs.requests);
  });
  const size_t n_before = start.batches.size();
  start = after_batches(parts, std::move(start), std::move(progress));
  start.n_interrupted = static_cast<int64_t>(start.batches.size() - n_before);
  if (start.n_interrupted > 0)
    log_line(
        cat("edit  ", start.n_interrupted, " of ", parts.batches.size(), " batches taken from an interrupted run"));
  return start;
}

}  // namespace lancet
