#include "rank_board.h"

#include <c10/util/Logging.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "host_names.h"
#include "lancet/core/error.h"
#include "lancet/core/listening_socket.h"
#include "lancet/core/strings.h"
#include "sealed_store.h"

namespace lancet {
namespace {

using Json = nlohmann::json;

constexpr std::chrono::milliseconds kLastToLeave{5000}, kLastToLeaveFailed{1500};
constexpr std::chrono::milliseconds kLeavingPoll{25};

std::string key(const char* what, int64_t rank) { return cat(what, "/", rank); }

/// Messages may contain any bytes.
std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// c10d also logs the errors that it throws, with addresses of its own code. lancet's errors report them.
void silence_torch() {
  constexpr int kFatal = 3;
  if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) FLAGS_caffe2_log_level = kFatal;
}

enum class StoreRole { kServer, kClient };

/// By default c10d listens on every interface.
c10::intrusive_ptr<c10d::TCPStore> open_tcp_store(const std::string& address, int64_t port, StoreRole role,
                                                  std::chrono::milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.isServer = role == StoreRole::kServer;
  options.waitWorkers = false;
  options.timeout = timeout;
  options.port = static_cast<std::uint16_t>(port);
  if (options.isServer && is_loopback(address)) {
    ListeningSocket socket(address, port);
    options.port = static_cast<std::uint16_t>(socket.port());
    options.masterListenFd = socket.release();
  }
  return c10::make_intrusive<c10d::TCPStore>(address, options);
}

RankBeat parse_beat(const std::string& text) {
  const Json json = Json::parse(text);
  return {json.at(0), json.at(1), json.at(2), json.at(3)};
}

}  // namespace

std::string to_text(const RankFailure& failure) {
  const std::string stage = failure.stage.empty() ? "before the first stage" : cat("stage '", failure.stage, "'");
  return cat("rank ", failure.rank, " on ", failure.host, ", ", stage, ": ", failure.what);
}

bool RankBoard::claim(int64_t rank, const RankPresence& presence) {
  if (store_->add(key("claims", rank), 1) != 1) return false;
  beat(rank, {});
  store_->set(key("presence", rank), dump({presence.host, presence.address}));
  return true;
}

std::optional<RankPresence> RankBoard::presence(int64_t rank) {
  if (!store_->check({key("presence", rank)})) return std::nullopt;
  const Json json = Json::parse(store_->get_to_str(key("presence", rank)));
  return RankPresence{json.at(0), json.at(1)};
}

void RankBoard::beat(int64_t rank, const RankBeat& beat) {
  store_->set(key("beat", rank), dump({beat.tick, beat.progress, beat.is_waiting, beat.stage}));
}

RankBeat RankBoard::last_beat(int64_t rank) { return parse_beat(store_->get_to_str(key("beat", rank))); }

std::vector<RankBeat> RankBoard::last_beats(int64_t size) {
  std::vector<std::string> keys;
  for (int64_t rank = 0; rank < size; ++rank) keys.push_back(key("beat", rank));
  std::vector<RankBeat> beats;
  for (const std::vector<uint8_t>& bytes : store_->multiGet(keys))
    beats.push_back(parse_beat(std::string(bytes.begin(), bytes.end())));
  return beats;
}

int failure_code(int64_t code) {
  return static_cast<int>(code >= 1 && code <= 255 ? code : static_cast<int64_t>(ExitCode::kCollective));
}

void RankBoard::fail(const RankFailure& failure) {
  const std::string text =
      dump({failure.rank, failure.host, failure.stage, failure.what, failure_code(failure.exit_code)});
  try {
    store_->compareSet("failure", "", text);
  } catch (const ForeignValue&) {
    store_->set("failure", text);
  }
}

std::optional<RankFailure> RankBoard::failure() {
  if (!store_->check({"failure"})) return std::nullopt;
  try {
    const Json json = Json::parse(store_->get_to_str("failure"));
    return RankFailure{json.at(0), json.at(1), json.at(2), json.at(3), failure_code(json.at(4).get<int64_t>())};
  } catch (const ForeignValue&) {
    return std::nullopt;
  }
}

void RankBoard::wait_until_left(int64_t n, JobEnd end) {
  const auto last = std::chrono::steady_clock::now() + (end == JobEnd::kFailed ? kLastToLeaveFailed : kLastToLeave);
  while (store_->add("left", 0) < n && std::chrono::steady_clock::now() < last)
    std::this_thread::sleep_for(kLeavingPoll);
}

c10::intrusive_ptr<c10d::Store> open_store(const LaunchInfo& launch, std::chrono::milliseconds timeout) {
  silence_torch();
  const std::string place = cat(launch.address, ":", launch.port);
  const bool serves = launch.rank == 0 && launch.store_host == StoreHost::kRankZero;
  try {
    return open_tcp_store(launch.address, launch.port, serves ? StoreRole::kServer : StoreRole::kClient, timeout);
  } catch (const std::exception& error) {
    if (serves)
      throw CollectiveError(cat("rank 0 cannot serve the ranks' store at ", place,
                                ": is the port in use, is that this ", "host? Choose another MASTER_PORT. ",
                                excerpt(error.what(), 200)));
    const char* host = launch.store_host == StoreHost::kAgent ? "the launcher" : "rank 0";
    throw CollectiveError(cat(
        "rank ", launch.rank, " does not reach the ranks' store at ", place, " within ", timeout.count() / 1000,
        " s: is ", host, " running there, and does the network let its port through? ", excerpt(error.what(), 200)));
  }
}

ServedStore serve_store(const std::string& address, int64_t port) {
  silence_torch();
  try {
    const auto store = open_tcp_store(address, port, StoreRole::kServer, c10d::Store::kDefaultTimeout);
    return {store, store->getPort()};
  } catch (const std::exception& error) {
    throw CollectiveError(cat("cannot serve the ranks' store at ", address, ":", port,
                              ": is the port in use, is that this host? ", excerpt(error.what(), 200)));
  }
}

c10::intrusive_ptr<c10d::Store> attempt_store(const c10::intrusive_ptr<c10d::Store>& store, const std::string& attempt,
                                              const std::string& secret) {
  const c10::intrusive_ptr<c10d::Store> part = c10::make_intrusive<c10d::PrefixStore>("lancet/" + attempt, store);
  if (secret.empty()) return part;
  return c10::make_intrusive<SealedStore>(part, tag_key(secret));
}

}  // namespace lancet
