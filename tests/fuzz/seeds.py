#!/usr/bin/env python3
"""Inputs to begin fuzzing with, as large and as varied as what people really have, made here: seeds.py FOLDER [--small]

A folder per target of tests/fuzz. Everything is invented by this program; the same files come out every time. --small leaves out what
is longer than 4 KB: those are the ones kept in tests/fuzz/corpus."""
import json, pathlib, pickle, random, re, struct, sys

chance = random.Random(20260301)

# ---- configs ----

DENSE = dict(hidden_size=4096, intermediate_size=12288, num_hidden_layers=36, num_attention_heads=32, num_key_value_heads=8, head_dim=128,
             vocab_size=151936, max_position_embeddings=40960, torch_dtype='bfloat16', tie_word_embeddings=False, rms_norm_eps=1e-6)
MOE = dict(DENSE, num_experts=128, num_experts_per_tok=8, moe_intermediate_size=768, decoder_sparse_step=1, mlp_only_layers=[])
MLA = dict(DENSE, n_routed_experts=64, n_shared_experts=2, num_experts_per_tok=6, moe_intermediate_size=1408, first_k_dense_replace=1,
           kv_lora_rank=512, q_lora_rank=1536, qk_rope_head_dim=64, qk_nope_head_dim=128, v_head_dim=128, num_nextn_predict_layers=1)
VISION = dict(depth=32, hidden_size=1280, intermediate_size=3420, num_heads=16, patch_size=14, spatial_merge_size=2, temporal_patch_size=2,
              out_hidden_size=4096, image_size=448, in_channels=3)


def config(architecture, model_type, fields, **more):
    return dict(architectures=[architecture], model_type=model_type, **{**fields, **more})


def awq(**more): return dict(quant_method='awq', bits=4, group_size=128, zero_point=True, version='gemm', **more)


def compressed(layers, scheme='group', bits=4):
    """The long form: a list of what is not quantised, module by module."""
    ignore = ['lm_head'] + [f'model.layers.{i}.{m}' for i in range(layers)
                            for m in ('mlp.gate', 'self_attn.q_proj', 'self_attn.k_proj', 'self_attn.v_proj', 'self_attn.o_proj')]
    weights = dict(num_bits=bits, type='int' if bits == 4 else 'float', strategy=scheme, symmetric=True, dynamic=False,
                   group_size=128 if scheme == 'group' else None)
    return dict(quant_method='compressed-tensors', format='pack-quantized' if bits == 4 else 'float-quantized', ignore=ignore,
                config_groups=dict(group_0=dict(targets=['Linear'], weights=weights, input_activations=None)), kv_cache_scheme=None)


def configs():
    yield 'dense', config('Qwen3ForCausalLM', 'qwen3', DENSE)
    yield 'llama', config('LlamaForCausalLM', 'llama', DENSE, rope_scaling=dict(rope_type='llama3', factor=8.0, low_freq_factor=1.0,
                          high_freq_factor=4.0, original_max_position_embeddings=8192))
    yield 'awq', config('Qwen2ForCausalLM', 'qwen2', DENSE, quantization_config=awq())
    yield 'gptq', config('LlamaForCausalLM', 'llama', DENSE, quantization_config=dict(quant_method='gptq', bits=4, group_size=128, desc_act=False, sym=True))
    yield 'fp8', config('Qwen3MoeForCausalLM', 'qwen3_moe', MOE, quantization_config=dict(quant_method='fp8', weight_block_size=[128, 128], activation_scheme='dynamic'))
    yield 'mla', config('DeepseekV3ForCausalLM', 'deepseek_v3', MLA, quantization_config=dict(quant_method='fp8', fmt='e4m3', weight_block_size=[128, 128]))
    yield 'sparse', config('DeepseekV32ForCausalLM', 'deepseek_v32', MLA, index_topk=2048, index_n_heads=64, index_head_dim=128)
    yield 'oss', config('GptOssForCausalLM', 'gpt_oss', DENSE, hidden_size=2880, intermediate_size=2880, num_local_experts=32, num_experts_per_tok=4,
                        num_hidden_layers=24, num_attention_heads=64, head_dim=64, sliding_window=128, vocab_size=201088,
                        layer_types=['sliding_attention', 'full_attention'] * 12, quantization_config=dict(quant_method='mxfp4',
                        modules_to_not_convert=['model.layers.*.self_attn', 'model.layers.*.mlp.router', 'model.embed_tokens', 'lm_head']))
    yield 'gemma', config('Gemma3ForConditionalGeneration', 'gemma3', {}, text_config=dict(DENSE, model_type='gemma3_text', sliding_window=1024,
                          sliding_window_pattern=6), vision_config=dict(hidden_size=1152, image_size=896, intermediate_size=4304, num_attention_heads=16,
                          num_hidden_layers=27, patch_size=14, model_type='siglip_vision_model'), mm_tokens_per_image=256)
    yield 'vision', config('Qwen2_5_VLForConditionalGeneration', 'qwen2_5_vl', DENSE, vision_config=VISION)
    yield 'next', config('Qwen3NextForCausalLM', 'qwen3_next', MOE, full_attention_interval=4, linear_conv_kernel_dim=4, linear_key_head_dim=128,
                         linear_num_key_heads=16, linear_num_value_heads=32, linear_value_head_dim=128, shared_expert_intermediate_size=512)
    yield 'hybrid', config('JambaForCausalLM', 'jamba', DENSE, num_experts=16, num_experts_per_tok=2, attn_layer_offset=4, attn_layer_period=8,
                           expert_layer_offset=1, expert_layer_period=2, mamba_d_conv=4, mamba_d_state=16, mamba_dt_rank=256, mamba_expand=2)
    yield 'nano', config('NemotronHForCausalLM', 'nemotron_h', DENSE, hybrid_override_pattern='M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-', mamba_num_heads=128,
                         mamba_head_dim=64, ssm_state_size=128, n_groups=8, conv_kernel=4, num_hidden_layers=34)
    yield 'opt', config('OPTForCausalLM', 'opt', {}, hidden_size=2560, ffn_dim=10240, num_hidden_layers=32, num_attention_heads=32, vocab_size=50272,
                        max_position_embeddings=2048, torch_dtype='float16', word_embed_proj_dim=2560, do_layer_norm_before=True)
    yield 'mixtral', config('MixtralForCausalLM', 'mixtral', DENSE, num_local_experts=8, num_experts_per_tok=2, sliding_window=None)
    yield 'glm', config('Glm4MoeForCausalLM', 'glm4_moe', MOE, n_routed_experts=160, n_shared_experts=1, first_k_dense_replace=3, num_nextn_predict_layers=1)
    yield 'llama4', config('Llama4ForConditionalGeneration', 'llama4', {}, text_config=dict(DENSE, model_type='llama4_text', num_local_experts=16,
                           num_experts_per_tok=1, interleave_moe_layer_step=1, attention_chunk_size=8192, intermediate_size_mlp=16384), vision_config=VISION)
    yield 'whisper', config('WhisperForConditionalGeneration', 'whisper', {}, d_model=1280, encoder_layers=32, decoder_layers=32, encoder_attention_heads=20,
                            decoder_attention_heads=20, encoder_ffn_dim=5120, decoder_ffn_dim=5120, vocab_size=51866, max_source_positions=1500,
                            max_target_positions=448, num_mel_bins=128, is_encoder_decoder=True, torch_dtype='float16')
    yield 'unknown', config('FancyForCausalLM', 'fancy', MOE, quantization_config=dict(quant_method='fancy2bit'))
    yield 'ignored', config('Qwen3ForCausalLM', 'qwen3', DENSE, quantization_config=compressed(4))
    yield 'ignored-long', config('Qwen3MoeForCausalLM', 'qwen3_moe', MOE, num_hidden_layers=94, quantization_config=compressed(94))
    yield 'channels-long', config('LlamaForCausalLM', 'llama', DENSE, num_hidden_layers=126, quantization_config=compressed(126, 'channel', 8))


def families():
    """Every architecture that is known, with more fields than any one of them has."""
    source = pathlib.Path(__file__).resolve().parent.parent.parent / 'src/model/arch/families.c'
    fields = {**MOE, **MLA, 'layer_types': ['full_attention', 'linear_attention'] * 18, 'sliding_window': 4096, 'n_head': 32, 'n_embd': 4096, 'n_layer': 36,
              'n_inner': 16384, 'ffn_dim': 16384, 'd_model': 4096, 'linear_num_key_heads': 16, 'linear_num_value_heads': 32, 'linear_key_head_dim': 128,
              'linear_value_head_dim': 128, 'linear_conv_kernel_dim': 4, 'mamba_n_heads': 128, 'mamba_d_state': 128, 'mamba_d_conv': 4, 'mamba_expand': 2,
              'mamba_d_head': 64, 'mamba_n_groups': 1, 'state_size': 16, 'conv_kernel': 4, 'num_local_experts': 16}
    for i, name in enumerate(re.findall(r'^    \{"(\w+)",', source.read_text(), re.M)):
        inner = dict(text_config=dict(fields, model_type='text'), vision_config=dict(VISION, num_hidden_layers=27, num_attention_heads=16)) if 'Conditional' in name else {}
        yield name, config(name, name.lower(), fields, **inner, **(dict(quantization_config=awq()) if i % 3 == 0 else {}))


QUANT = dict(producer=dict(name='modelopt', version='0.33'), quantization=dict(quant_algo='NVFP4', kv_cache_quant_algo='FP8', group_size=16,
             exclude_modules=['lm_head', 'model.layers.0*']))

# ---- commands ----

FLAGS = [['--max-model-len', '40960'], ['--gpu-memory-utilization', '0.95'], ['--max-num-seqs', '64'], ['--tensor-parallel-size', '2'],
         ['--max-num-batched-tokens', '8192'], ['--enforce-eager'], ['--kv-cache-dtype', 'fp8'], ['--enable-lora', '--max-loras', '4', '--max-lora-rank', '64'],
         ['--compilation-config', '{"cudagraph_mode": "PIECEWISE", "max_cudagraph_capture_size": 64}'], ['--enable-prefix-caching'],
         ['--speculative-config', '{"method": "mtp", "num_speculative_tokens": 2}'], ['--limit-mm-per-prompt', '{"image": 2}'], ['--cpu-offload-gb', '10'],
         ['--quantization', 'fp8'], ['--pipeline-parallel-size=2'], ['--data-parallel-size', '2', '--enable-expert-parallel'], ['--max-model-len', 'auto'],
         ['--enable-sleep-mode'], ['--num-gpu-blocks-override', '5000'], ['--block-size', '32'], ['--kv-cache-memory-bytes', '4GiB'], ['--swap-space', '4'],
         ['--attention-backend', 'FLASHINFER'], ['--language-model-only'], ['--load-format', 'dummy'], ['--dtype', 'float16'],
         ['--hf-overrides', '{"max_position_embeddings": 65536}'], ['-O3'], ['--async-scheduling'], ['--decode-context-parallel-size', '2']]


def words(count): return [w for flags in chance.sample(FLAGS, count) for w in flags]


def shell(flags): return ' '.join(f"'{w}'" if set(w) & set('{" ') else w for w in flags)

# ---- logs ----

OOM = ('torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried:.2f} GiB. GPU 0 has a total capacity of {total:.2f} GiB of which {free:.2f} MiB is '
       'free. Including non-PyTorch memory, this process has {process:.2f} GiB memory in use. Of the allocated memory {allocated:.2f} GiB is allocated by '
       'PyTorch, with {pools:.2f} MiB allocated in private pools (e.g., CUDA Graphs), and {cached:.2f} MiB is reserved by PyTorch but unallocated. If '
       'reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.')
FRAMES = {'weight_load': ('gpu_worker.py', 'load_model'), 'profile_run': ('gpu_model_runner.py', 'profile_run'), 'sampler': ('gpu_model_runner.py', '_dummy_sampler_run'),
          'capture': ('gpu_model_runner.py', 'capture_model'), 'kv': ('kv_cache_utils.py', 'get_kv_cache_configs'), 'serving': ('gpu_model_runner.py', 'execute_model')}


def log(version, where, lines=0, prefix='', model='org/model'):
    say = lambda text: out.append(f'{prefix}INFO 03-01 12:00:{len(out) % 60:02d} [core.py:71] {text}')
    out = []
    say(f"vLLM API server version {version}")
    say(f"non-default args: {{'model': '{model}', 'max_model_len': 40960, 'gpu_memory_utilization': 0.95, 'tensor_parallel_size': 2}}")
    say(f"Initializing a V1 LLM engine (v{version}) with config: model='{model}', dtype=torch.bfloat16, max_seq_len=40960, tensor_parallel_size=2")
    for i in range(lines): say(f'Avg prompt throughput: {chance.random() * 1e4:.1f} tokens/s, Running: {i % 64} reqs, GPU KV cache usage: {i % 100}.0%')
    if where != 'weight_load': say('Model loading took 15.2683 GiB memory and 12.345678 seconds')
    if where in ('capture', 'serving'):
        say('Available KV cache memory: 3.10 GiB'), say('GPU KV cache size: 22,560 tokens'), say('Maximum concurrency for 40,960 tokens per request: 0.55x')
    if where == 'serving': say('Graph capturing finished in 12 secs, took 0.56 GiB'), say('Application startup complete.')
    file, function = FRAMES[where]
    error = lambda text: out.append(f'{prefix}ERROR 03-01 12:01:00 [core.py:866] {text}')
    error('EngineCore failed to start.'), error('Traceback (most recent call last):')
    for depth in range(12): error(f'  File "/usr/lib/python3/vllm/v1/engine/part{depth}.py", line {100 + depth}, in step_{depth}'), error(f'    return self.inner_{depth}(*args, **kwargs)')
    error(f'  File "/usr/lib/python3/vllm/v1/worker/{file}", line 3022, in {function}')
    if where == 'kv':
        error("ValueError: To serve at least one request with the models's max seq len (40960), (5.62 GiB KV cache is needed, which is larger than the available KV "
              'cache memory (3.10 GiB). Based on the available memory, the estimated maximum model length is 22560. Try increasing `gpu_memory_utilization` or '
              'decreasing `max_model_len` when initializing the engine.')
    else:
        error(OOM.format(tried=1.56, total=23.52, free=411.06, process=22.31, allocated=21.5, pools=120.0, cached=215.31))
    return ('\n'.join(out) + '\n').encode()


def logs():
    for i, where in enumerate(FRAMES):
        for version in ('0.11.0', '0.19.1', '0.32.0'): yield f'{where}-{version}', log(version, where)
        yield f'{where}-long', log('0.24.0', where, 150, ('', '(EngineCore_DP0 pid=214) ', '2026-03-01T12:00:00.000000000Z stderr F ')[i % 3])


def server_args(shape):
    """The list of arguments that SGLang prints, as a dict or as a dataclass."""
    fields = dict(model_path='org/model', tp_size=2, mem_fraction_static=0.6, chunked_prefill_size=2048, api_key=None, disable_cuda_graph=False,
                  cuda_graph_config=dict(decode=dict(backend='full', max_bs=32, bs=[1, 2, 4]), prefill=dict(backend='disabled', max_bs=None)), lora_paths=['a', 'b=c'])
    return str(fields) if shape == 'dict' else 'ServerArgs(%s)' % ', '.join('%s=%r' % pair for pair in fields.items())


def sglang_logs():
    start = '[2026-01-01 10:00:00] server_args=%s\n[2026-01-01 10:00:01] Load weight begin. avail mem=21.84 GB\n[2026-01-01 10:00:02] Load weight end. avail mem=6.56 GB, mem usage=15.28 GB.\n'
    ends = dict(refused='ValueError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=0.6. Raise --mem-fraction-static above 0.700\n',
                ready='KV Cache is allocated. dtype: torch.bfloat16, #tokens: 133009, K size: 7.10 GB, V size: 7.11 GB\nmax_total_num_tokens=133009, available_gpu_mem=4.49 GB\n',
                batch='torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.16 GiB. GPU 0 has a total capacity of 23.52 GiB of which 613.00 MiB is free.\n')
    for name, end in ends.items():
        for shape in ('dict', 'class'): yield f'sglang-{name}-{shape}', (start % server_args(shape) + end).encode()

# ---- snapshots and traces ----

def frames(depth): return [dict(name=f'forward_{i}', filename=f'/usr/lib/python3/vllm/model_executor/layers/part{i}.py', line=10 * i) for i in range(depth)]


def snapshot(segments, events):
    address, made = 0x7f0000000000, []
    for s in range(segments):
        blocks, total = [], 0
        for b in range(chance.randrange(1, 6)):
            size = 512 * chance.randrange(1, 8000)
            blocks.append(dict(address=address + total, size=size, requested_size=size - 12, state=('active_allocated', 'inactive')[b % 2], frames=frames(3)))
            total += size
        made.append(dict(device=0, address=address, total_size=total, allocated_size=total // 2, active_size=total // 2, requested_size=total // 2, stream=0,
                         segment_type=('small', 'large')[s % 2], segment_pool_id=(0, s % 2), is_expandable=s % 5 == 4, blocks=blocks, frames=[]))
        address += total + (1 << 21)
    trace = []
    for e in range(events):
        action = ('segment_alloc', 'alloc', 'free_requested', 'free_completed', 'oom')[min(e % 5, 4 if e % 25 == 24 else 3)]
        trace.append(dict(action=action, addr=0x7f0000000000 + 512 * (e // 4), size=512 * (1 + e % 9), stream=0, time_us=1700000000000000 + e, frames=frames(2),
                          **(dict(device_free=1 << 20) if action == 'oom' else {})))
    return dict(segments=made, device_traces=[trace], allocator_settings=dict(PYTORCH_CUDA_ALLOC_CONF='expandable_segments:False', max_split_size=-1,
                garbage_collection_threshold=0.0, expandable_segments=False, pinned_num_register_threads=1, roundup_power2_divisions={'1': 0, '>': 0}))


def text_trace(events):
    """docs/reference/formats/trace.md: JSON lines."""
    meta = dict(op='meta', torch=chance.choice(('2.4.1', '2.9.1', '2.12.1', '2.13.0')), settings='', device_total=1 << 30, device_base_used=0, va_policy='bump', nvml=True)
    lines, live = [json.dumps(meta)], []
    for e in range(events):
        if live and chance.random() < .45: lines.append(json.dumps(dict(op='free', id=live.pop(chance.randrange(len(live))))))
        else:
            live.append(e)
            lines.append(json.dumps(dict(op='malloc', id=e, size=512 * chance.randrange(1, 40000), stream=chance.randrange(2))))
    return ('\n'.join(lines) + '\n').encode()

HAND = '''torch 2.13.0
settings max_split_size_mb:20
device_total 256MiB
device_used 10MiB
placement firstfit
malloc weights 90MiB 0 loader
pool_create 0.7 sticky
pool_begin 0.7
malloc kv 60MiB 0 cache
pool_end 0.7
capture_begin 0.9
malloc graph 3MiB 0 graph
free graph
capture_end 0.9
malloc side 9MiB 1 other
record_stream side 0
free side
complete 0
use_on_oom 0.9
malloc large 80MiB 0 activation
free weights
set_memory_fraction 0.5
set_settings expandable_segments:True
malloc again 70MiB 0 activation
empty_cache
malloc last 200MiB 0 activation
pool_release 0.7
snapshot
stats
'''

# ---- files of deployments ----

def deployments():
    one = shell(words(4))
    yield 0, f'#!/bin/bash\nset -e\nexport HF_HOME=/data\nMODEL=org/small\nexec vllm serve $MODEL \\\n  {one} \\\n  --port 8000\n'
    yield 1, f'services:\n  llm:\n    image: vllm/vllm-openai:v0.19.1\n    command: --model org/moe {one}\n    environment:\n      VLLM_USE_V1: "1"\n    deploy:\n      resources:\n        reservations:\n          devices:\n            - driver: nvidia\n              count: 2\n              capabilities: [gpu]\n'
    args = '\n'.join(f'            - {json.dumps(w)}' for w in words(5))
    yield 1, ('apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: llm}\nspec:\n  template:\n    spec:\n      nodeSelector: {nvidia.com/gpu.product: NVIDIA-A30}\n'
              f'      containers:\n        - name: vllm\n          image: vllm/vllm-openai:v0.24.0\n          command: [vllm, serve, org/small]\n          args:\n{args}\n'
              '          resources: {limits: {nvidia.com/gpu: 2}}\n')
    yield 1, ('servingEngineSpec:\n  modelSpec:\n    - name: llama\n      repository: vllm/vllm-openai\n      tag: v0.19.1\n      modelURL: org/small\n      requestGPU: 1\n'
              '      vllmConfig:\n        maxModelLen: 16384\n        tensorParallelSize: 1\n        extraArgs: ["--max-num-seqs", "32"]\n')
    yield 2, f'FROM vllm/vllm-openai:v0.11.0\nENV VLLM_USE_V1=1\nENTRYPOINT ["vllm", "serve"]\nCMD ["org/moe", {", ".join(json.dumps(w) for w in words(3))}]\n'
    yield 3, f'[Service]\nEnvironment=MODEL=org/small\nExecStart=/usr/bin/python3 -m vllm.entrypoints.openai.api_server --model ${{MODEL}} {one}\nRestart=always\n'


def matrices():
    yield 'versions: [0.10.2, 0.32.0]\nmodels: [small, moe]\ngpus: [4090, A30x4, {gpu: L4, total: 22GiB, used: 1GiB}]\nflags:\n  - ""\n  - {name: long, flags: --max-model-len 8192}\n'
    yield 'models: [{model: small, name: a}]\ngpus: H100\nflags:\n  max-num-seqs: [1, 256]\n  enforce-eager: [true, false]\nversions: [0.11.0, 0.19.1, 0.32.0]\nexclude:\n  - {max-num-seqs: 1, version: 0.11.0}\n'
    yield 'always: --gpu-memory-utilization 0.95\nenvironment: {VLLM_USE_V1: 1}\nblocks:\n  - models: [moe, missing]\n    gpus: [gb10, T4]\n    flags: [--enable-lora, "--compilation-config \'{\\"max_cudagraph_capture_size\\": 128}\'"]\n'

# ---- the hub ----

def header(tensors):
    at, made = 0, {'__metadata__': {'format': 'pt'}}
    for i in range(tensors):
        shape = [chance.choice((64, 128, 4096)), chance.choice((16, 512))]
        size = 2 * shape[0] * shape[1]
        made[f'model.layers.{i // 4}.part{i % 4}.weight'] = dict(dtype='BF16', shape=shape, data_offsets=[at, at + size])
        at += size
    return json.dumps(made).encode()


def answer(kind, body): return struct.pack('<BH', kind, len(body)) + body


def hubs():
    text = {name: json.dumps(value).encode() for name, value in configs()}
    index = json.dumps(dict(metadata=dict(total_size=123456789), weight_map={f'model.layers.{i}.weight': f'model-{i % 3 + 1:05d}-of-00003.safetensors' for i in range(30)})).encode()
    none, found, ranged, partly = 2, 0, 1 | 16 | 128, 1 | 32 | 64 | 128
    yield b'\0' + answer(found, text['dense']) + answer(none, b'') + answer(none, b'') + answer(ranged, header(12))
    yield b'\1' + answer(found, text['mla']) + answer(none, b'') + answer(found, index) + b''.join(answer(ranged, header(8)) for _ in range(3))
    yield b'\2' + answer(found, text['vision']) + answer(found, json.dumps(QUANT).encode()) + answer(found, index) + answer(ranged, header(3)) + answer(partly, header(40)) + answer(none, b'')
    yield b'\0' + answer(3, b'') + answer(none, b'') + answer(none, b'')
    yield b'\4' + answer(found, text['gemma']) + answer(6, b'') + answer(none, b'') + answer(none, b'')
    yield b'\0' + answer(found, text['ignored-long']) + answer(none, b'') + answer(none, b'') + answer(ranged, header(400))


def tables():
    """(target, name, bytes)"""
    quant = json.dumps(QUANT).encode()
    for i, (name, value) in enumerate(configs()):
        body = json.dumps(value, indent=2 if i % 2 else None).encode()
        yield 'config', name, body
        flags = '\n'.join(words(1 + i % 5)).encode()
        yield 'plan', name, bytes([(28 * i + i % 3) % 256, 37 * i % 256, i % 4 | (i % 3) << 2, 11 * i % 256]) + flags + b'\0' + body + (b'\0' + quant if i % 5 == 0 else b'')
    for i, (name, value) in enumerate(families()):
        body = json.dumps(value).encode()
        yield 'config', f'family-{name}', body
        yield 'plan', f'family-{name}', bytes([4 * i % 256 | 1, 53 * i % 256, 0, 13 * i % 256]) + '\n'.join(words(2)).encode() + b'\0' + body
    for i in range(16): yield 'serve', f'words-{i}', bytes([i * 3]) + '\n'.join(['vllm', 'serve', 'org/model'] + words(1 + i % 8)).encode()
    for i, (name, text) in enumerate([*logs(), *sglang_logs()]):
        yield 'explain', name, text
        yield 'follow', name, text
        yield 'logstream', name, text
        yield 'diagnose', name, bytes([5 * i % 32]) + text
    for size, (segments, events) in dict(short=(3, 20), long=(60, 300), longer=(200, 120)).items():
        made = snapshot(segments, events)
        for protocol in (2, 4): yield 'snapshot', f'{size}-{protocol}', pickle.dumps(made, protocol)
        yield 'snapshot', f'{size}-json', json.dumps(made).encode()
        yield 'whatif', f'snapshot-{size}', b'\3\7max_split_size_mb:64\n' + pickle.dumps(made, 4)
    for events in (12, 60, 400):
        for i, settings in enumerate((b'', b'expandable_segments:True', b'garbage_collection_threshold:0.6,roundup_power2_divisions:[256:1,512:2,>:4]')):
            yield 'whatif', f'trace-{events}-{i}', bytes([i * 37 % 128, 8 * i + events % 32]) + settings + b'\n' + text_trace(events)
        yield 'trace', f'lines-{events}', text_trace(events)
    yield 'trace', 'hand', HAND.encode()
    for name, body in secrets_texts(): yield 'redact', name, body
    yield 'whatif', 'hand', b'\x10\x1fgarbage_collection_threshold:0.5\n' + HAND.encode()
    for i, (kind, text) in enumerate(deployments()):
        yield 'found', f'file-{i}', bytes([kind]) + text.encode()
        yield 'check', f'file-{i}', bytes([kind | (i % 8) << 2, i]) + text.encode()
    for i, text in enumerate(matrices()):
        yield 'matrix', f'file-{i}', text.encode()
        yield 'grid', f'file-{i}', bytes([4 * i | i]) + text.encode()
        yield 'yaml', f'matrix-{i}', text.encode()
    yield 'yaml', 'config', ('model: org/model\n' + '\n'.join(f'{f[0][2:]}: {f[1]}' for f in FLAGS if len(f) == 2 and f[0].startswith('--'))).encode()
    for tensors in (4, 200, 1500):
        body = header(tensors)
        yield 'safetensors', f'file-{tensors}', struct.pack('<Q', len(body)) + body
        yield 'safetensors', f'header-{tensors}', b'h' + body
    for i, body in enumerate(hubs()): yield 'hub', f'answers-{i}', body


# ---- texts with secrets: values are drawn, forms are those of secret_*.c ----

SECRET_FORMS = ['export HF_TOKEN=%s', '--api-key %s %s --port 1', '--api-key \\\n  %s', '- --api-key\n- %s\n- --port', '["--api-key", "%s"]', "api_key=b'%s'", "SecretStr('%s')", '{"api_key": "%s"}', '{\\"api_key\\": \\"%s\\"}',
                '- name: HF_TOKEN\n  value: %s', '- value: %s\n  name: HF_TOKEN', 'password: |\n  %s\n  %s', 'password:\n  - %s', 'apiVersion: v1\ndata:\n  a: %s==\nkind: Secret', '{"kind":"Secret","data":{"a":"%s"}}', 'https://u:%s@host/x?token=%s&a=1',
                'Cookie: a=%s', 'Authorization: Bearer %s', 'curl -u u:%s \\\n  h', 'mysql -p%s', 'machine h\n login u\n password %s', '<password>%s</password>', 'the password is %s', 'hf_%s', 'sk-%s', 'eyJ%s.eyJ%s.%s', 'AKIAABCDEFGHIJKLMNOP:%s',
                '-----BEGIN RSA PRIVATE KEY-----\n%s\n%s\n-----END RSA PRIVATE KEY-----', 'Private-Lines: 2\n%s\n%s', 'api_key%%3D%s%%26x', 'hf_abcde\x1b[0m%s', 'hf_ab\u200b%s', 'password="%s\n%s"', '123456789:AA%s', 'token: %s', 'wandb login %s']


def secrets_texts():
    letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
    own = random.Random(7)
    for number, form in enumerate(SECRET_FORMS):
        words = tuple(''.join(own.choice(letters) for _ in range(40)) for _ in range(form.replace('%%', '').count('%s')))
        yield f'form-{number}', bytes([number % 4, number * 16 % 256]) + (form % words).encode()
    yield 'long', b'\x10\x00' + b'password="' + b'a' * 70000 + b'" token=x '


def main():
    folder, small = pathlib.Path(sys.argv[1]), '--small' in sys.argv
    count = 0
    for target, name, body in tables():
        if small and (len(body) > 4096 or name.startswith('family-')): continue
        (folder / target).mkdir(parents=True, exist_ok=True)
        (folder / target / f'made-{name}').write_bytes(body)
        count += 1
    print(f'{count} inputs in {folder}')


if __name__ == '__main__':
    main()
