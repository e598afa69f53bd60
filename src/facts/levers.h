/* The ladder of levers: what people change when memory is short, ordered by what they lose. Read from
 * data/engines/<engine>/levers.json, one list for everybody who suggests something; docs/reference/formats/levers.md says what a field means. What a
 * lever does to a command is left to who plans it again. */
#ifndef OOS_FACTS_LEVERS_H
#define OOS_FACTS_LEVERS_H

#include "base/arena.h"
#include "base/error.h"
#include "facts/version.h"

enum { OOS_LADDER_MAX = 64 };

/* What is lost, least first. */
typedef enum oos_rung {
    OOS_RUNG_NOTHING,   /* a: nothing */
    OOS_RUNG_UNASKED,   /* b: what was not asked for */
    OOS_RUNG_LITTLE,    /* c: a little quality or speed */
    OOS_RUNG_ASKED,     /* d: what was asked for */
    OOS_RUNG_ELSEWHERE, /* e: another checkpoint, other devices, much speed */
    OOS_RUNG_COUNT
} oos_rung;

typedef enum oos_move {
    OOS_MOVE_RAISE,
    OOS_MOVE_LOWER,
    OOS_MOVE_SET,  /* to `value`; a switch has none, or the word that turns it off */
    OOS_MOVE_DROP, /* the flag is left out */
    OOS_MOVE_DO,   /* no flag: something outside of the command */
} oos_move;

typedef struct oos_said {
    const char *en, *zh;
} oos_said;

typedef struct oos_lever_record {
    const char *id;
    const char *flag, *variable; /* one of them, or `action` */
    oos_said action;
    const char *value; /* of `set` the word; of `lower` the least that is worth trying; NULL: none */
    const char *begin; /* the value to begin with where no figure decides; NULL: the direction alone */
    oos_move move;
    uint64_t step;            /* of a number: how finely it is looked for; 0: not said */
    oos_rung rung, given;     /* `given`: where the command itself has the flag */
    oos_version since, until; /* releases that have it; until UINT64_MAX: still there */
    uint64_t owners, phases;  /* what it frees and where that helps: bits by oos_owner, oos_phase */
    oos_said why, cost;       /* what it changes (en NULL: not said) and what is lost */
    uint64_t useless_phases, useless_causes; /* where it changes nothing: bits by oos_phase, oos_cause */
    uint64_t unless;      /* causes at which it has an effect in those phases all the same */
    oos_said useless_why; /* en NULL: nowhere */
} oos_lever_record;

typedef struct oos_ladder {
    oos_lever_record list[OOS_LADDER_MAX]; /* the least loss first; in a rung what is tried first */
    size_t count;
} oos_ladder;

oomsight_status oos_ladder_load(oos_arena *arena, const char *data_dir, const char *engine,
                                const oos_ladder **ret_ladder, oomsight_error *reterr);

/* The same from bytes, which must outlive the ladder. */
oomsight_status oos_ladder_read(oos_arena *arena, oos_view bytes, const char *engine,
                                const oos_ladder **ret_ladder, oomsight_error *reterr);

const oos_lever_record *oos_ladder_find(const oos_ladder *ladder, const char *id); /* NULL: no such lever */
bool oos_lever_here(const oos_lever_record *lever, oos_version version);

char oos_rung_letter(oos_rung rung); /* 'a' to 'e' */

#endif
