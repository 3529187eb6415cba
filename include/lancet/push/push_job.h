// `lancet push`: the edits of an output as an adapter in a server that runs: checked, loaded, asked, and taken back
// where it does not hold. docs/push.md.
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
  std::string name = {};                   ///< what requests name; empty: made of the output's name and its edits
  std::string instead_of = {};             ///< adapter that goes once this one answers; empty: the last push's
  std::filesystem::path model = {};        ///< what was edited; empty: where the journal says it lay
  std::filesystem::path adapter_dir = {};  ///< folder that the adapter is written in; empty: push_folder()
  std::filesystem::path server_path = {};  ///< what the server calls adapter_dir; empty: the same
  int64_t largest_rank = *AdapterSpec::kRank.fallback;
  int64_t most_asked = 50;  ///< prompts of each kind that are asked, of the latest edits
  std::vector<std::pair<std::string, double>> accept = {};  ///< one of kPushMetrics -> least share
};

/// What is measured, by free generation.
inline constexpr const char* kPushMetrics[] = {"efficacy", "paraphrase", "specificity"};

bool is_push_metric(std::string_view name);

/// Adds to job.accept. Throws: ConfigError for a metric that is none of kPushMetrics, or a share that is none.
void add_push_threshold(PushJob& job, const std::string& metric, double share);

/// A prompt, and what the server wrote after it.
struct AskedPrompt {
  std::string metric = {};   ///< one of kPushMetrics
  std::string request = {};  ///< id of the edit
  std::string prompt = {};
  std::string target = {};  ///< new one; empty where the answer shall stay as it was
  std::string before = {};
  std::string after = {};

  bool held_before() const;  ///< the target was said
  bool holds() const;        ///< the target is said, or the answer is the one before
};

/// A push, as it is noted beside the output.
enum class PushState {
  kBegun,  ///< something may be loaded
  kServing,
  kReplaced,  ///< a later one took its place
  kTakenBack
};
std::string push_state_name(PushState state);

struct PushRecord {
  std::string server = {};  ///< its address
  std::string kind = {};
  LoadedAdapter adapter = {};
  std::string first_name = {};        ///< name that it was tried under; adapter.name: no other
  std::filesystem::path folder = {};  ///< folder that it was written to
  int64_t rank = 0;
  PushState state = PushState::kBegun;
  std::string when = {};                       ///< time since which it is in that state
  std::vector<LoadedAdapter> before = {};      ///< what the server had
  std::optional<LoadedAdapter> replaced = {};  ///< what went for it
};

struct PushReport {
  std::string kind = {};
  ServerFacts server = {};
  PushRecord record = {};
  AdapterReport adapter = {};
  std::vector<AskedPrompt> asked = {};
  std::vector<std::string> notes = {};  ///< what could not be checked or done, a sentence each
  std::vector<std::string> unmet = {};  ///< thresholds that were missed: it was taken back
  std::string unnoted = {};             ///< why the journal of pushes does not say what came of it; empty: it does
  double seconds = 0;                   ///< seconds from the first question to the last answer
};

/// Share of the metric's prompts that held, before and after; nullopt: nothing was asked.
struct PushShares {
  std::optional<double> before = {}, after = {};
  int64_t count = 0;
};
PushShares push_shares(const std::vector<AskedPrompt>& asked, const std::string& metric);

/// "serves: demo-1a2b3c4d at http://localhost:8000 (vllm), efficacy 19 of 20", or that it was taken back.
std::string push_summary(const PushReport& report);

/// Whatever fails, the server is put back as it was, or the error says that it is not. A journal that cannot be written
/// at the end changes nothing of that: PushReport::unnoted, or the error, says it too.
/// Throws: ConfigError for what fits neither the output nor the server, before anything is loaded; ServerError;
/// Cancelled, where the server is as before.
PushReport run_push_job(const PushJob& job);

/// Takes back the last push that is not taken back: the adapter goes, what it replaced comes again.
/// `access.address.host` empty: the server that it says. Throws: ConfigError where there is none; ServerError.
PushRecord undo_push(const std::filesystem::path& output, ServerAccess access);

/// A noted push, and whether the server has it; nullopt: the server did not say.
struct ListedPush {
  PushRecord record = {};
  std::optional<bool> is_there = {};
};
/// The latest last. `access.address` is not read: each server is asked that a push is noted of.
std::vector<ListedPush> list_pushes(const std::filesystem::path& output, const ServerAccess& access);

/// "<output>.pushed", with the journal of pushes and the adapters.
std::filesystem::path push_folder(const std::filesystem::path& output);

std::string to_json(const PushReport& report, const PushJob& job);
std::string to_json(const PushRecord& record);
std::string to_json(const std::vector<ListedPush>& listed);

}  // namespace lancet
