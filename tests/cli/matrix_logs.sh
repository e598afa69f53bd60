# A folder for logs that cannot be made is named before anything is started.
"$OOMSIGHT" matrix --mode dryrun --logs /dev/null/logs none.yaml
