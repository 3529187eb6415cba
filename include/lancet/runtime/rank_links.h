// How rank 0 sends requests to the other ranks and receives their answers, one request at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lancet/runtime/communicator.h"

namespace lancet {

/// Root's side of the links. Several threads may use it.
class RankLinks {
 public:
  /// The kind of an answer from a rank whose work failed. That rank then tells all ranks the reason in the next
  /// collective.
  static constexpr int64_t kFailed = -1;

  explicit RankLinks(Communicator& ranks);
  ~RankLinks();
  RankLinks(const RankLinks&) = delete;
  RankLinks& operator=(const RankLinks&) = delete;

  Communicator& ranks() const { return ranks_; }
  /// Returns the other ranks, of which there are ranks().size() - 1.
  std::vector<int64_t> others() const;

  struct Link;

  /// A conversation with one rank, in which no other thread can talk to it. Another thread may end it.
  class Talk {
   public:
    /// Waits until the rank is free. Throws: std::logic_error if this thread is already talking to it.
    Talk(RankLinks& links, int64_t rank);
    Talk(Talk&& other) noexcept
        : links_(other.links_), rank_(other.rank_), link_(std::exchange(other.link_, nullptr)) {}
    Talk& operator=(Talk&&) = delete;
    ~Talk();
    /// Sends a message that has an answer. Throws: CollectiveError when the rank has failed or is gone, as receive()
    /// does.
    void ask(const RankMessage& message);
    /// Sends a message without an answer.
    void tell(const RankMessage& message);
    RankMessage receive();
    /// Whether the rank is known to have failed or to be gone.
    bool is_over() const;
    RankMessage answer(const RankMessage& question) {
      ask(question);
      return receive();
    }

   private:
    template <typename Exchange>
    auto exchanged(Exchange exchange);

    RankLinks& links_;
    int64_t rank_;
    Link* link_;  ///< null: moved from
  };

  /// Sends `farewell` to all ranks that are still alive, after their last answers have arrived.
  void end(const RankMessage& farewell);
  /// Whether a rank has reported that its work failed.
  bool has_failed() const { return has_failed_; }

 private:
  Communicator& ranks_;
  std::vector<std::unique_ptr<Link>> links_;  ///< a link to each rank, by its number
  std::atomic<bool> has_failed_ = false;
};

/// The communicator of rank 0 if all ranks together hold one model: only rank 0 does the job's work, and the others
/// compute their layers.
class ModelRoot final : public SingleProcess {
 public:
  explicit ModelRoot(RankLinks& links) : links_(links) {}
  RankLinks* model_ranks() override { return &links_; }

 protected:
  void enter(const std::string& stage) override { links_.ranks().enter(stage); }

 private:
  RankLinks& links_;
};

}  // namespace lancet
