"$OOMSIGHT" replay --format md --smallest --try max_split_size_mb:5 ../fixtures/traces/stranded.trace
