// What rank 0 and a rank with some of its model's layers say to each other, and how a sequence travels.
#pragma once

#include "lancet/models/layer_range.h"
#include "lancet/models/model_config.h"
#include "lancet/models/sequence_info.h"
#include "lancet/models/weight_table.h"
#include "lancet/runtime/rank_message.h"

namespace lancet {

struct PassInputs;

/// What root says. All but kRelease and kEnd have an answer.
enum class LayerRequest : int64_t {
  kDevices,
  kLoad,
  kHold,
  kRelease,   ///< numbers that are not asked for any more, of runs and of what is held
  kRun,       ///< answered by kSite for each site that is touched, last by kDone
  kBackward,  ///< likewise, for sites that a gradient goes through, in the reverse order
  kGoOn,      ///< the answer to kSite
  kWeight,
  kSetWeight,
  kIsFinite,
  kEnd
};

enum class LayerAnswer : int64_t { kDone, kSite };

constexpr int64_t kind_of(LayerRequest request) { return static_cast<int64_t>(request); }
constexpr int64_t kind_of(LayerAnswer answer) { return static_cast<int64_t>(answer); }

/// The number of what is not kept.
constexpr int64_t kNoNumber = -1;

/// A sequence with all that it points to.
struct OwnSequence {
  SequenceInfo info;
  RaggedLayout ragged;
  KeyValues prefix;
  LayerRange layers;
  std::shared_ptr<const PassInputs> prepared;  ///< null: each pass makes its own
};

enum class OutputUse { kLeftOut, kTaken };

/// Adds to a message what `layers` need of a sequence.
void add_sequence(const SequenceInfo& sequence, LayerRange layers, OutputUse outputs, RankMessage& message);
/// Reads it, with the prefix on the layers' devices.
std::unique_ptr<OwnSequence> read_sequence(MessageReader& message, const Placement& placement);

/// Adds what a pass through `layers` recorded.
void add_recorded(const KeyValues& recorded, LayerRange layers, RankMessage& message);
/// Records it: as those layers would have, on `device`.
void read_recorded(MessageReader& message, LayerRange layers, at::Device device, KeyValues& record);

/// Returns a hash of all numbers that the files have of layers that `rank` has in `placement`.
std::string hash_of_layers(const Checkpoint& checkpoint, const ModelConfig& config, const Placement& placement,
                           int64_t rank);

}  // namespace lancet
