/* From an incident's lines and figures to its phase and cause: arithmetic gives facts, and ordered rules over signals
 * and facts (data/explain/phases.json, causes.json) give the answer, how sure it is, and what would make it surer. */
#ifndef OOS_EXPLAIN_REASON_H
#define OOS_EXPLAIN_REASON_H

#include "explain/incident.h"

/* name: what holds when the fact is true. Shares are of the device's total. */
#define OOS_FACT_MAP(X)                                                                                         \
    X(has_figures)    /* the failing request's size is known */                                                 \
    X(torch_known)    /* so is what PyTorch held */                                                             \
    X(tried_gt_total) /* one request above the whole card */                                                    \
    X(tried_huge)     /* one request above 256 GiB, card unknown */                                             \
    X(device_small) /* PyTorch holds nothing, the device is all but free, and one request is above its total */ \
    X(pool_le_free)   /* the engine's pool refused although it had as many tokens as were asked for */          \
    X(kv_given)       /* the size of the KV cache was given by hand: no budget enters it */                     \
    X(kv_given_large) /* ... and is more than the card has beside the weights */                                \
    X(tried_le_free)  /* refused although as much was free: a slice, shared memory, or pieces */                \
    X(alloc_gt_total) /* PyTorch holds more than the card: a driver that spills into host memory */             \
    X(cg_large)       /* graphs are estimated at an eighth of the card, or 8 GiB: out of proportion */          \
    X(tried_fifth)    /* one request of a fifth of the card: no single weight is that large */                  \
    X(tried_ge_256mib)                                                                                          \
    X(tried_ge_512mib)                                                                                          \
    X(tried_ge_gib)                                                                                             \
    X(others_hold)      /* other processes hold 10 % or more */                                                 \
    X(others_most)      /* ... 40 % or more */                                                                  \
    X(unalloc_ge_tried) /* PyTorch caches more than was asked for */                                            \
    X(unalloc_large)    /* ... a gibibyte or more: large temporaries came and went */                           \
    X(private_some)     /* a private pool holds free blocks */                                                  \
    X(private_gib)      /* ... a gibibyte or more */                                                            \
    X(private_large)    /* ... a tenth of the card: no graph pool is that large */                              \
    X(unalloc_tenth)    /* PyTorch caches a tenth of the card, or 16 times what was asked for */                \
    X(torch_empty)      /* PyTorch held nothing yet */                                                          \
    X(card_full)        /* next to nothing of the card was free, less than was asked for */                     \
    X(torch_full)       /* live and pooled tensors fill 85 % */                                                 \
    X(kv_negative)      /* the KV share came out zero or negative */                                            \
    X(budget_exceeded)  /* KV share negative, or weights and activations above the budget */                    \
    X(weights_over_budget)                                                                                      \
    X(weights_tiny)    /* nothing left although the weights are below 2 GiB */                                  \
    X(initial_used)    /* much in use before the engine's own weights */                                        \
    X(non_torch_large) /* 2 GiB or more outside PyTorch while profiling */                                      \
    X(startup_own)     /* in use at start: no more than a context (7 %) */                                      \
    X(startup_little)  /* ... up to 15 % */                                                                     \
    X(free_unchanged)  /* as much free after the profile as before it */                                        \
    X(sleep_residue)   /* much still in use after falling asleep */                                             \
    X(old_shape)       /* vLLM before 0.8 */                                                                    \
    X(v1)              /* processes of the V1 engine */                                                         \
    X(last_marker)     /* the log told how far it got */                                                        \
    X(serving_last)    /* ... and that was work on a request */                                                 \
    X(read_on)         /* ... below the failure */                                                              \
    X(forward_past_kv) /* the stack has frames of the model, and the KV cache was there */                      \
    X(program)         /* a program on PyTorch without a budget of its own: no server's causes */               \
    X(server)          /* an engine that shares the card out beforehand */                                      \
    X(served_forward)  /* the stack is that of a served step, and has frames of the model */                    \
    X(start_forward)   /* the stack is that of a start, and has frames of the model */                          \
    X(served_runner)   /* the stack is that of a served step, and ends in the worker itself */

typedef struct oos_cause_rules oos_cause_rules;

oomsight_status oos_cause_rules_load(oos_arena *arena, const char *data_dir, const oos_signals *signals,
                                     const oos_cause_rules **ret_rules, oomsight_error *reterr);

/* Fills the concluded part of `incident`, without signature and ledger. */
void oos_reason(const oos_signals *signals, const oos_cause_rules *rules, oos_incident *incident);

#endif
