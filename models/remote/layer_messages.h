// Messages between rank 0 and a rank with some of its model's layers, and the form in which a sequence is sent.
#pragma once

#include "lancet/models/layer_range.h"
#include "lancet/models/model_config.h"
#include "lancet/models/sequence_info.h"
#include "lancet/models/weight_table.h"
#include "lancet/runtime/rank_message.h"

namespace lancet {

struct PassInputs;

/// What root asks for. All requests except kRelease and kEnd are answered.
enum class LayerRequest : int64_t {
  kDevices,
  kLoad,
  kHold,
  kRelease,   ///< the given runs and held sequences are no longer needed
  kRun,       ///< answered by kSite for each site that has a hook, and by kDone at the end
  kBackward,  ///< as kRun, for sites through which a gradient flows, in the reverse order
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

/// A sequence with everything that it points to.
struct OwnSequence {
  SequenceInfo info;
  RaggedLayout ragged;
  KeyValues prefix;
  LayerRange layers;
  std::shared_ptr<const PassInputs> prepared;  ///< null: each pass makes its own
};

enum class OutputUse { kLeftOut, kTaken };

/// Adds the parts of a sequence that `layers` need to a message.
void add_sequence(const SequenceInfo& sequence, LayerRange layers, OutputUse outputs, RankMessage& message);
/// Reads the sequence, with the prefix on the layers' devices.
std::unique_ptr<OwnSequence> read_sequence(MessageReader& message, const Placement& placement);

/// Adds what a pass through `layers` recorded.
void add_recorded(const KeyValues& recorded, LayerRange layers, RankMessage& message);
/// Reads what was recorded into `recorded`, as if those layers had recorded it, on `device`.
void read_recorded(MessageReader& message, LayerRange layers, at::Device device, KeyValues& record);

/// Returns a hash of all numbers in the files for the layers that `rank` has in `placement`.
std::string hash_of_layers(const Checkpoint& checkpoint, const ModelConfig& config, const Placement& placement,
                           int64_t rank);

}  // namespace lancet
