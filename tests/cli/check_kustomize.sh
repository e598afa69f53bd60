# A kustomization is read with the resources it names: patches of both kinds and images stand over the container of the base, in a
# folder of its own or beside it. Whatever is not found or not understood leaves a warning, never half a command.
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
models=$PWD/../fixtures/models
cd "$work" || exit 1
mkdir -p base over beside none odd script
cat >base/deploy.yaml <<'YAML'
apiVersion: apps/v1
kind: Deployment
metadata: {name: chat}
spec:
  template:
    spec:
      nodeSelector:
        nvidia.com/gpu.product: NVIDIA-L4
      containers:
      - name: vllm
        image: vllm/vllm-openai:v0.24.0
        args: [--model, acme/small-llama, --max-model-len, "4096"]
        env:
        - {name: VLLM_LOGGING_LEVEL, value: INFO}
        resources:
          limits: {nvidia.com/gpu: "1"}
---
kind: Service
metadata: {name: chat}
YAML
echo 'resources: [deploy.yaml]' >base/kustomization.yaml
cat >over/kustomization.yaml <<'YAML'
resources: [../base]
images:
- name: vllm/vllm-openai
  newTag: v0.32.0
patches:
- path: longer.yaml
- target: {kind: Deployment}
  patch: |
    - op: add
      path: /spec/template/spec/containers/0/args/-
      value: --tensor-parallel-size=2
    - op: replace
      path: /spec/template/spec/containers/0/resources/limits/nvidia.com~1gpu
      value: "2"
    - op: remove
      path: /spec/template/spec/containers/0/env/0
YAML
cat >over/longer.yaml <<'YAML'
kind: Deployment
metadata: {name: chat}
spec:
  template:
    spec:
      nodeSelector:
        nvidia.com/gpu.product: NVIDIA-A10G
      containers:
      - name: vllm
        args: [--model, acme/small-llama, --max-model-len, "8192"]
        env:
        - {name: VLLM_LOGGING_LEVEL, value: DEBUG}
YAML
cp base/deploy.yaml beside
printf 'resources: [deploy.yaml]\npatchesStrategicMerge:\n- |\n  kind: Deployment\n  metadata: {name: chat}\n  spec: {template: {spec: {containers: [{name: vllm, args: [--model, acme/small-llama, --max-model-len, "1000000"]}]}}}\n' >beside/kustomization.yaml
add='- op: add\n      path: /spec/template/spec/containers/0/args/-\n      value: --max-model-len=8192\n'
printf "resources: [https://example.org/base]\npatches:\n- patch: |\n    $add" >none/kustomization.yaml
cp base/deploy.yaml odd
printf 'resources: [deploy.yaml]\npatches:\n- patch: |\n    - {op: move, from: /spec, path: /other}\n  target: {kind: Deployment}\n' >odd/kustomization.yaml
sed 's/args: .*/command: [sh, -c]\n        args: [vllm serve acme\/small-llama]/' base/deploy.yaml >script/deploy.yaml
printf "resources: [deploy.yaml]\npatches:\n- patch: |\n    $add  target: {kind: Deployment}\n" >script/kustomization.yaml
check() { "$OOMSIGHT" check --offline --vllm 0.32.0 --models "$models" "$@" | cut -c1-180; }
echo "an overlay in a folder: the patch alone is no command, and no warning"
check base over
echo "beside its base: the length is above the model's"
check beside
echo "the base is elsewhere, a step is not understood: warnings"
check none/kustomization.yaml odd/kustomization.yaml
echo "words behind the script of sh -c are no flags"
check script/kustomization.yaml
"$OOMSIGHT" check --offline --strict --vllm 0.32.0 --models "$models" odd/kustomization.yaml >/dev/null; echo "exit $?"
