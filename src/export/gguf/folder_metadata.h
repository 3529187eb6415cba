// What a model folder says, in the form in which GGUF metadata is made of it.
#pragma once

#include <string>
#include <vector>

#include "lancet/gguf/gguf_layout.h"
#include "lancet/gguf/gguf_tokenizer.h"
#include "lancet/models/model_files.h"

namespace lancet {

/// Returns the layout that the model gets as a GGUF file. Throws: CheckpointError for a model type that none has.
GgufLayout layout_of(const ModelFiles& files);

/// Throws: CheckpointError for a rotary embedding that metadata cannot say.
GgufRope rope_of(const ModelFiles& files);

/// Throws: CheckpointError for a folder without tokenizer.json, and for special tokens around a text that metadata
/// cannot say.
FolderTokenizer tokenizer_of(const ModelFiles& files);

}  // namespace lancet
