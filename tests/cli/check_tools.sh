# What starts vLLM in the words of other tools: Ray Serve, llm-d, KServe, charts, Argo CD, SkyPilot, --config, LeaderWorkerSet, Terraform,
# Nomad, Modal, Slurm. GPUs of node selectors, machine types, MIG resources and jobs, each for its own document.
cd ../fixtures || exit 1
check() { "$OOMSIGHT" check --offline --models models "$@" | grep -v "^    [A-Z][a-z]* [a-z]\|^    [a-z]* [a-z]* [a-z]* [a-z]* [a-z]*$"; }
check --vllm 0.32.0 --gpu 4090 deploy-tools/ray-serve.yaml deploy-tools/ray-service.yaml deploy-tools/llm-d.yaml deploy-tools/kserve.yaml deploy-tools/values.yaml deploy-tools/argo.yaml deploy-tools/engine.yaml deploy-tools/compose.yaml deploy-tools/main.tf deploy-tools/chat.nomad
check --vllm 0.32.0 deploy-tools/task.yaml deploy-tools/slices.yaml deploy-tools/group.yaml deploy-tools/modal_app.py deploy-tools/job.sbatch deploy-tools/ray-serve.yaml
