// Communication between the ranks of one job. A rank is a process with a whole model of its own (a replica, possibly on
// several devices), unless all ranks together hold one model (rank_links.h). Ranks share the work in whole pieces. Only
// the job determines the size of the pieces, so results do not depend on the number of ranks. All functions except
// rank(), size(), send() and receive() are collective: all ranks call the same ones in the same order. A rank's own
// work must never come between two halves of a collective. It goes through `run_collectively`, so that a rank that
// fails ends all ranks and none waits for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lancet/core/error.h"
#include "lancet/runtime/rank_message.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

class RankLinks;

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int64_t rank() const = 0;
  virtual int64_t size() const = 0;
  /// Whether this is rank 0, which writes files, talks to the user and solves.
  bool is_root() const { return rank() == 0; }
  /// Whether piece `i` of a list that all ranks know belongs to this rank.
  bool is_mine(int64_t i) const { return i % size() == rank(); }

  /// Runs `work` on every rank; afterwards every rank learns whether all succeeded. It may be nested in another
  /// `run_collectively`; the outer one then reports failures between its inner calls. A failure is reported once.
  /// Throws: what `work` threw, on the rank where it did; on the others CollectiveError with the first failed rank's
  /// number, host, stage and message.
  void run_collectively(const std::string& stage, const std::function<void()>& work);

  /// Runs `work` as run_collectively() does, for work that the job can do without: a NumericError on any rank ends it
  /// on all ranks, and the job continues. Returns the error's message on every rank; nullopt if all succeeded. Attempts
  /// cannot be nested. Throws: as run_collectively() for other errors.
  std::optional<std::string> attempt(const std::string& stage, const std::function<void()>& work);

  /// Sums the tensor over the ranks, in the order of the ranks, in place, on every rank: f32, f64 or int64, of equal
  /// shape everywhere, on the tensor's own device.
  virtual void sum(Tensor& tensor) = 0;

  /// Returns the bytes of each rank, by rank, on every rank.
  virtual std::vector<std::string> gather(const std::string& bytes) = 0;
  /// Returns root's bytes on every rank; the arguments of the others are ignored.
  virtual std::string broadcast(std::string bytes) = 0;
  /// Returns root's tensor of any type and shape, bitwise equal, on every rank's `device`. The others may pass an
  /// undefined tensor.
  virtual Tensor broadcast(Tensor tensor, at::Device device) = 0;
  virtual void barrier() = 0;

  /// Sends a message to one rank; messages between two ranks arrive in the order of sending. Not collective. May be
  /// called from any thread, one at a time for each other rank. Throws: CollectiveError when the other rank is gone.
  virtual void send(int64_t rank, const RankMessage& message);
  /// Waits for the next message. Its tensors are on the host.
  virtual RankMessage receive(int64_t rank);
  /// Returns the links to the ranks that hold layers of this rank's model; null: it has a whole model.
  virtual RankLinks* model_ranks() { return nullptr; }

 protected:
  friend class ModelRoot;
  /// Called before `run_collectively` runs work of `stage`. What it throws counts as thrown by the work.
  virtual void enter(const std::string& /*stage*/) {}
  /// Why a rank's work ended early, and the exit code of its process.
  struct Failure {
    std::string message;
    ExitCode code = ExitCode::kInternal;
    bool ends_job = true;  ///< false: it only ends an attempt
  };
  /// Another rank's failure that only ends an attempt.
  class AttemptEnded final : public NumericError {
   public:
    using NumericError::NumericError;
  };
  /// Tells all ranks whether this one failed: null if not. A rank that failed may be in another stage than the others.
  /// Throws: CollectiveError, or AttemptEnded, for the first other rank that failed; any collective does.
  virtual void agree(const std::string& stage, const Failure* failure) = 0;

 private:
  bool is_over_ = false;  // a failure was reported: nobody listens any more, or not before the attempt's end
  bool is_attempting_ = false;
};

/// A job of one process: every collective is trivial.
class SingleProcess : public Communicator {
 public:
  int64_t rank() const override { return 0; }
  int64_t size() const override { return 1; }
  void sum(Tensor&) override {}
  std::vector<std::string> gather(const std::string& bytes) override { return {bytes}; }
  std::string broadcast(std::string bytes) override { return bytes; }
  Tensor broadcast(Tensor tensor, at::Device device) override;
  void barrier() override {}

 protected:
  void agree(const std::string&, const Failure*) override {}
};

/// Returns the communicator for work that is never shared.
Communicator& alone();

// Helpers for small values that ranks exchange.

/// Collective. Return root's list on every rank.
std::vector<int64_t> broadcast_numbers(Communicator& communicator, const std::vector<int64_t>& numbers);
std::vector<std::string> broadcast_texts(Communicator& communicator, const std::vector<std::string>& texts);

/// Collective. Returns each rank's list, by rank, on every rank.
std::vector<std::vector<int64_t>> gather_numbers(Communicator& communicator, const std::vector<int64_t>& numbers);

/// Returns which of the pieces 0 ... count - 1 belong to this rank, ascending.
std::vector<size_t> own_pieces(const Communicator& communicator, size_t count);

}  // namespace lancet
