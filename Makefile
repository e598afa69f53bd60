# Short words in front of Meson. `make help` lists them.
B ?= build
.PHONY: all check asan fuzz golden oracle bench fmt tidy layers install clean help

all: $(B)/build.ninja   ## build
	@ninja -C $(B) -j2
$(B)/build.ninja:
	@meson setup $(B) >/dev/null
check: all              ## unit, golden and CLI tests
	@meson test -C $(B) --print-errorlogs --num-processes 2
asan:                   ## the same under ASan and UBSan
	@test -f build-asan/build.ninja || CC=clang meson setup build-asan -Db_sanitize=address,undefined -Dbuildtype=debug >/dev/null
	@ninja -C build-asan -j2 && meson test -C build-asan --print-errorlogs --num-processes 2
fuzz:                   ## fuzz one reader: make fuzz T=config RUNS=100000
	@test -f build-fuzz/build.ninja || CC=clang meson setup build-fuzz -Dfuzz=true -Ddefault_library=static -Db_sanitize=address,undefined -Dbuildtype=debugoptimized >/dev/null
	@ninja -C build-fuzz -j2 && tools/fuzz.sh build-fuzz $(T) $(RUNS)
golden: all             ## rewrite the golden files; review the diff
	@tools/golden.sh $(B) --rewrite
bench: all              ## throughput
	@ninja -C $(B) bench
fmt:                    ## format the C sources
	@git ls-files '*.c' '*.h' | xargs clang-format -i
tidy: all               ## clang-tidy over the sources
	@tools/tidy.sh $(B)
layers:                 ## includes point one way
	@tools/check_layers.py
install: all
	@meson install -C $(B)
clean:
	@rm -rf build build-*
help:
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/:.*## */\t/' | expand -t 12
