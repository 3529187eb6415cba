// Sessions on one tiny model, and what they tell.
#pragma once

#include <set>
#include <thread>

#include "lancet/session/session.h"
#include "stream_jobs.h"

namespace lancet::testing {

inline constexpr const char* kAlphaEdit =
    "{method: alphaedit, layers: [0, 1], null_space_below: 1, ridge: 1, values: {steps: 3, lr: 0.1}}";
inline constexpr const char* kUltraEdit = "{method: ultraedit, modules: {down: [0, 1]}, lr: 1e-3, batch: 2}";
inline constexpr const char* kPruned =
    "{method: memit, layers: [0, 1], covariance_weight: 20, values: {steps: 3, lr: 0.1}, prune: {log_base: 1.2}}";
inline constexpr const char* kRect =
    "{method: memit, layers: [0, 1], covariance_weight: 20, values: {steps: 3, lr: 0.1}, rect: {keep: 0.3}}";

/// Keeps what it is told. As the stage `cancel_in` begins, another thread cancels the work.
class Listener final : public Reporter {
 public:
  explicit Listener(std::string cancel_in = "") : cancel_in_(std::move(cancel_in)) {}
  /// Sets the stage to cancel at, while nobody reports.
  void cancel_at(std::string stage) {
    cancel_in_ = std::move(stage);
    is_done_ = false;
  }

  std::vector<std::string> stages() const { return stages_; }

 protected:
  void on_log(LogLevel, std::string_view) override {}
  void on_progress(const StageProgress& progress) override {
    if (stages_.empty() || stages_.back() != progress.stage) stages_.push_back(progress.stage);
    if (progress.stage != cancel_in_ || progress.is_finished || is_done_) return;
    is_done_ = true;
    std::jthread([this] { cancel(); }).join();
  }

 private:
  std::string cancel_in_;
  bool is_done_ = false;
  std::vector<std::string> stages_;
};

class Sessions : public StreamJobs {
 protected:
  CompletedJob completed(const std::string& editor, const std::string& more = "") const {
    const std::string text =
        cat("{model: ", tiny_.folder.path().string(), ", editor: ", editor,
            ", statistics: {corpus: corpus.txt, tokens: 3000, cache: cache, ridge: 1e-3}, evaluate: [efficacy], ",
            "run: {dtype: f64, seed: 3}", more, "}");
    return complete_job(parse_config(text, "test"), {folder_.path(), "test"}, {}, EditorChoice::kNamed);
  }

  /// Requests [begin, end) of the jobs'.
  static std::vector<EditRequest> some(size_t begin, size_t end) {
    const std::vector<EditRequest> all = some_requests(8);
    return {all.begin() + static_cast<ptrdiff_t>(begin), all.begin() + static_cast<ptrdiff_t>(end)};
  }

  /// The weights as they are, by what the model would be saved as.
  std::string saved(Session& session) {
    const std::string name = cat("saved-", ++n_saved_);
    session.save(folder_ / name);
    return bytes(fs::path(name) / "model.safetensors");
  }

  int n_saved_ = 0;
  Listener listener_;
};

}  // namespace lancet::testing
