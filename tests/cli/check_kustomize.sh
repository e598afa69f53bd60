# A kustomization that only takes plain files: they are read as any other YAML. What it changes or composes was not looked at, and the
# command that renders it is told; nothing passes in silence.
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
models=$PWD/../fixtures/models
cd "$work" || exit 1
mkdir -p base over images "over there" remote
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
YAML
printf 'resources: [deploy.yaml]\nnamespace: prod\npatches: []\n' >base/kustomization.yaml
printf 'resources: [../base]\npatches:\n- path: longer.yaml\n' >over/kustomization.yaml
cp over/kustomization.yaml "over there"
printf 'resources: [../base/deploy.yaml]\nimages:\n- {name: vllm/vllm-openai, newTag: v0.32.0}\n' >images/Kustomization
printf 'resources: [https://example.org/a.yaml]\n' >remote/kustomization.yml
check() { "$OOMSIGHT" check --offline --models "$models" "$@" >"$work/out"; code=$?; cut -c1-180 "$work/out"; echo "exit $code"; }
echo "plain files, by their folder and by the kustomization that names them"
check base
check base/kustomization.yaml
echo "bases, images, something to be fetched"
check over images remote
echo "the folder's name is quoted"
check "over there/kustomization.yaml"
echo "in its own folder, beside a command that starts"
cd base && printf 'patchesJson6902: [{path: a.yaml}]\nresources: [deploy.yaml]\n' >kustomization.yaml && check deploy.yaml kustomization.yaml
