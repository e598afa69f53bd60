# The verdict first, the figure that decides under a caret, the ledger, what helps and what does not; exit 1.
"$OOMSIGHT" explain --ascii ../fixtures/kb/vllm/cudagraph-profile-hybrid/positive.log
