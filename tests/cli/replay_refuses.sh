"$OOMSIGHT" replay ../fuzz/corpus/snapshot/calls.pickle
