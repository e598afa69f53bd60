/* One YAML document from a stranger, within bounds: libyaml's time grows with the square of bytes and brackets. */
#ifndef OOS_INPUT_YAML_LOAD_H
#define OOS_INPUT_YAML_LOAD_H

#include "base/error.h"
#include "base/view.h"

#include <yaml.h>

/* Whether libyaml reads the text in time that grows with its length: the square of brackets within brackets and of anchors is
 * what it takes. Neither may be many, nor values more than `most_values`. */
bool oos_yaml_is_linear(oos_view text, size_t most_values);

bool oos_yaml_is_bounded(oos_view bytes, size_t most_bytes, size_t most_brackets);

/* `kind`: "config", "matrix", for the words of a refusal. The document is the caller's, to be given to
 * yaml_document_delete(). */
oomsight_status oos_yaml_load(oos_view bytes, size_t most_bytes, size_t most_brackets, const char *kind,
                              yaml_document_t *ret_document, oomsight_error *reterr);

#endif
