/* LoRA slots: the engine allocates room for max_loras adapters of max_lora_rank beside every linear layer. */
#ifndef OOS_SIZES_LORA_H
#define OOS_SIZES_LORA_H

#include "sizes/tensors.h"

uint64_t oos_lora_bytes(const oos_shard *shard, const oos_cut *cut, uint64_t stage);

#endif
