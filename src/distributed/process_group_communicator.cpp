#include "process_group_communicator.h"

#include <torch/types.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "backend_collectives.h"
#include "fault.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/runtime/devices.h"

namespace lancet {
namespace {

/// A rank may have to wait for hours while another one works, so the transport must not decide that it hangs.
constexpr std::chrono::milliseconds kUnlimited = std::chrono::hours(24 * 365);

/// Returns a number that distinguishes the operations that ranks begin together (FNV-1a).
int64_t fingerprint(std::string_view operation) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char byte : operation) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3ULL;
  return static_cast<int64_t>(hash);
}

std::string message_of(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  return torch_error != nullptr ? torch_error->what_without_backtrace() : error.what();
}

class Waiting {
 public:
  explicit Waiting(RankObserver* observer) : observer_(observer) {
    if (observer_ != nullptr) observer_->begin_wait();
  }
  ~Waiting() {
    if (observer_ != nullptr) observer_->end_wait();
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  RankObserver* observer_;
};

c10::intrusive_ptr<c10d::Backend> connect(const c10::intrusive_ptr<c10d::Store>& store, const GroupOptions& options) {
  std::signal(SIGPIPE, SIG_IGN);  // makes a write to a closed connection an error instead of the end of the process
  auto gloo = c10d::ProcessGroupGloo::Options::create();
  gloo->devices.push_back(options.interface.empty()
                              ? c10d::ProcessGroupGloo::createDeviceForHostname(options.address)
                              : c10d::ProcessGroupGloo::createDeviceForInterface(options.interface));
  gloo->timeout = options.join_timeout;
  try {
    return c10::make_intrusive<c10d::ProcessGroupGloo>(c10::make_intrusive<c10d::PrefixStore>("gloo", store),
                                                       options.rank, options.size, std::move(gloo));
  } catch (const std::exception& error) {
    const std::string known = message_of(error);
    const std::string reason = options.observer != nullptr ? options.observer->explain(known) : known;
    throw CollectiveError(cat("connecting the ranks of the job: ", reason));
  }
}

/// Returns what a rank says about its tensor before a collective begins.
std::string tensor_header(const Tensor& tensor, at::Device device) {
  const std::string identity = nccl_identity(device);
  if (!tensor.defined()) return identity + "\n";
  return cat(identity, "\n", static_cast<int>(tensor.scalar_type()), " ", shape_text(tensor.sizes()));
}

std::string identity_of(const std::string& header) { return header.substr(0, header.rfind('\n')); }
std::string description_of(const std::string& header) { return header.substr(header.rfind('\n') + 1); }

std::vector<std::string> identities_of(const std::vector<std::string>& headers) {
  std::vector<std::string> identities;
  for (const std::string& header : headers) identities.push_back(identity_of(header));
  return identities;
}

/// Returns a tensor of the described shape and type, without values.
Tensor empty_like_described(const std::string& description, at::Device device) {
  std::istringstream in(description);
  int type = 0;
  char mark = 0;
  in >> type >> mark;
  std::vector<int64_t> shape;
  for (int64_t dim = 0; in >> dim; in >> mark) shape.push_back(dim);
  return torch::empty(shape, torch::TensorOptions(static_cast<at::ScalarType>(type)).device(device));
}

/// The tag of messages between two ranks.
constexpr int kMessageTag = 1;

void send_bytes(c10d::Backend& group, int64_t rank, Tensor bytes) {
  std::vector<Tensor> parts{std::move(bytes)};
  group.send(parts, static_cast<int>(rank), kMessageTag)->wait(kUnlimited);
}

void receive_bytes(c10d::Backend& group, int64_t rank, Tensor bytes) {
  std::vector<Tensor> parts{std::move(bytes)};
  group.recv(parts, static_cast<int>(rank), kMessageTag)->wait(kUnlimited);
}

Tensor bytes_of(std::string& text) {
  return torch::from_blob(text.data(), {static_cast<int64_t>(text.size())}, torch::kByte);
}

Tensor bytes_of(const Tensor& tensor) { return tensor.view(-1).view(torch::kByte); }

bool has_bytes(const Tensor& tensor) { return tensor.defined() && tensor.numel() > 0; }

}  // namespace

ProcessGroupCommunicator::ProcessGroupCommunicator(const c10::intrusive_ptr<c10d::Store>& store, GroupOptions options)
    : options_(std::move(options)),
      gloo_(connect(store, options_)),
      device_groups_(store, options_.rank, options_.size) {
  barrier();  // if a rank left earlier, the others could not finish connecting
}

ProcessGroupCommunicator::~ProcessGroupCommunicator() = default;

template <typename Collective>
void ProcessGroupCommunicator::run(Collective collective) {
  const torch::NoGradGuard no_grad;
  std::string failure;
  {
    const Waiting waiting(options_.observer);
    try {
      return collective();
    } catch (const std::exception& error) {
      failure = message_of(error);
    }
    if (options_.observer != nullptr) failure = options_.observer->explain(failure);
  }
  throw CollectiveError(failure);
}

std::vector<std::string> ProcessGroupCommunicator::exchange(std::string_view operation, const std::string& bytes,
                                                            Fate fate) {
  const auto has_failed = static_cast<int64_t>(fate);
  const Tensor own =
      torch::tensor({fingerprint(operation), static_cast<int64_t>(bytes.size()), has_failed}, torch::kLong);
  Tensor heads_R3;
  run([&] { heads_R3 = gather_equal(*gloo_, own, kUnlimited); });
  const auto head = [&](int64_t rank, int64_t i) { return heads_R3[rank][i].item<int64_t>(); };
  int64_t first_failed = -1;
  for (int64_t rank = size() - 1; rank >= 0; --rank)
    if (head(rank, 2) != 0 && rank != options_.rank) first_failed = rank;
  const bool tells_failure = has_failed != 0 || first_failed >= 0;  // whatever collective the other ranks are in
  for (int64_t rank = 0; rank < size() && !tells_failure; ++rank)
    if (head(rank, 0) != own[0].item<int64_t>())
      throw CollectiveError(cat("the ranks are out of step: rank ", rank, " is not at '", operation, "', where rank ",
                                options_.rank, " is: a defect in lancet, or different versions of it"));
  std::vector<int64_t> lengths;
  for (int64_t rank = 0; rank < size(); ++rank)
    lengths.push_back(tells_failure && head(rank, 2) == 0 ? 0 : head(rank, 1));
  std::vector<std::string> parts = gather_unequal(bytes, lengths);
  if (first_failed < 0) return parts;
  const std::string told = cat("rank ", first_failed, " on ", parts[static_cast<size_t>(first_failed)]);
  if (head(first_failed, 2) == static_cast<int64_t>(Fate::kGaveUp)) throw AttemptEnded(told);
  throw CollectiveError(told);
}

std::vector<std::string> ProcessGroupCommunicator::gather_unequal(const std::string& bytes,
                                                                  const std::vector<int64_t>& lengths) {
  const int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  std::vector<std::string> parts(lengths.size());
  if (longest == 0) return parts;
  const Tensor padded = torch::zeros({longest}, torch::kByte);
  std::memcpy(padded.data_ptr(), bytes.data(), static_cast<size_t>(lengths[static_cast<size_t>(rank())]));
  Tensor all_RN;
  run([&] { all_RN = gather_equal(*gloo_, padded, kUnlimited); });
  for (size_t r = 0; r < parts.size(); ++r)
    parts[r].assign(static_cast<const char*>(all_RN[static_cast<int64_t>(r)].data_ptr()),
                    static_cast<size_t>(lengths[r]));
  return parts;
}

void ProcessGroupCommunicator::enter(const std::string& stage) {
  if (options_.observer != nullptr) options_.observer->begin_stage(stage);
  inject_fault(rank(), stage);
}

void ProcessGroupCommunicator::agree(const std::string& stage, const Failure* failure) {
  if (failure == nullptr) {
    exchange("agree on " + stage, "");
    return;
  }
  if (failure->ends_job && options_.observer != nullptr)
    options_.observer->report_failure(failure->code, failure->message);
  exchange("tell a failure", cat(options_.host, ", stage '", stage, "': failed: ", failure->message),
           failure->ends_job ? Fate::kFailed : Fate::kGaveUp);
}

std::vector<std::string> ProcessGroupCommunicator::gather(const std::string& bytes) {
  return exchange("gather", bytes);
}

void ProcessGroupCommunicator::barrier() { exchange("barrier", ""); }

std::string ProcessGroupCommunicator::broadcast(std::string bytes) {
  const std::vector<std::string> lengths = exchange("broadcast", is_root() ? std::to_string(bytes.size()) : "");
  bytes.resize(std::stoull(lengths[0]));
  Tensor view = torch::from_blob(bytes.data(), {static_cast<int64_t>(bytes.size())}, torch::kByte);
  run([&] { broadcast_bytes(*gloo_, view, kUnlimited); });
  return bytes;
}

void ProcessGroupCommunicator::sum(Tensor& tensor) {
  const std::vector<std::string> headers = exchange("sum", tensor_header(tensor, tensor.device()));
  const std::string own = description_of(headers[static_cast<size_t>(rank())]);
  for (int64_t r = 0; r < size(); ++r)
    if (description_of(headers[static_cast<size_t>(r)]) != own)
      throw CollectiveError(cat("sum over ranks: rank ", r, " gives a tensor (type, shape) ",
                                description_of(headers[static_cast<size_t>(r)]), ", rank ", rank(), " ", own));
  const at::ScalarType type = tensor.scalar_type();
  if (type != at::kFloat && type != at::kDouble && type != at::kLong)
    throw std::logic_error(cat("sum over ranks: ", toString(type), ": expected f32, f64 or int64"));
  if (c10d::Backend* group = device_groups_.group_of(identities_of(headers), options_.device_timeout))
    return run([&] { sum_in_rank_order(*group, tensor, options_.device_timeout); });
  Tensor on_host = tensor.to(Placement::host());
  run([&] { sum_in_rank_order(*gloo_, on_host, kUnlimited); });
  if (on_host.device() != tensor.device()) tensor.copy_(on_host);
}

void ProcessGroupCommunicator::send(int64_t rank, const RankMessage& message) {
  std::string head = head_of(message);
  run([&] {
    send_bytes(*gloo_, rank, torch::tensor({static_cast<int64_t>(head.size())}, torch::kLong));
    send_bytes(*gloo_, rank, bytes_of(head));
    for (const Tensor& tensor : message.tensors)
      if (has_bytes(tensor)) send_bytes(*gloo_, rank, bytes_of(tensor.detach().to(Placement::host()).contiguous()));
  });
}

RankMessage ProcessGroupCommunicator::receive(int64_t rank) {
  std::string head;
  run([&] {
    const Tensor length = torch::empty({1}, torch::kLong);
    receive_bytes(*gloo_, rank, length);
    head.resize(static_cast<size_t>(length.item<int64_t>()));
    receive_bytes(*gloo_, rank, bytes_of(head));
  });
  RankMessage message = parse_head(head);
  run([&] {
    for (const Tensor& tensor : message.tensors)
      if (has_bytes(tensor)) receive_bytes(*gloo_, rank, bytes_of(tensor));
  });
  return message;
}

Tensor ProcessGroupCommunicator::broadcast(Tensor tensor, at::Device device) {
  const std::vector<std::string> headers =
      exchange("broadcast a tensor", tensor_header(is_root() ? tensor : Tensor(), device));
  const std::string described = description_of(headers[0]);
  if (described.empty()) throw std::logic_error("broadcast: rank 0 gives no tensor");
  c10d::Backend* group = device_groups_.group_of(identities_of(headers), options_.device_timeout);
  const at::Device route = group != nullptr ? device : Placement::host();
  Tensor sent = is_root() ? tensor.detach().to(route).contiguous() : empty_like_described(described, route);
  Tensor bytes = sent.view(-1).view(torch::kByte);
  run([&] {
    broadcast_bytes(group != nullptr ? *group : *gloo_, bytes, group != nullptr ? options_.device_timeout : kUnlimited);
  });
  return sent.to(device);
}

}  // namespace lancet
