# Short words in front of Meson. `make help` lists them.
B ?= build
.PHONY: gate gate-times nightly release app equal space wheel-arm wheels try-wheels package-arm all sabotage fleet matrix-oracle pipelines site package wheel python root seeds oracle-full agreement check asan fuzz coverage mutants golden oracle bench fmt tidy layers install clean help

all: $(B)/build.ninja   ## build
	@ninja -C $(B) -j2
$(B)/build.ninja:
	@tools/setup.sh $(B)
check:                  ## unit, golden and CLI tests, in a build that walks its invariants
	@test -f build-check/build.ninja || tools/setup.sh build-check -Dchecks=true
	@ninja -C build-check -j2 && meson test -C build-check --print-errorlogs --num-processes 2
asan:                   ## the same under ASan and UBSan
	@test -f build-asan/build.ninja || CC=clang tools/setup.sh build-asan -Db_sanitize=address,undefined -Dbuildtype=debug
	@ninja -C build-asan -j2 && meson test -C build-asan --print-errorlogs --num-processes 2
fuzz:                   ## fuzz one target: make fuzz T=config RUNS=100000
	@test -f build-fuzz/build.ninja || CC=clang tools/setup.sh build-fuzz -Dfuzz=true -Ddefault_library=static -Db_sanitize=address,undefined -Dbuildtype=debugoptimized
	@ninja -C build-fuzz -j2 && tools/fuzz.sh build-fuzz $(T) $(RUNS)
coverage:               ## which lines tests and corpora reach, by folder (clang, llvm)
	@tools/coverage.py
gate:                   ## what a change must pass: .ci/run
	@.ci/run
gate-times:             ## the processor time of each step of the last gate (of each test: tools/gate_times.py build --tests)
	@tools/gate_times.py $(B)
nightly:                ## everything else: .ci/nightly; SEED=N draws as that run did
	@.ci/nightly
mutants:                ## change one line at a time: which test notices? half an hour
	@tools/mutants.py
oracle: all             ## real PyTorch and vLLM as judges
	@rc=0; for t in 'allocator_oracle.py --traces 20' test_torch.py test_vllm.py test_sglang_plan.py test_vision.py processors.py; do python3 tests/oracle/$$t $(B)/cli/oomsight; c=$$?; [ $$c -eq 77 ] || [ $$c -eq 0 ] || rc=1; done; exit $$rc
sabotage: all           ## 200 signals at random times to all processes of dry runs; nothing may be left. SEED=N
	@python3 tests/shim/sabotage.py $(B)/cli/oomsight --signals 200 $(if $(SEED),--seed $(SEED))
seeds: all              ## the reported cases, raised again by the engines of those versions
	@python3 tests/oracle/seeds.py $(B)/cli/oomsight; c=$$?; [ $$c -eq 77 ] || exit $$c
oracle-full: seeds      ## every installed engine in every configuration; rewrites the rows of docs/evidence/results
	@python3 tests/oracle/matrix.py $(B)/cli/oomsight && tools/figures.py --write
agreement: all          ## plan beside the engine's own figures; rewrites docs/evidence/results/agreement.csv
	@tools/agreement.py $(B)/cli/oomsight --write docs/evidence/results/agreement.csv; tools/figures.py --write
pipelines: all          ## incidents through the real rsyslog, PostgreSQL, Prometheus and ClickHouse's engine
	@tools/fleet_venv.sh; tests/fleet/run.sh $(B)
matrix-oracle: all      ## twelve dry starts over two versions by the pool and by Ray, workers killed; an hour
	@python3 tests/oracle/test_matrix.py $(B)/cli/oomsight --points 12; c=$$?; [ $$c -eq 77 ] || exit $$c
fleet: all              ## a thousand pods followed for a while, with twenty kills; prints lag, processor time, memory
	@python3 tests/explain/fleet.py $(B)/cli/oomsight --pods 1000 --incidents 200 --kills 20 --seconds 80
golden: all             ## rewrite the golden files and the outputs in the documents; review the diff
	@tools/golden.sh $(B) --rewrite && tools/check_docs.py $(B)/cli/oomsight --rewrite && tools/man_options.py $(B)/cli/oomsight --write && tools/format_pages.py $(B)/cli/oomsight --write && tools/phase_page.py $(B)/cli/oomsight --write && tools/phase_picture.py $(B)/cli/oomsight --write && tools/run_pictures.py $(B)/cli/oomsight --write && tools/messages.py --write
app:                    ## the page that needs no install, in build/app: WebAssembly by PyPI's ziglang
	@tools/app.sh build-wasm build/app
space: app              ## the page as a static Space of Hugging Face, in build/space
	@rm -rf build/space && cp -r build/app build/space && cp packaging/space/README.md build/space/
site: all               ## the documentation as pages, in build/site
	@tools/site.sh $(B)
bench: all              ## throughput
	@ninja -C $(B) bench
wheel:                  ## dist/*.whl: command, library, stand-ins and binding, for any Linux with glibc 2.17
	@tools/portable.sh build-portable >build-portable.log 2>&1 || { tail -n 40 build-portable.log; exit 1; }
	@tools/make_wheel.py build-portable dist
wheel-arm:              ## the same for ARM servers, by zig: dist-arm/*.whl
	@tools/wheels.sh dist-arm aarch64-linux-gnu
wheels:                 ## for everything else, into dist-others: ARM, musl, macOS, Windows; try-wheels runs what can be run here
	@tools/wheels.sh dist-others
try-wheels:
	@tests/packages/try_wheels.sh dist-others
equal: all              ## JSON of plan and explain by every build that is here, byte for byte; SHARED=DIR: all configs and logs
	@tests/packages/equal.py $(B)/cli/oomsight $(if $(SHARED),--shared $(SHARED))
package: wheel          ## dist/*.tar.xz and dist/*.deb of the same build
	@tools/package.sh build-portable dist
ifdef VERSION
release: all            ## VERSION=x MODELS=dir: what that vLLM changed, asked of itself, into data/ and docs/evidence/releases
	@tools/release.py $(B)/cli/oomsight $(VERSION) --write --page docs/evidence/releases/$(VERSION).md $(if $(MODELS),--models $(MODELS))
else
release: package        ## wheel, tarball and Debian package in dist/, with the list of what is linked in and SHA256SUMS
	@tools/version.py && tools/sbom.py build-portable dist >/dev/null && rm -rf dist/licenses && cd dist && sha256sum *.whl *.tar.xz *.deb *.cdx.json > SHA256SUMS && cat SHA256SUMS
endif
package-arm: wheel-arm  ## dist/*_arm64.deb out of the wheel for ARM
	@tools/arm_deb.sh dist-arm/*.whl dist
python: all             ## the Python binding: types and tests
	@tests/python/run.sh $(B)
root: wheel             ## the wheel in a minimal Debian root (debootstrap, as root)
	@tests/python/minimal_root.sh dist/*.whl
try-packages: package   ## the .deb, the tarball and the image, installed in a Debian root and run (as root)
	@tests/packages/try_packages.sh dist
try-gates: wheel        ## action, workflow, GitLab job, pre-commit hook and initContainer, run as they are written
	@tests/gates/try_gates.py dist/*.whl
fmt:                    ## format the C sources
	@git ls-files '*.c' '*.h' | xargs clang-format -i
tidy: all               ## clang-tidy over the sources
	@tools/tidy.sh $(B)
layers:                 ## includes point one way
	@tools/check_layers.py
install: all
	@meson install -C $(B)
clean:
	@rm -rf build build-* dist
help:
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## */\t/' | expand -t 12
