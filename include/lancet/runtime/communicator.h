// What the ranks of one job say to each other. A rank is a process with a whole model of its own (a replica, itself
// perhaps on several devices), unless all hold one together (rank_links.h); ranks share the work by whole pieces whose
// size the job alone fixes, so that results do not depend on their number.
// Every function but rank(), size(), send() and receive() is collective: all ranks call the same ones in the same
// order. Work of a rank's own never stands between two halves of a collective: it goes through `run_collectively`, so
// that a rank that fails ends all and nobody waits for it.
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
  /// Rank 0: the one that writes files, talks to the user and solves.
  bool is_root() const { return rank() == 0; }
  /// Whether piece `i` of a list that all ranks know is this rank's.
  bool is_mine(int64_t i) const { return i % size() == rank(); }

  /// Runs `work` on every rank, then hears from all whether it went well. May stand within another `run_collectively`,
  /// which then tells the others of what fails between its inner ones; a failure is told once. Throws: what `work`
  /// threw, on the rank where it did; CollectiveError with the first failed rank's number, host, stage and message on
  /// the others.
  void run_collectively(const std::string& stage, const std::function<void()>& work);

  /// Runs `work` as run_collectively() does, where the job can do without it: a NumericError of any rank ends it on all
  /// of them, and the job goes on. Returns the error's message, everywhere; nullopt when all went well. Not within
  /// another attempt. Throws: as run_collectively() for other errors.
  std::optional<std::string> attempt(const std::string& stage, const std::function<void()>& work);

  /// Sum over ranks, in the order of ranks, on every rank: f32, f64 or int64, of equal shape everywhere, on the
  /// tensor's own device. In place.
  virtual void sum(Tensor& tensor) = 0;

  /// What each rank gives, by rank, on every rank.
  virtual std::vector<std::string> gather(const std::string& bytes) = 0;
  /// Root's, on every rank; what the others give is not looked at.
  virtual std::string broadcast(std::string bytes) = 0;
  /// Root's tensor of any type and shape, bit by bit, on every rank's `device`; the others may give an undefined one.
  virtual Tensor broadcast(Tensor tensor, at::Device device) = 0;
  virtual void barrier() = 0;

  /// Messages between two ranks arrive in the order in which they were sent. Not collective. From any thread, one at a
  /// time for each other rank. Throws: CollectiveError when the other rank is gone.
  virtual void send(int64_t rank, const RankMessage& message);
  /// Waits for the next one. Its tensors lie on the host.
  virtual RankMessage receive(int64_t rank);
  /// The ranks that hold layers of this one's model; null: it has a whole one.
  virtual RankLinks* model_ranks() { return nullptr; }

 protected:
  friend class ModelRoot;
  /// `run_collectively` is about to run work of `stage`; what this throws counts as thrown by the work.
  virtual void enter(const std::string& /*stage*/) {}
  /// Why a rank's work ended early, and what its process will end with.
  struct Failure {
    std::string message;
    ExitCode code = ExitCode::kInternal;
    bool ends_job = true;  ///< false: it ends an attempt alone
  };
  /// What another rank's failure is where it ends an attempt alone.
  class AttemptEnded final : public NumericError {
   public:
    using NumericError::NumericError;
  };
  /// Tells all ranks how this one fared: null when well. A rank that failed may be in another stage than the others.
  /// Throws: CollectiveError, or AttemptEnded, for the first other rank that did not fare well; any collective does.
  virtual void agree(const std::string& stage, const Failure* failure) = 0;

 private:
  bool is_over_ = false;  // a failure has been told: nobody listens any more, or not before the attempt's end
  bool is_attempting_ = false;
};

/// A job of one process: every collective is done at once.
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

/// Returns the communicator of work that is never shared.
Communicator& alone();

// Small things that ranks tell each other, in the words of the code that needs them.

/// Collective: root's list, on every rank.
std::vector<int64_t> broadcast_numbers(Communicator& communicator, const std::vector<int64_t>& numbers);
std::vector<std::string> broadcast_texts(Communicator& communicator, const std::vector<std::string>& texts);

/// Collective: each rank's list, by rank, on every rank.
std::vector<std::vector<int64_t>> gather_numbers(Communicator& communicator, const std::vector<int64_t>& numbers);

/// Returns those of the pieces 0 ... count - 1 that are this rank's, ascending.
std::vector<size_t> own_pieces(const Communicator& communicator, size_t count);

}  // namespace lancet
