#!/bin/sh
#SBATCH --job-name=oomsight-matrix --array=1-8 --cpus-per-task=2 --mem=8G
# One shard of a matrix for each task of the array; afterwards: oomsight matrix --merge fleet.yaml part-*.ndjson
exec oomsight matrix --mode dryrun --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" \
    --output "part-$SLURM_ARRAY_TASK_ID.ndjson" "${1:-fleet.yaml}"
