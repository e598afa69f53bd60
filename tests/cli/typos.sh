# A word that is nearly a command names it; one word for one thing, whichever command; older spellings stay.
for word in plna explian frobnicate; do "$OOMSIGHT" $word 2>&1; done
for option in --gpu-cc --compute-capability; do
    "$OOMSIGHT" dryrun --gpu-total 2GiB $option nine -- true 2>&1 | tail -n 1
    "$OOMSIGHT" plan --gpu-total 5GiB $option nine -- vllm serve x 2>&1 | tail -n 1
done
