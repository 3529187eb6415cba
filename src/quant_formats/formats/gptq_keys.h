// Settings that the programs of both GPTQ and AWQ write.
#pragma once

#include <string_view>

namespace lancet {

/// They say how the numbers were found, by which program, and how programs compute with them.
inline constexpr std::string_view kHarmlessOfGptq[] = {"act_group_aware",
                                                       "adapter",
                                                       "backend",
                                                       "batch_size",
                                                       "block_name_to_quantize",
                                                       "cache_block_outputs",
                                                       "damp_auto_increment",
                                                       "damp_percent",
                                                       "dataset",
                                                       "disable_exllama",
                                                       "do_fuse",
                                                       "exllama_config",
                                                       "fuse_max_seq_len",
                                                       "hyb_act",
                                                       "lm_head",
                                                       "max_input_length",
                                                       "meta",
                                                       "model_file_base_name",
                                                       "model_name_or_path",
                                                       "model_seqlen",
                                                       "module_name_preceding_first_block",
                                                       "modules_in_block_to_quantize",
                                                       "modules_to_fuse",
                                                       "mse",
                                                       "offload_to_disk",
                                                       "offload_to_disk_path",
                                                       "pack_impl",
                                                       "pad_token_id",
                                                       "quantizer",
                                                       "static_groups",
                                                       "tokenizer",
                                                       "true_sequential",
                                                       "use_cuda_fp16",
                                                       "use_exllama"};

}  // namespace lancet
