// How rank 0 talks to ranks that work at its word: it asks, they answer, a question at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lancet/runtime/communicator.h"

namespace lancet {

/// Root's side. Used by several threads.
class RankLinks {
 public:
  /// What an answer is of a rank whose work failed; the rank then tells all why, by the next collective.
  static constexpr int64_t kFailed = -1;

  explicit RankLinks(Communicator& ranks);
  ~RankLinks();
  RankLinks(const RankLinks&) = delete;
  RankLinks& operator=(const RankLinks&) = delete;

  Communicator& ranks() const { return ranks_; }
  /// The other ranks, whose number is ranks().size() - 1.
  std::vector<int64_t> others() const;

  struct Link;

  /// A conversation with one rank, which nobody else talks to meanwhile. Another thread may end it.
  class Talk {
   public:
    /// Waits until the rank is free. Throws: std::logic_error where this thread talks to it already.
    Talk(RankLinks& links, int64_t rank);
    Talk(Talk&& other) noexcept
        : links_(other.links_), rank_(other.rank_), link_(std::exchange(other.link_, nullptr)) {}
    Talk& operator=(Talk&&) = delete;
    ~Talk();
    /// Says what has an answer. Throws: CollectiveError when the rank has failed or is gone, as receive() does.
    void ask(const RankMessage& message);
    /// Says what has none.
    void tell(const RankMessage& message);
    RankMessage receive();
    /// Whether the rank has failed or is gone, as far as is known.
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

  /// Says `farewell` to all that are still there, after their last answers have come.
  void end(const RankMessage& farewell);
  /// Whether a rank has said that its work failed.
  bool has_failed() const { return has_failed_; }

 private:
  Communicator& ranks_;
  std::vector<std::unique_ptr<Link>> links_;  ///< a link to each rank, by its number
  std::atomic<bool> has_failed_ = false;
};

/// Rank 0 where all ranks hold one model: the job's work is its alone, and the others compute the layers that they
/// have.
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
