/* LoRA slots: the engine allocates room for max_loras adapters of max_lora_rank beside every linear layer. */
#ifndef OOS_PLAN_WEIGHTS_LORA_H
#define OOS_PLAN_WEIGHTS_LORA_H

#include "sizes/tensors.h"

uint64_t oos_lora_bytes(const oos_setup *setup, const oos_cut *cut, uint64_t stage);

#endif
