/* A model from the hub: its config files and the headers of its weight files, by ranged reads. Never the weights, and
 * nothing is written to disk. HF_ENDPOINT names the hub, HF_TOKEN opens what is gated (not over http:// to
 * another machine, unless OOMSIGHT_INSECURE=1), HF_HUB_OFFLINE=1 forbids it, HF_HUB_DOWNLOAD_TIMEOUT is the patience with a silent
 * server; the whole takes three of it at most. */
#ifndef OOS_INPUT_HUB_H
#define OOS_INPUT_HUB_H

#include "model/hfcache.h"
#include "model/model.h"

bool oos_hub_offline(void); /* the environment forbids it */

oomsight_status oos_hub_open(oos_arena *arena, const char *data_dir, const oos_hub_id *id,
                             const char *overrides, oos_model *ret_model, oomsight_error *reterr);

#endif
