#include "thread_ranks.h"

#include <torch/types.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/runtime/host_workers.h"

namespace lancet::testing {
namespace {

constexpr std::chrono::seconds kLongestWait{120};

/// Place where the ranks meet for each collective.
class Meeting {
 public:
  explicit Meeting(int64_t size) : offers_(static_cast<size_t>(size)) {}

  int64_t size() const { return static_cast<int64_t>(offers_.size()); }

  /// Waits for all. Every rank names the same thing.
  void arrive(const std::string& what) {
    std::unique_lock lock(mutex_);
    if (!left_.empty()) throw CollectiveError(left_);
    if (arrived_ == 0) what_ = what;
    if (what_ != what) throw std::logic_error(cat("ranks at different collectives: ", what_, " and ", what));
    if (++arrived_ == offers_.size()) {
      arrived_ = 0;
      ++meetings_;
      all_here_.notify_all();
      return;
    }
    const int64_t now = meetings_;
    const bool ended = all_here_.wait_for(lock, kLongestWait, [&] { return meetings_ != now || !left_.empty(); });
    if (!ended) throw std::logic_error(cat("waited too long for all ranks: ", what));
    if (meetings_ == now) throw CollectiveError(left_);
  }

  /// What each rank offers; valid until the next arrive().
  std::vector<const void*> exchange(int64_t rank, const std::string& what, const void* offer) {
    {
      const std::lock_guard lock(mutex_);
      offers_[static_cast<size_t>(rank)] = offer;
    }
    arrive(what);
    const std::lock_guard lock(mutex_);
    return offers_;
  }

  /// The rank takes no part any more; nobody waits for it in vain.
  void leave(int64_t rank) {
    const std::lock_guard lock(mutex_);
    if (left_.empty()) left_ = cat("rank ", rank, " left without a word");
    all_here_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_here_;
  std::vector<const void*> offers_;
  std::string what_;
  std::string left_;
  size_t arrived_ = 0;
  int64_t meetings_ = 0;
};

class ThreadRank final : public Communicator {
 public:
  ThreadRank(Meeting& meeting, int64_t rank, const Fault& fault) : meeting_(meeting), rank_(rank), fault_(fault) {}

  int64_t rank() const override { return rank_; }
  int64_t size() const override { return meeting_.size(); }

  void sum(Tensor& tensor) override {
    Tensor total;
    for (const Tensor* other : exchange<Tensor>("sum", tensor)) {
      const Tensor here = other->to(tensor.device());
      total = total.defined() ? total + here : here.clone();
    }
    meeting_.arrive("sum is read");
    tensor.copy_(total);
  }

  std::vector<std::string> gather(const std::string& bytes) override {
    std::vector<std::string> all;
    for (const std::string* other : exchange<std::string>("gather", bytes)) all.push_back(*other);
    meeting_.arrive("gather is read");
    return all;
  }

  std::string broadcast(std::string bytes) override {
    std::string received = *exchange<std::string>("broadcast of bytes", bytes).front();
    meeting_.arrive("broadcast is read");
    return received;
  }

  Tensor broadcast(Tensor tensor, at::Device device) override {
    const Tensor* given = exchange<Tensor>("broadcast of a tensor", tensor).front();
    Tensor received = given->to(device, given->scalar_type(), /*non_blocking=*/false, /*copy=*/true);
    meeting_.arrive("broadcast is read");
    return received;
  }

  void barrier() override { meeting_.arrive("barrier"); }

 protected:
  void enter(const std::string& stage) override {
    if (fault_.rank == rank_ && fault_.stage == stage) throw std::runtime_error(kFaultMessage);
  }

  void agree(const std::string& stage, const Failure* failure) override {
    const Fate own{stage, failure != nullptr ? failure->message : "", failure == nullptr || failure->ends_job};
    std::vector<Fate> all;
    for (const Fate* other : exchange<Fate>("agree", own)) all.push_back(*other);
    meeting_.arrive("agree is read");
    for (int64_t rank = 0; rank < size(); ++rank) {
      const Fate& its = all[static_cast<size_t>(rank)];
      if (rank == rank_ || its.failure.empty()) continue;
      const std::string told = cat("rank ", rank, ": ", its.stage, ": ", its.failure);
      if (!its.ends_job) throw AttemptEnded(told);
      throw CollectiveError(told);
    }
    if (failure != nullptr) return;
    for (const Fate& its : all)
      if (its.stage != stage) throw std::logic_error(cat("ranks in different stages: ", stage, " and ", its.stage));
  }

 private:
  struct Fate {
    std::string stage;
    std::string failure;  ///< empty: none
    bool ends_job = true;
  };

  template <typename Offer>
  std::vector<const Offer*> exchange(const std::string& what, const Offer& own) {
    std::vector<const Offer*> all;
    for (const void* offer : meeting_.exchange(rank_, what, &own)) all.push_back(static_cast<const Offer*>(offer));
    return all;
  }

  Meeting& meeting_;
  int64_t rank_;
  Fault fault_;
};

}  // namespace

RankErrors try_ranks(int64_t size, const std::function<void(Communicator&)>& work, const Fault& fault) {
  Meeting meeting(size);
  RankErrors errors(static_cast<size_t>(size));
  const SameThreads same_threads;
  std::vector<std::jthread> threads;
  for (int64_t rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      same_threads.set();
      ThreadRank communicator(meeting, rank, fault);
      try {
        work(communicator);
      } catch (...) {
        errors[static_cast<size_t>(rank)] = std::current_exception();
      }
      meeting.leave(rank);
    });
  threads.clear();  // waits
  return errors;
}

void run_ranks(int64_t size, const std::function<void(Communicator&)>& work) {
  for (const std::exception_ptr& error : try_ranks(size, work))
    if (error) std::rethrow_exception(error);
}

std::string message_of(const std::exception_ptr& error) {
  if (!error) return {};
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return known.what();
  }
}

}  // namespace lancet::testing
