#!/usr/bin/env python3
"""What each attention backend of vLLM refuses, asked of the backends' own classes: validate_configuration() and the constructor of the
implementation, for every compute capability, KV cache type, head size, block size and feature.

    tests/oracle/backends.py table RELEASE... --sources DIR --out data/engines/vllm/backends.json   DIR/RELEASE/vllm/... is its source, unpacked
    tests/oracle/backends.py choices RELEASE... --sources DIR --out tests/rules/backends.tsv        which backend the engine chooses, cell by cell
    ENV/bin/python tests/oracle/backends.py check       the rows of the installed release beside its own classes as they are; 77 without vLLM

Rows of other releases stay in the files. The classes are the engine's, whatever they import beside them (PyTorch, Triton, FlashInfer, compiled kernels) is a stand-in, so that one
Python without any engine asks every release. What is assumed of the stand-ins: every compiled kernel of the wheel is there; kernels that
FlashInfer downloads are there for NVFP4 alone. tests/unit/test_backend.c compares plan's choice with the cells."""
import argparse
import importlib.abc
import importlib.machinery
import importlib.util
import itertools
import json
import linecache
import os
import subprocess
import sys
import types
import typing

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
REAL = ("vllm.v1.attention", "vllm.attention", "vllm.platforms.interface", "vllm.platforms.cuda", "vllm.config.cache", "vllm.utils.torch_utils",
        "vllm.model_executor.layers.attention.mla_attention", "vllm.v1.kv_cache_interface")
COMPILED = ("vllm._C", "vllm._C_stable_libtorch", "vllm._moe_C", "vllm._moe_C_stable_libtorch", "vllm._qutlass_C", "vllm._flashmla_C",
            "vllm._flashmla_extension_C", "vllm.vllm_flash_attn._vllm_fa2_C", "vllm.vllm_flash_attn._vllm_fa3_C")
CAPABILITIES = (70, 72, 75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121)


class AnyBase:
    apply = None

    def __init__(self, *args, **keywords):
        pass


class Anything:
    """Stands for what is imported and not asked: any attribute, call, item or base class."""
    __version__ = "3.7.0"

    def __init__(self, name="anything"):
        self.__dict__["_name"] = name

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        value = Anything(self._name + "." + name)
        self.__dict__[name] = value
        return value

    def __call__(self, *args, **keywords):
        if len(args) == 1 and not keywords and callable(args[0]) and not isinstance(args[0], Anything):
            return args[0]  # a decorator
        return Anything(self._name + "()")

    def __mro_entries__(self, bases):
        return (AnyBase,) if next(base for base in bases if isinstance(base, Anything)) is self else ()

    def __getitem__(self, key):
        return Anything(self._name + "[]")

    def __iter__(self):
        return iter(())

    def __or__(self, other):
        return self

    __ror__ = __or__

    def __int__(self):
        return 0

    def __bool__(self):
        return False

    def _number(self, other=None):
        return Anything("number")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = _number
    __pow__ = __neg__ = __and__ = __lshift__ = __rshift__ = _number

    def __lt__(self, other):
        return False

    __gt__ = __le__ = __ge__ = __lt__

    def __hash__(self):
        return id(self)

    def __repr__(self):
        return self._name


class Cell:
    """What one layer asks of a backend; the stand-ins read it."""

    def __init__(self, capability=90, head=128, dtype="bfloat16", kv="auto", block=None, mla=False, sparse=False, sinks=False, mm_prefix=False,
                 sliding=False, kind="decoder", shape=(512, 128, 64, 128)):
        self.capability, self.head, self.dtype, self.kv, self.block, self.mla, self.sparse = capability, head, dtype, kv, block, mla, sparse
        self.sinks, self.mm_prefix, self.sliding, self.kind, self.shape = sinks, mm_prefix, sliding, kind, shape


class Stands(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads the modules in REAL from the sources of one release and everything else as Anything."""

    def __init__(self, folder, release):
        self.folder, self.release, self.cell = folder, tuple(map(int, release.split("."))), Cell()
        self.platform = None

    def find_spec(self, name, path=None, target=None):
        top = name.split(".")[0]
        if top in sys.stdlib_module_names or top in ("typing_extensions",):
            return None
        if top == "vllm" and any(name == real or name.startswith(real + ".") for real in REAL):
            base = os.path.join(self.folder, *name.split("."))
            for file, package in ((os.path.join(base, "__init__.py"), True), (base + ".py", False)):
                if os.path.isfile(file):
                    return importlib.util.spec_from_file_location(name, file, submodule_search_locations=[base] if package else None)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__path__, module.__version__ = [], "2.13.0"
        anything = Anything(spec.name)
        module.__getattr__ = lambda name: self.fake(spec.name, name, anything)
        return module

    def exec_module(self, module):
        pass

    def config(self):
        """The engine's config of the cell, as far as backends look at it."""
        if getattr(self.cell, "config", None):
            return self.cell.config
        rank, nope, rope, value = self.cell.shape
        text = types.SimpleNamespace(kv_lora_rank=rank, qk_nope_head_dim=nope, qk_rope_head_dim=rope, v_head_dim=value, index_topk=2048, q_lora_rank=1536,
                                     model_type="", architectures=[])
        model = Anything("model_config")
        model.__dict__.update(hf_text_config=text, hf_config=text, get_head_size=lambda: self.cell.head, rswa_window=None, use_mla=self.cell.mla,
                              is_mm_prefix_lm=self.cell.mm_prefix, is_diffusion=False, dtype=dtypes()[self.cell.dtype],
                              get_num_attention_heads=lambda *_: 32, get_num_kv_heads=lambda *_: 8)
        config = Anything("vllm_config")
        cache = Anything("cache_config")
        cache.__dict__.update(cache_dtype=self.cell.kv, block_size=self.cell.block or 16, enable_prefix_caching=True)
        attention = Anything("attention_config")
        attention.__dict__.update(flash_attn_version=None, use_trtllm_attention=None, disable_flashinfer_prefill=False, use_non_causal=False,
                                  flex_attn_block_m=None, flex_attn_block_n=None)
        parallel = types.SimpleNamespace(decode_context_parallel_size=1, prefill_context_parallel_size=1, tensor_parallel_size=1, pipeline_parallel_size=1,
                                         cp_kv_cache_interleave_size=1, dcp_comm_backend="ag_rs")
        config.__dict__.update(model_config=model, cache_config=cache, attention_config=attention, parallel_config=parallel, speculative_config=None,
                               kv_transfer_config=None)
        self.cell.config = config
        return config

    def fa_supported(self, version):
        major = self.cell.capability // 10
        return {2: major >= 8, 3: major == 9, 4: major in (9, 10, 11) and self.release >= (0, 17, 0)}[version]

    def fake(self, module, name, anything):
        """What a stand-in answers."""
        if module == "vllm.envs":
            return None  # no variable is set
        if module + "." + name == "vllm.envs":
            return importlib.import_module("vllm.envs")
        if any((module + "." + name + ".").startswith(real + ".") or real.startswith(module + "." + name + ".") for real in REAL):
            try:
                return importlib.import_module(module + "." + name)
            except ImportError:
                pass
        if name == "current_platform":
            return self.platform
        if name in ("get_current_vllm_config", "get_current_vllm_config_or_none"):
            return self.config
        if name == "is_fa_version_supported":
            return self.fa_supported
        if name in ("supports_trtllm_attention", "can_use_trtllm_attention", "has_nvidia_artifactory"):
            return lambda *_, **__: self.cell.kv.startswith("nvfp4") and self.cell.capability // 10 == 10
        if name == "resolve_obj_by_qualname":
            return lambda path: getattr(importlib.import_module(path.rpartition(".")[0]), path.rpartition(".")[2])
        if name == "get_fp8_min_max":
            return lambda: (-448.0, 448.0)
        if name in ("get_dcp_world_size_and_rank", "get_pcp_world_size_and_rank"):
            return lambda *_, **__: (1, 0)
        if name in ("get_dcp_group", "get_pcp_group", "get_tp_group"):
            return lambda: types.SimpleNamespace(world_size=1, rank_in_group=0)
        if name == "force_use_trtllm_attention":
            return lambda: None
        if name.startswith("has_flashinfer"):
            return lambda *_: True
        return getattr(anything, name)


def dtypes():
    import torch
    return {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32}


class Release:
    """The backends of one release."""

    def __init__(self, folder, release, installed=False):
        self.stands = stands = Stands(folder, release)
        if not installed:
            sys.meta_path.insert(0, stands)
        interface = importlib.import_module("vllm.platforms.interface")

        class Asked:
            """A device of the cell's capability."""
            dispatch_key = "CUDA"

            @classmethod
            def get_device_capability(cls, device_id=0):
                return interface.DeviceCapability(*divmod(stands.cell.capability, 10))

            @classmethod
            def has_device_capability(cls, capability, device_id=0):
                given = capability if isinstance(capability, int) else capability[0] * 10 + capability[1]
                return stands.cell.capability >= given

            @classmethod
            def get_device_name(cls, device_id=0):
                return "{gpu}"

            @classmethod
            def num_compute_units(cls, device_id=0):
                return 108

            @classmethod
            def fp8_dtype(cls):
                return Anything("fp8")

        if installed:
            del Asked.fp8_dtype
        stands.platform = type("Platform", (Asked, interface.Platform), {"_enum": interface.PlatformEnum.CUDA, "device_type": "cuda", "device_name": "cuda"})()
        cuda = importlib.import_module("vllm.platforms.cuda")
        self.cuda = type("Cuda", (Asked, cuda.CudaPlatformBase), {})
        stands.platform = self.cuda()
        if installed:
            self.replace(stands)
        at = next((name for name in ("vllm.v1.attention.backends.registry", "vllm.attention.backends.registry")
                   if os.path.isfile(os.path.join(folder, *name.split(".")) + ".py")), None)
        self.enum = getattr(importlib.import_module(at), "AttentionBackendEnum", None) if at else None  # to 0.11.0 conditions chose
        self.classes, self.absent = {}, {}

    @staticmethod
    def replace(stands):
        """In the engine itself: the device, the config of the cell, and which generations of FlashAttention the device has."""
        import vllm.config
        import vllm.platforms
        import vllm.utils.flashinfer
        import vllm.vllm_flash_attn.flash_attn_interface as flash
        vllm.platforms.current_platform = vllm.platforms._current_platform = stands.platform
        flash.is_fa_version_supported = stands.fa_supported
        for module, names in ((vllm.config, ("get_current_vllm_config", "get_current_vllm_config_or_none")),
                              (vllm.utils.flashinfer, ("supports_trtllm_attention", "can_use_trtllm_attention", "force_use_trtllm_attention"))):
            for name in names:
                setattr(module, name, stands.fake(module.__name__, name, None))

    def load(self, name):
        if name in self.classes or name in self.absent:
            return self.classes.get(name)
        self.stands.cell = Cell(capability=90)
        try:
            path = self.enum[name].value
        except (KeyError, ValueError):
            self.absent[name] = True
            return None
        module, cls = path.rsplit(".", 1)
        self.classes[name] = getattr(importlib.import_module(module), cls)
        return self.classes.get(name)

    def reasons(self, name, cell):
        """validate_configuration() of the cell."""
        cls = self.load(name)
        self.stands.cell = cell
        given = dict(head_size=cell.head, dtype=dtypes()[cell.dtype], kv_cache_dtype=cell.kv, block_size=cell.block, use_mla=cell.mla,
                     has_sink=cell.sinks, use_sparse=cell.sparse, use_mm_prefix=cell.mm_prefix, use_per_head_quant_scales=False,
                     device_capability=self.stands.platform.get_device_capability(), attn_type=cell.kind, has_sliding_window=cell.sliding)
        takes = cls.validate_configuration.__code__.co_varnames[1:cls.validate_configuration.__code__.co_argcount]
        return cls.validate_configuration(**{key: given[key] for key in takes if key in given})

    def constructs(self, name, cell):
        """The words with which the constructor of the implementation refuses the cell; None: it does not."""
        cls = self.load(name)
        self.stands.cell = cell
        rank, nope, rope, value = cell.shape
        more = dict(q_lora_rank=1536, kv_lora_rank=rank, qk_nope_head_dim=nope, qk_rope_head_dim=rope, qk_head_dim=nope + rope, v_head_dim=value,
                    kv_b_proj=Anything("kv_b_proj")) if cell.mla else {}
        try:
            cls.get_impl_cls()(num_heads=32, head_size=cell.head, scale=1.0, num_kv_heads=1 if cell.mla else 8, alibi_slopes=None,
                               sliding_window=None, kv_cache_dtype=cell.kv, logits_soft_cap=None, attn_type=cell.kind,
                               kv_sharing_target_layer_name=None, **more)
        except (ValueError, NotImplementedError, AssertionError) as error:
            last = error.__traceback__
            while last.tb_next:
                last = last.tb_next
            code = linecache.getline(last.tb_frame.f_code.co_filename, last.tb_lineno).split()
            words = str(error).replace("capability %d.%d" % divmod(cell.capability, 10), "capability {capability}")
            return words if code[:1] == ["raise"] else None  # an assertion, or a stand-in that is no number
        except (TypeError, AttributeError, KeyError, IndexError, RuntimeError, ImportError):
            pass  # a stand-in, or no device
        return None


    def no_block(self, name, cell):
        """To 0.17 the block size is looked at when the cache is laid out."""
        if not cell.block or cell.mla or self.stands.release >= (0, 18, 0):
            return False
        self.stands.cell = cell
        if self.enum is None:
            try:
                self.classes[name].get_kv_cache_shape(1, cell.block, 8, cell.head)
            except ValueError as error:
                return "Block size" in str(error)
            return False
        plain = dict(capability=cell.capability, head=cell.head)
        least = next(b for b in ALL_BLOCKS if "block_size not supported" not in self.reasons(name, Cell(block=b, **plain)))
        return cell.block % least


# ---- the table ----------------------------------------------------------------------------------------------------------------------

BACKENDS = ("FLASH_ATTN", "FLASHINFER", "TRITON_ATTN", "FLEX_ATTENTION", "TURBOQUANT", "TRITON_FLASH_ATTN", "TRITON_FLASHINFER",
            "FLASH_ATTN_DIFFKV", "TRITON_ATTN_DIFFKV", "FLASH_ATTN_MLA", "FLASHMLA", "FLASHINFER_MLA", "TOKENSPEED_MLA", "CUTLASS_MLA", "TRITON_MLA",
            "FLASHMLA_SPARSE", "FLASHINFER_MLA_SPARSE", "FLASH_ATTN_MLA_SPARSE", "FLASHINFER_MLA_SPARSE_SM90", "FLASHINFER_MLA_SPARSE_SM120")
KV = ("auto", "float16", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2", "fp8_ds_mla", "nvfp4_ds_mla", "nvfp4", "nvfp4_4over6", "int8_per_token_head",
      "fp8_per_token_head", "int4_per_token_head", "turboquant_k8v4", "turboquant_4bit_nc", "turboquant_k3v4_nc", "turboquant_3bit_nc")
DTYPES = ("float16", "bfloat16", "float32")
KINDS = ("decoder", "encoder", "encoder_only", "encoder_decoder")
HEADS = (32, 64, 80, 128, 192, 256, 320, 512)
BLOCKS = (None, 16, 64, 128)
ALL_HEADS = sorted({*range(1, 42), 60, 63, *range(48, 577, 8)})
ALL_BLOCKS = sorted({*range(1, 34), *range(48, 257, 16), 512, 1024})
FEATURES = {"mm_prefix": "partial multimodal", "sinks": "attention sinks", "sliding": "sliding window"}


def spans(values, asked):
    """The accepted of the `asked` numbers: "first-last/step", or the stretches of them."""
    values = sorted(values)
    if not values:
        return ""
    for step in (1, 8, 16, 32, 64, 128):
        first, last = values[0], values[-1]
        if len(values) > 2 and values == [v for v in asked if first <= v <= last and v % step == 0]:
            return "%d-%s/%d" % (first, "" if last == asked[-1] else last, step)
    parts, i = [], 0
    while i < len(values):  # stretches of what was asked
        at, j = asked.index(values[i]), i
        while j + 1 < len(values) and values[j + 1] == asked[at + j + 1 - i]:
            j += 1
        parts.append("%d" % values[i] if j == i else "%d-%s/1" % (values[i], "" if values[j] == asked[-1] else values[j]))
        i = j + 1
    return ",".join(parts)


def rows_of(cells, axes):
    """Sets of cells as products: [{axis: values}]; `axes` is {axis: every value}."""
    if not cells:
        return []
    seen = {axis: {cell[i] for cell in cells} for i, axis in enumerate(axes)}
    size = 1
    for axis in axes:
        size *= len(seen[axis])
    if size == len(cells):
        return [{axis: sorted(values, key=axes[axis].index) for axis, values in seen.items() if len(values) < len(axes[axis])}]
    best = None
    for i, axis in enumerate(axes):
        if len(seen[axis]) > 1:
            groups = {}
            for value in seen[axis]:
                rest = frozenset(cell[:i] + cell[i + 1:] for cell in cells if cell[i] == value)
                groups.setdefault(rest, set()).add(value)
            if len(groups) > 1 and (best is None or len(groups) < len(best[1])):
                best = (i, groups)
    i, groups = best
    return [row for _, values in sorted(groups.items(), key=lambda g: str(sorted(g[1], key=str)))
            for row in rows_of({cell for cell in cells if cell[i] in values}, axes)]


def ask(release, name, capability):
    """The row of one backend on one capability; None: it does not run there."""
    cls = release.load(name)
    if cls is None:
        return None
    mla, sparse = bool(cls.is_mla()), bool(cls.is_sparse()) if hasattr(cls, "is_sparse") else False
    heads = (576,) if mla else HEADS

    def cell(**given):
        return Cell(**dict(dict(capability=capability, mla=mla, sparse=sparse, head=576 if mla else 128), **given))

    def without(reason, **given):
        return not any(said.startswith(reason) for said in release.reasons(name, cell(**given)))

    if not without("compute capability"):
        return None
    kv = [word for word in KV if without("kv_cache_dtype not", kv=word)]
    row = {"heads": spans([h for h in ALL_HEADS if without("head_size not", head=h)], ALL_HEADS),
           "blocks": spans([b for b in ALL_BLOCKS if without("block_size not", block=b)], ALL_BLOCKS),
           "dtypes": [word for word in DTYPES if without("dtype not", dtype=word)], "kv": kv,
           "does": [word for word, said in FEATURES.items() if without(said, **{word: True})],
           "kinds": [kind for kind in KINDS if without("attention type", kind=kind)]}
    heads = [h for h in heads if without("head_size not", head=h)]
    axes = {"kv": kv, "heads": heads, "blocks": [b for b in BLOCKS if without("block_size not", block=b)],
            "sinks": [False, True] if "sinks" in row["does"] else [False], "mm_prefix": [False, True] if "mm_prefix" in row["does"] else [False]}
    names = ("kv", "head", "block", "sinks", "mm_prefix")
    dtype = "bfloat16" if "bfloat16" in row["dtypes"] else row["dtypes"][0]
    refused = {}
    for values in itertools.product(*axes.values()):
        said = release.reasons(name, cell(dtype=dtype, **dict(zip(names, values))))
        for reason in said:
            refused.setdefault((reason, "check"), set()).add(values)
    for word in () if sparse else kv:  # a sparse layer replaces the type before its implementation is built
        for head in heads:
            at = cell(kv=word, head=head, dtype=dtype)
            said = None if release.reasons(name, at) else release.constructs(name, at)
            if said:
                refused.setdefault((said, "constructor"), set()).update(
                    values for values in itertools.product(*axes.values()) if values[:2] == (word, head))
    row["refuses"] = []
    for (reason, by), cells in sorted(refused.items()):
        for shown in rows_of(cells, axes):
            if "heads" in shown:  # the heads between those of the grid
                one = {key: shown.get(key, axes[key])[0] for key in axes}

                def says(head):
                    at = cell(dtype=dtype, head=head, **{key: one[axis] for key, axis in zip(names, axes) if key != "head"})
                    return release.constructs(name, at) == reason if by == "constructor" else reason in release.reasons(name, at)
                shown["heads"] = spans([h for h in ALL_HEADS if says(h)], ALL_HEADS)
            if "blocks" in shown:  # those that it takes instead
                one = {key: shown.get(key, axes[key])[0] if key != "heads" or "heads" not in shown else int(shown["heads"].split("-")[0].split(",")[0]) for key in axes}
                shown["blocks"] = spans([b for b in ALL_BLOCKS if reason not in release.reasons(
                    name, cell(dtype=dtype, block=b, **{key: one[axis] for key, axis in zip(names, axes) if key != "block"}))], ALL_BLOCKS)
            row["refuses"].append(dict(shown, reason=reason, by=by))
    return row


def asked(folder, version):
    """{backend: {capability: row}} of one release."""
    release = Release(folder, version)
    return {name: {str(c): row for c in CAPABILITIES for row in [ask(release, name, c)] if row} for name in BACKENDS}


# vllm#26431 and what later releases check in the constructor: Triton compiles no load of such a type before 8.9.
BY_TRITON = ("TRITON_ATTN", "TRITON_ATTN_DIFFKV", "TRITON_MLA")
FP8_KERNEL = "type fp8e4nv not supported in this architecture. The supported fp8 dtypes are ('fp8e4b15', 'fp8e5')"


def with_kernels(backends):
    """Releases that do not look, and whose kernel does not compile."""
    for name in BY_TRITON:
        for capability, row in backends[name].items():
            words = [word for word in row["kv"] if word.startswith("fp8")]
            if int(capability) < 89 and words and not any("fp8" in said.get("kv", ()) for said in row["refuses"]):
                row["refuses"].append({"kv": words, "reason": FP8_KERNEL, "by": "kernel"})


def release_key(version):
    return tuple(map(int, version.split(".")))


def earlier(path, releases):
    """Rows of releases before those that are asked now, as a file has them."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as f:
        rows = [(row.pop("backend"), row.pop("since"), row.pop("capability"), None if row.pop("absent", False) else row) for row in json.load(f)]
    first = min(map(release_key, releases))
    if any(release_key(row[1]) > first and row[1] not in releases for row in rows):
        sys.exit(f"{path} has later releases than {releases[0]}: ask those again too")
    return [row for row in rows if release_key(row[1]) < first]


def merged(rows, by_release):
    """[(backend, since, capabilities, row or None)]: the rows of releases before, and what changes from one release to the next."""
    before = {(name, str(capability)): row for name, _, capabilities, row in rows for capability in capabilities}
    for version, backends in by_release:
        with_kernels(backends)
        for name in BACKENDS:
            changed = {}
            for capability in map(str, CAPABILITIES):
                row = backends[name].get(capability)
                if before.get((name, capability)) != row:
                    before[(name, capability)] = row
                    changed.setdefault(json.dumps(row), []).append(int(capability))
            rows += [(name, version, capabilities, json.loads(text)) for text, capabilities in changed.items()]
    return sorted(rows, key=lambda row: (BACKENDS.index(row[0]), release_key(row[1])))


# ---- what the engine chooses ---------------------------------------------------------------------------------------------------------

SHAPES = {576: (512, 128, 64, 128), 577: (512, 192, 64, 256), 320: (256, 64, 64, 128), 288: (256, 64, 32, 64)}  # head: latent, nope, rope, value


def cells(mla):
    """Cells without a capability: everything that one layer may ask of this release, a few axes at a time."""
    known = typing.get_args(importlib.import_module("vllm.config.cache").CacheDType)
    kv = [word for word in KV if word in known and (not word.startswith("turboquant") or word.endswith("k8v4"))]
    if mla:
        for head, shape in SHAPES.items():
            for word, block, sparse in itertools.product(kv, (None, 8, 16, 64, 128), (False, True)):
                yield dict(mla=True, sparse=sparse, head=min(head, 576), shape=shape, kv=word, block=block)
        return
    plain = dict(dtype="bfloat16", kv="auto", block=None, sinks=False, mm_prefix=False, sliding=False)
    seen = set()
    for axes in (dict(kv=kv, head=(16, 32, 64, 72, 80, 96, 100, 112, 128, 160, 192, 256, 320, 512)), dict(dtype=DTYPES, head=(16, 64, 80, 100, 128, 256, 512)),
                 dict(block=(1, 8, 16, 24, 32, 48, 64, 128, 256), head=(64, 80, 128, 256, 512), kv=("auto", "fp8")),
                 dict(sinks=(False, True), mm_prefix=(False, True), sliding=(False, True), head=(64, 80, 128, 256, 512), kv=("auto", "fp8", "fp8_e5m2"),
                      block=(None, 16))):
        if "kv" in axes:
            axes["kv"] = [word for word in axes["kv"] if word in known]
        for values in itertools.product(*axes.values()):
            cell = dict(plain, **dict(zip(axes, values)))
            if str(cell) not in seen:
                seen.add(str(cell))
                yield cell


def chosen(release, cell):
    """The engine's choice: a backend's name, "-" where it refuses, "!" before it where the implementation does when it is built,
    "~" where its kernel does not compile."""
    release.stands.cell = cell
    takes = release.cuda.get_attn_backend_cls.__code__
    takes = takes.co_varnames[:takes.co_argcount]
    given = dict(head_size=cell.head, dtype=dtypes()[cell.dtype], kv_cache_dtype=cell.kv, block_size=cell.block, use_mla=cell.mla, has_sink=cell.sinks,
                 use_sparse=cell.sparse, use_mm_prefix=cell.mm_prefix, use_per_head_quant_scales=False, attn_type=cell.kind, has_sliding_window=cell.sliding,
                 use_v1=True)
    if "attn_selector_config" in takes:
        config = importlib.import_module("vllm.v1.attention.selector" if os.path.isfile(os.path.join(release.stands.folder, "vllm/v1/attention/selector.py"))
                                         else "vllm.attention.selector").AttentionSelectorConfig
        given = {"attn_selector_config": config(**{key: value for key, value in given.items() if key in config._fields}), "num_heads": 32}
    elif cell.block is None:
        given["block_size"] = 16 if release.enum is None else None
    try:
        path = release.cuda.get_attn_backend_cls(None, **{key: value for key, value in given.items() if key in takes})
    except (ValueError, AssertionError):
        return "-"
    module, _, cls = path.rpartition(".")
    backend = getattr(importlib.import_module(module), cls)
    name = backend.get_name().replace("_VLLM_V1", "")
    if name not in release.classes:
        release.classes[name] = backend
    if not cell.sparse and release.constructs(name, cell) or release.no_block(name, cell):
        return "!" + name
    return "~" + name if name in BY_TRITON and cell.capability < 89 and cell.kv.startswith("fp8") else name


def written(cell):
    """A cell as the words of its row."""
    words = [("sparse " if cell.get("sparse") else "") + "mla" if cell.get("mla") else "plain", cell.get("dtype", "bfloat16"), cell["kv"], str(cell["head"]),
             "/".join(map(str, cell["shape"])) if cell.get("mla") else "-", str(cell["block"] or "-")]
    return words + [",".join(key for key in ("sinks", "mm_prefix", "sliding") if cell.get(key)) or "-"]


def choices(folder, version):
    """Lines: release, cell, and the choice for each capability, runs of the same joined."""
    release = Release(folder, version)
    for mla in (False, True) if release.enum else (False,):  # to 0.11.0 the platform set the block size of MLA before
        for given in cells(mla):
            said = [chosen(release, Cell(capability=c, **given)) for c in CAPABILITIES]
            runs = [(c, s) for i, (c, s) in enumerate(zip(CAPABILITIES, said)) if i == 0 or said[i - 1] != s]
            yield [version, *written(given), " ".join("%d:%s" % run for run in runs)]


def check(path):
    """The rows of the installed release beside its own classes, with everything that they import."""
    for name in COMPILED:  # kernels without a driver
        sys.modules[name] = Stands("", "0").create_module(importlib.machinery.ModuleSpec(name, None))
    import torch
    empty = torch.empty
    torch.empty = lambda *args, **keywords: empty(*args, **dict(keywords, device="meta"))  # workspaces of modules, without a device
    import vllm
    folder = os.path.dirname(os.path.dirname(vllm.__file__))
    release = Release(folder, vllm.__version__, installed=True)
    count = different = 0
    with open(path, encoding="utf-8") as f:
        rows = [line.rstrip("\n").split("\t") for line in f if line.startswith(vllm.__version__ + "\t")]
    for _, kind, dtype, kv, head, shape, block, features, said in rows:
        given = dict(dtype=dtype, kv=kv, head=int(head), block=None if block == "-" else int(block), mla="mla" in kind, sparse="sparse" in kind,
                     **{key: key in features for key in FEATURES})
        if shape != "-":
            given["shape"] = tuple(map(int, shape.split("/")))
        runs, expected = dict(run.split(":") for run in said.split()), None
        for capability in CAPABILITIES:
            expected = runs.get(str(capability), expected)
            found = chosen(release, Cell(capability=capability, **given))
            count += 1
            if found != expected:
                different += 1
                if different <= 20:
                    print("%s on %d: %s, the table says %s" % (given, capability, found, expected))
    print("%d cells of vLLM %s, %d different" % (count, vllm.__version__, different))
    return 1 if different or not count else 0


def each(what, sources, releases):
    for version in releases:
        out = subprocess.run([sys.executable, os.path.abspath(__file__), what, version, "--sources", sources], stdout=subprocess.PIPE, check=True)
        yield version, json.loads(out.stdout)


def write_rows(rows, out):
    with open(out, "w", encoding="utf-8") as f:
        f.write("[\n" + ",\n".join(json.dumps(dict({"backend": name, "since": since, "capability": capabilities}, **(row or {"absent": True})))
                                   for name, since, capabilities, row in rows) + "\n]\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("table", "choices", "check", "ask", "choose"))
    parser.add_argument("--sources")
    parser.add_argument("--out")
    parser.add_argument("releases", nargs="*")
    options = parser.parse_args()
    if options.what == "check":
        if not importlib.util.find_spec("vllm"):
            return 77
        return check(os.path.join(ROOT, "tests/rules/backends.tsv"))
    if options.what == "ask":
        json.dump(asked(os.path.join(options.sources, options.releases[0]), options.releases[0]), sys.stdout)
    elif options.what == "choose":
        json.dump(list(choices(os.path.join(options.sources, options.releases[0]), options.releases[0])), sys.stdout)
    elif options.what == "table":
        write_rows(merged(earlier(options.out, options.releases), each("ask", options.sources, options.releases)), options.out)
    else:
        kept = []
        if os.path.exists(options.out):
            with open(options.out, encoding="utf-8") as f:
                kept = [line for line in f if line.split("\t", 1)[0] not in options.releases]
        lines = kept + ["\t".join(line) + "\n" for _, made in each("choose", options.sources, options.releases) for line in made]
        with open(options.out, "w", encoding="utf-8") as f:
            f.writelines(sorted(lines, key=lambda line: release_key(line.split("\t", 1)[0])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
