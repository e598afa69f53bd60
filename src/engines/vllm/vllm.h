/* What the files of this engine share. */
#ifndef OOS_ENGINES_VLLM_H
#define OOS_ENGINES_VLLM_H

#include "engines/engine.h"

extern const oos_dialect vllm_dialect;

#endif
