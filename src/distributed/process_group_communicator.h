// The ranks of a job over PyTorch's c10d: Gloo between hosts' memories (always there), and NCCL between GPUs if each
// rank's tensor is on its own GPU. What NCCL does not support goes through the host.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "device_groups.h"
#include "lancet/runtime/communicator.h"
#include "rank_observer.h"

namespace lancet {

struct GroupOptions {
  int rank = 0;
  int size = 1;
  std::string host;                        ///< this rank's host, for messages
  std::string address;                     ///< address of this rank's network interface, to which others connect
  std::string interface;                   ///< name of the interface, used instead of `address`; empty: unknown
  std::chrono::milliseconds join_timeout;  ///< time limit for connecting all ranks
  /// Time limit for one operation on GPUs, after the ranks have agreed that all are there.
  std::chrono::milliseconds device_timeout = std::chrono::minutes(30);
  RankObserver* observer = nullptr;  ///< must outlive the communicator; may be null
};

class ProcessGroupCommunicator final : public Communicator {
 public:
  /// Collective. Connects all ranks. `store`: all ranks reach it, and nothing else uses it. Throws: CollectiveError if
  /// a rank cannot be reached.
  ProcessGroupCommunicator(const c10::intrusive_ptr<c10d::Store>& store, GroupOptions options);
  ~ProcessGroupCommunicator() override;

  int64_t rank() const override { return options_.rank; }
  int64_t size() const override { return options_.size; }
  void sum(Tensor& tensor) override;
  std::vector<std::string> gather(const std::string& bytes) override;
  std::string broadcast(std::string bytes) override;
  Tensor broadcast(Tensor tensor, at::Device device) override;
  void barrier() override;
  void send(int64_t rank, const RankMessage& message) override;
  RankMessage receive(int64_t rank) override;

 protected:
  void enter(const std::string& stage) override;
  void agree(const std::string& stage, const Failure* failure) override;

 private:
  enum class Fate { kWell, kFailed, kGaveUp };
  /// Returns what each rank gives, by rank. A rank that failed, or gave up an attempt, sends its reason instead,
  /// whatever collective the others are in. Throws: CollectiveError or AttemptEnded for the first other rank that did
  /// so; CollectiveError if ranks are in different operations.
  std::vector<std::string> exchange(std::string_view operation, const std::string& bytes, Fate fate = Fate::kWell);
  std::vector<std::string> gather_unequal(const std::string& bytes, const std::vector<int64_t>& lengths);
  template <typename Collective>
  void run(Collective collective);

  GroupOptions options_;
  c10::intrusive_ptr<c10d::Backend> gloo_;
  DeviceGroups device_groups_;
};

}  // namespace lancet
