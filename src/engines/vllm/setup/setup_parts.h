/* Parts of resolving a setup that have files of their own. */
#ifndef OOS_PLAN_SETUP_PARTS_H
#define OOS_PLAN_SETUP_PARTS_H

#include "engines/vllm/setup/setup.h"

/* Types and state caching that the engine sets for particular architectures. Needs types and speculation. */
void oos_setup_for_architecture(oos_setup *setup);

/* max_num_seqs and max_num_batched_tokens. Needs lengths and chunked prefill. */
void oos_setup_batch_limits(oos_setup *setup);

/* Graph mode, capture sizes, whether the graph estimate is charged. Needs batch limits and speculation. */
void oos_setup_graphs(oos_setup *setup);

#endif
