// `lancet push`: loads the edits of an output as an adapter into a running server. It checks and loads the adapter,
// asks the server, and takes the adapter back if the edits do not hold. docs/push.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lancet/export/export_job.h"
#include "lancet/push/inference_server.h"

namespace lancet {

struct PushJob {
  std::filesystem::path output;  ///< output of lancet edit
  ServerAccess access = {};
  std::string server = "auto";             ///< one of server_kinds()
  std::string name = {};                   ///< name in requests; empty: made from the output's name and its edits
  std::string instead_of = {};             ///< adapter that is removed once this one answers; empty: the last push's
  std::filesystem::path model = {};        ///< the model that was edited; empty: where the journal says it was
  std::filesystem::path adapter_dir = {};  ///< folder to which the adapter is written; empty: push_folder()
  std::filesystem::path server_path = {};  ///< path of adapter_dir on the server; empty: the same
  int64_t largest_rank = *AdapterSpec::kRank.fallback;
  int64_t most_asked = 50;  ///< most prompts of each kind that are asked, from the latest edits
  std::vector<std::pair<std::string, double>> accept = {};  ///< thresholds: one of kPushMetrics -> smallest share
};

/// The metrics, which are measured by free generation.
inline constexpr const char* kPushMetrics[] = {"efficacy", "paraphrase", "specificity"};

bool is_push_metric(std::string_view name);

/// Adds a threshold to job.accept. Throws: ConfigError for a metric that is not in kPushMetrics, or a number that is
/// not a share.
void add_push_threshold(PushJob& job, const std::string& metric, double share);

/// A prompt, and what the server wrote after it.
struct AskedPrompt {
  std::string metric = {};   ///< one of kPushMetrics
  std::string request = {};  ///< id of the edit
  std::string prompt = {};
  std::string target = {};  ///< the new target; empty if the answer must not change
  std::string before = {};
  std::string after = {};

  bool held_before() const;  ///< whether the target was said before, or there is none
  bool holds() const;        ///< whether the target is said, or the answer has not changed
};

/// The state of a push in the journal of pushes beside the output.
enum class PushState {
  kBegun,  ///< the adapter may be loaded
  kServing,
  kReplaced,  ///< a later push replaced it
  kTakenBack
};
std::string push_state_name(PushState state);

struct PushRecord {
  std::string server = {};  ///< address of the server
  std::string kind = {};
  LoadedAdapter adapter = {};
  std::string first_name = {};        ///< name under which it was tested; adapter.name: the same name
  std::filesystem::path folder = {};  ///< folder to which the adapter was written
  int64_t rank = 0;
  PushState state = PushState::kBegun;
  std::string when = {};                       ///< time of the last change of state
  std::vector<LoadedAdapter> before = {};      ///< adapters that the server had before
  std::optional<LoadedAdapter> replaced = {};  ///< adapter that was removed for it
};

struct PushReport {
  std::string kind = {};
  ServerFacts server = {};
  PushRecord record = {};
  AdapterReport adapter = {};
  std::vector<AskedPrompt> asked = {};
  std::vector<std::string> notes = {};  ///< what could not be checked or done, one sentence each
  std::vector<std::string> unmet = {};  ///< thresholds that were missed; if there are any, the adapter was taken back
  std::string unnoted = {};             ///< why the journal of pushes lacks the outcome; empty: it has it
  double seconds = 0;                   ///< seconds from the first question to the last answer
};

/// Share of the metric's prompts that held, before and after; nullopt: nothing was asked.
struct PushShares {
  std::optional<double> before = {}, after = {};
  int64_t count = 0;
};
PushShares push_shares(const std::vector<AskedPrompt>& asked, const std::string& metric);

/// Returns "serves: demo-1a2b3c4d at http://localhost:8000 (vllm), efficacy 19 of 20", or that the adapter was taken
/// back.
std::string push_summary(const PushReport& report);

/// Pushes the edits. After any failure the server is restored, or the error says that it is not. A journal that cannot
/// be written at the end does not change this; PushReport::unnoted, or the error, reports it. Throws: ConfigError for a
/// mismatch with the output or the server, before anything is loaded; ServerError; Cancelled, with the server as
/// before.
PushReport run_push_job(const PushJob& job);

/// Undoes the last push that has not been taken back: unloads its adapter and reloads the one that it replaced. If
/// `access.address.host` is empty, the server is the one that the record names. Throws: ConfigError if there is no such
/// push; ServerError.
PushRecord undo_push(const std::filesystem::path& output, ServerAccess access);

/// A recorded push, and whether the server has its adapter; nullopt: the server did not say.
struct ListedPush {
  PushRecord record = {};
  std::optional<bool> is_there = {};
};
/// Returns the pushes, the latest last. It ignores `access.address` and asks each server of a recorded push.
std::vector<ListedPush> list_pushes(const std::filesystem::path& output, const ServerAccess& access);

/// Returns "<output>.pushed", the folder of the journal of pushes and the adapters.
std::filesystem::path push_folder(const std::filesystem::path& output);

std::string to_json(const PushReport& report, const PushJob& job);
std::string to_json(const PushRecord& record);
std::string to_json(const std::vector<ListedPush>& listed);

}  // namespace lancet
