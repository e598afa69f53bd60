/* The ledger of an incident: who held the device at the moment of failure, as far as the log tells. */
#ifndef OOS_EXPLAIN_HOLDINGS_H
#define OOS_EXPLAIN_HOLDINGS_H

#include "explain/incident.h"

/* Fills `held`, so that the rows add up to what the device had in use; nothing is filled when
 * the log does not tell that much. */
void oos_holdings_rebuild(oos_arena *arena, oos_incident *incident);

/* The same for each rank that printed figures of its own. */
void oos_holdings_of_ranks(oos_arena *arena, oos_incident *incident);

#endif
