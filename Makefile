# SPDX-License-Identifier: Apache-2.0
#
#   make              the C library, in build/lib
#   make demo         builds it, runs Examples/demo and Examples/downloader, and
#                     tells their stories
#   make test         every test; the last line counts them
#   make fuzz         looks for bytes that break what reads them (SECONDS=30)
#   make docs         the documentation of the Swift module, in build/docs
#   make api          notes the Swift module's public API as it is now
#   make bench        the benchmarks
#   make matrix       what may happen during an emission, here and elsewhere
#   make compare-foundation   the same scripts on Linux's Foundation
#   make install      into PREFIX (/usr/local), below DESTDIR if that is set
#   make uninstall    removes what install put there
#   make clean

PREFIX ?= /usr/local
VERSION := 0.1.0

MAKEFLAGS += --no-builtin-rules
.DELETE_ON_ERROR:
.PHONY: all lib demo docs api test bench matrix compare-foundation install \
  uninstall clean

all: lib build/bin/cbr

# --------------------------------------------------------------- Compiling --

platform := $(shell find Sources/CPlatform -name '*.c')
platform_header := Sources/CPlatform/include/CPlatform.h
# The folders are listed too, so that removing a file is noticed.
sources := Makefile Package.swift $(shell find include Sources/CPlatform \
  Sources/CSQLite Sources/CallbackRegistry Sources/CInterop \
  -name '*.docc' -prune -o -print)

# The command's.
command := $(shell find Sources/cbr -name '*.swift')

# The objects that make up the library. CInterop's holds the engine as well:
# Embedded Swift compiles a module's functions into the module that uses them.
objects = .build-c/$(1)/release/CInterop.build/CInterop.o \
  $(platform:Sources/CPlatform/%=.build-c/$(1)/release/CPlatform.build/%.o)

# Compiles variant $(1) with the further options $(2) of swift build. Without
# threads a module becomes one LLVM module, hence one object, and calls are
# inlined across its files.
define compile
swift build --configuration release --target CInterop \
  --scratch-path .build-c/$(1) $(2) \
  -Xswiftc -enable-experimental-feature -Xswiftc Embedded \
  -Xswiftc -num-threads -Xswiftc 0 \
  -Xswiftc -file-prefix-map -Xswiftc $(CURDIR)=. \
  -Xcc -ffile-prefix-map=$(CURDIR)=.
@mkdir -p $(@D)
ld -r -o $@ $(objects)
objcopy --remove-section=.swift_modhash \
  --remove-section=.swift1_autolink_entries --remove-section=.comment $@
endef

# ------------------------------------------------------------- The library --

soname := libcallbackregistry.so.0
real_name := libcallbackregistry.so.$(VERSION)

lib: $(addprefix build/lib/,$(real_name) $(soname) libcallbackregistry.so \
  libcallbackregistry.a pkgconfig/callbackregistry.pc)

build/lib/callbackregistry.o: $(sources)
	$(call compile,lib)

build/lib/$(real_name): build/lib/callbackregistry.o \
  packaging/callbackregistry.map
	cc -shared -o $@ $< -Wl,-soname,$(soname) -Wl,-Bsymbolic \
	  -Wl,-z,defs,-z,relro,-z,now,-z,nodelete -Wl,--build-id=none \
	  -Wl,--version-script=packaging/callbackregistry.map \
	  -Wl,--as-needed -lsqlite3 -lffi -lm
	strip --strip-unneeded $@

build/lib/$(soname) build/lib/libcallbackregistry.so: build/lib/$(real_name)
	ln -sf $(<F) $@

# Only cbr_* stays global, less what is hidden, as in the shared library. The
# tests' variants keep their debug information, for the sanitizers' reports.
build/%/libcallbackregistry.a: build/%/callbackregistry.o
	objcopy --localize-hidden --wildcard --keep-global-symbol='cbr_*' \
	  $(if $(filter lib,$*),--strip-debug) $< $(@D)/archived.o
	rm -f $@
	ar rcsD $@ $(@D)/archived.o
	rm $(@D)/archived.o

# Prints the pkg-config file for the prefix $(1) and the library folder $(2).
pkgconfig = sed -e 's|@version@|$(VERSION)|' -e 's|@prefix@|$(1)|' \
  -e 's|@libdir@|$(2)|' packaging/callbackregistry.pc.in

# This one serves programs that use the library where it was built.
build/lib/pkgconfig/callbackregistry.pc: packaging/callbackregistry.pc.in \
  Makefile
	@mkdir -p $(@D)
	$(call pkgconfig,$(CURDIR),$${prefix}/build/lib) \
	  | sed 's|^Libs:.*|& -Wl,-rpath,$${libdir}|' > $@

# The command is ordinary Swift, with the Swift runtime in it.
build/bin/cbr: $(sources) $(command) $(wildcard Sources/CLinux/*)
	swift build --configuration release --product cbr \
	  --static-swift-stdlib --scratch-path .build/cbr
	install -D -s -m 755 .build/cbr/release/cbr $@

# -------------------------------------------------------------- Installing --

root = $(DESTDIR)$(PREFIX)

install: all
	install -D -m 755 -t $(root)/bin build/bin/cbr
	install -D -m 644 -t $(root)/share/man/man1 packaging/cbr.1
	install -D -m 644 -t $(root)/share/callbackregistry packaging/verify.sql
	install -D -m 644 -t $(root)/share/callbackregistry/guards \
	  Guards/*.guard
	install -D -m 644 -t $(root)/include $(wildcard include/*.h include/*.hpp)
	install -D -m 644 -t $(root)/include/callback_registry_guard \
	  include/callback_registry_guard/*.h
	install -D -m 644 -t $(root)/lib build/lib/$(real_name) \
	  build/lib/libcallbackregistry.a
	ln -sf $(real_name) $(root)/lib/$(soname)
	ln -sf $(real_name) $(root)/lib/libcallbackregistry.so
	install -d $(root)/lib/pkgconfig
	$(call pkgconfig,$(PREFIX),$${prefix}/lib) \
	  > $(root)/lib/pkgconfig/callbackregistry.pc

uninstall:
	rm -f $(root)/bin/cbr $(root)/share/man/man1/cbr.1 \
	  $(root)/share/callbackregistry/verify.sql \
	  $(patsubst %,$(root)/%,$(wildcard include/*.h include/*.hpp)) \
	  $(root)/lib/$(real_name) $(root)/lib/$(soname) \
	  $(root)/lib/libcallbackregistry.so $(root)/lib/libcallbackregistry.a \
	  $(root)/lib/pkgconfig/callbackregistry.pc
	rm -rf $(root)/share/callbackregistry/guards \
	  $(root)/include/callback_registry_guard

clean:
	rm -rf build .build .build-c

# ----------------------------------------- Demo, documents and benchmarks --

export PKG_CONFIG_PATH := $(CURDIR)/build/lib/pkgconfig:$(PKG_CONFIG_PATH)

demo:
	packaging/install-packages demo
	$(MAKE) lib
	Examples/demo/run.sh
	Examples/downloader/run.sh

docs:
	packaging/install-packages docs
	Tests/Build/docs.py

api:
	packaging/install-packages docs
	Tests/Build/swift_api.py --write

bench:
	packaging/install-packages bench
	$(MAKE) all
	Benchmarks/run.sh

matrix:
	packaging/install-packages matrix
	$(MAKE) lib
	Comparison/matrix.py

foundation_page := Documentation/FoundationComparison.md

build/comparison/foundation: $(wildcard Comparison/Foundation/*.swift) \
  build/lib/libcallbackregistry.so build/lib/$(soname) \
  include/callback_registry.h
	@mkdir -p $(@D)
	swiftc -swift-version 6 -warnings-as-errors -O -wmo -I include \
	  -module-name CompareFoundation -o $@ $(filter %.swift,$^) \
	  -Lbuild/lib -lcallbackregistry -Xlinker -rpath=$(CURDIR)/build/lib

compare-foundation:
	packaging/install-packages demo
	$(MAKE) build/comparison/foundation
	build/comparison/foundation $(foundation_page)

# ------------------------------------------------------------------ Testing --

# Each part appends the numbers of its passed and failed tests to this file.
counts := build/test-counts
part := Tests/Build/part --counts $(counts)

# Parts that use the package's scratch folder, and parts that do not.
package_parts := test-build test-documentation test-docs test-swift \
  test-swift-fallback test-swift-tsan test-swift-asan test-examples test-demo
other_parts := test-c-tsan test-c-asan test-c test-c-fallback \
  test-c-tsan-fallback test-c-asan-fallback test-command test-guard test-fuzz \
  test-model test-matrix test-foundation lint
.PHONY: test-programs swift-tests $(package_parts) $(other_parts)

# Everything is compiled first, on two cores; then the parts run, two at a time
# or one by one.
test:
	packaging/install-packages test
	@mkdir -p $(dir $(counts)) && : > $(counts)
	-@$(MAKE) --no-print-directory --keep-going --jobs=2 \
	  --output-sync=target test-programs
	@$(MAKE) --no-print-directory --keep-going --jobs=2 \
	  --output-sync=target $(other_parts); status=$$?; \
	$(MAKE) --no-print-directory --keep-going $(package_parts) || status=2; \
	awk -v status=$$status '{ passed += $$1; failed += $$2 } \
	  END { if (status && !failed) failed = 1; \
	    printf "%d passed, %d failed\n", passed, failed }' $(counts); \
	exit $$status

# What was built: symbols, dependencies, header, packaging.
test-build: lib build/hooks/libcallbackregistry.a \
  build/tsan/libcallbackregistry.a build/asan/libcallbackregistry.a
	$(part) python3 Tests/Build/test_build.py

# The command, on histories that processes have left.
test-command: all
	$(part) python3 Tests/Build/test_command.py
	$(part) python3 Tests/Build/test_verify.py
	$(part) python3 Tests/Build/test_seal.py

# Guards of libraries that cannot be changed, and programs under them.
test-guard: all
	$(part) python3 Tests/Build/test_guard.py
	$(part) python3 Tests/Build/test_guarded_programs.py

# That the documents say what is so.
test-documentation: lib build/bin/cbr
	$(part) python3 Tests/Build/test_readme.py
	$(part) python3 Tests/Build/test_history.py
	$(part) python3 Tests/Build/test_cookbook.py
	$(part) python3 Tests/Build/what_happens_if.py

# The Swift module as its users see it: its documentation and what that shows of
# code, its API, and a package that depends on it.
test-docs: swift-tests
	$(part) Tests/Build/docs.py
	$(part) Tests/Build/swift_api.py
	$(part) python3 Tests/Build/test_snippets.py
	$(part) python3 Tests/Build/test_package.py

# The library with the points at which tests step in, plain and sanitized. The
# C functions that are inlined into Swift code are only seen by a sanitizer
# that Swift's importer of C knows of too, hence -Xcc.
build/hooks/callbackregistry.o: $(sources)
	$(call compile,hooks,--traits TestHooks)

# Besides the memory that is written, Swift reports each mutation of a field as
# a write to the start of the structure around it, as if a constant there could
# not be read meanwhile: these reports go nowhere.
build/tsan/callbackregistry.o: $(sources)
	$(call compile,tsan,--traits TestHooks --sanitize=thread \
	  -Xcc -fsanitize=thread)
	objcopy --redefine-sym __tsan_external_write=AnnotateNoOp $@

build/asan/callbackregistry.o: $(sources)
	$(call compile,asan,--traits TestHooks --sanitize=address \
	  -Xcc -fsanitize=address -Xcc -fsanitize=undefined \
	  -Xcc -fno-sanitize-recover=all)

# Each C or C++ file with a main is a program, linked with such a library.
programs := $(shell grep -lw main Tests/C/*.c Tests/C/*.cpp 2> /dev/null)
test_headers := $(shell find include -type f) $(wildcard Tests/C/*.h)

examples := $(patsubst Examples/%,build/examples/%.test, \
  $(wildcard Examples/*.c Examples/*.cpp Examples/Quickstart/*.swift \
  Examples/Queues/*.c))

# The fuzzers are ordinary Swift, with the whole engine and the command in
# them, and checks of memory.
fuzzers := build/fuzz/rings build/fuzz/command
fuzz_platform := $(platform:Sources/CPlatform/%.c=build/fuzz/%.o)
fuzz_swift := swiftc -O -g -sanitize=fuzzer,address -parse-as-library -wmo \
  -swift-version 6 -package-name callbackregistry \
  -I build/fuzz/modules -I Sources/CSQLite -I Sources/CLinux

build/fuzz/modules/module.modulemap: Makefile
	@mkdir -p $(@D)
	echo 'module CPlatform { header "$(CURDIR)/$(platform_header)" export * }' \
	  > $@

build/fuzz/CallbackRegistry.o: $(sources) build/fuzz/modules/module.modulemap
	$(fuzz_swift) -enable-testing -module-name CallbackRegistry -emit-module \
	  -emit-module-path build/fuzz/modules/CallbackRegistry.swiftmodule \
	  -c -o $@ $(filter Sources/CallbackRegistry/%.swift,$(sources))

# The command's main is not the fuzzers'.
build/fuzz/Fuzz.o: build/fuzz/CallbackRegistry.o \
  $(command) $(wildcard Tests/Fuzz/*.swift)
	$(fuzz_swift) -module-name Fuzz -c -o $@ $(filter %.swift,$^) \
	  -Xfrontend -entry-point-function-name -Xfrontend cbr_main

build/fuzz/%.o: Sources/CPlatform/%.c $(platform_header)
	@mkdir -p $(@D)
	$(fuzz_c) -ISources/CPlatform/include -c -o $@ $<

build/fuzz/%.target.o: Tests/Fuzz/%.c
	@mkdir -p $(@D)
	$(fuzz_c) -c -o $@ $<

$(fuzzers): build/fuzz/%: build/fuzz/%.target.o build/fuzz/Fuzz.o \
  build/fuzz/CallbackRegistry.o $(fuzz_platform)
	swiftc -sanitize=fuzzer,address -use-ld=lld -static-stdlib -o $@ $^ -lsqlite3 \
	  -lffi

test-programs: all swift-tests $(examples) $(fuzzers) \
  build/comparison/foundation $(foreach variant,hooks tsan asan, \
  $(programs:%=build/$(variant)/%.test))

# The sanitizers come with Swift's own clang; its thread sanitizer knows
# Dispatch and must be linked with it.
toolchain := $(dir $(realpath $(shell command -v swiftc)))
clang := $(toolchain)clang -fuse-ld=lld
fuzz_c := $(toolchain)clang -O1 -g -fsanitize=address,fuzzer-no-link \
  -Wall -Wextra -Werror
swift_libraries := $(toolchain)../lib/swift/linux
dispatch := -L$(swift_libraries) -Wl,-rpath,$(swift_libraries) \
  -ldispatch -lBlocksRuntime

# Links the program of source $(1) with the library $(2), by the compiler $(3).
define link_program
@mkdir -p $(@D)
$(3) -std=$(if $(filter %.cpp,$(1)),gnu++17,gnu11) -O1 -g \
  -Wall -Wextra -Werror -Iinclude -ITests/C -o $@ $(1) $(2) \
  -pthread -lsqlite3 -lffi -lm -Wl,--as-needed -lstdc++
endef

build/hooks/%.test: % build/hooks/libcallbackregistry.a $(test_headers)
	$(call link_program,$<,$(word 2,$^),cc)

build/tsan/%.test: % build/tsan/libcallbackregistry.a $(test_headers)
	$(call link_program,$<,$(word 2,$^) $(dispatch),$(clang) -fsanitize=thread)

build/asan/%.test: % build/asan/libcallbackregistry.a $(test_headers)
	$(call link_program,$<,$(word 2,$^),$(clang) -fsanitize=address \
	  -fsanitize=undefined -fno-sanitize-recover=all)

# An example is linked as its reader would link it.
build/examples/%.test: Examples/% build/lib/libcallbackregistry.so \
  build/lib/$(soname) build/lib/pkgconfig/callbackregistry.pc $(test_headers)
	$(call link_program,$<,$$(pkg-config --cflags --libs callbackregistry),cc)

# Those in main loops of others are skipped where these are missing.
loop_of_glib := glib-2.0
loop_of_uv := libuv
loop_of_libevent := libevent_core

build/examples/Queues/%.c.test: Examples/Queues/%.c Examples/Queues/work.h \
  build/lib/libcallbackregistry.so build/lib/$(soname) \
  build/lib/pkgconfig/callbackregistry.pc include/callback_registry.h
	@mkdir -p $(@D)
	if pkg-config --exists callbackregistry $(loop_of_$*); then \
	  cc -std=gnu11 -O1 -g -Wall -Wextra -Werror -o $@ $< -pthread \
	    $$(pkg-config --cflags --libs $(loop_of_$*) callbackregistry); \
	else printf '#!/bin/sh\necho "%s skipped: no %s"\necho %s\n' $* \
	    $(loop_of_$*) '"0 passed, 0 failed"' > $@; chmod +x $@; fi

# One in Swift is a product of the package.
build/examples/Quickstart/Quickstart.swift.test: \
  Examples/Quickstart/Quickstart.swift $(sources)
	@mkdir -p $(@D)
	swift build --product Quickstart
	cp .build/debug/Quickstart $@

# Runs each of $(1), counts its tests, and fails if one of them failed.
each = @failed=0; for program in $(1); do \
  $(part) $(2) $$program || failed=1; done; exit $$failed

# Tests that hold at every level, for which nothing is recorded otherwise.
of_every_level := $(shell grep -l test_level Tests/C/*.c)

define at_every_level
$(call each,$^)
$(call each,$(of_every_level:%=build/$(1)/%.test),env CBR_TEST_LEVEL=calls)
endef

test-c: $(programs:%=build/hooks/%.test)
	$(call at_every_level,hooks)

# Kills a process that records at ten thousand moments, some three hours, and
# ten thousand at chosen ones, one more; lets every allocation fail; has a reader
# hold the log for a minute; and compares clocks for ten.
.PHONY: soak
soak: $(patsubst %,build/hooks/Tests/C/%.c.test,clocks crashes kills memory \
  pinned)
	CBR_SOAK_KILLS=10000 build/hooks/Tests/C/crashes.c.test
	CBR_SOAK_KILLS=10000 build/hooks/Tests/C/kills.c.test
	CBR_SOAK_EACH=1 build/hooks/Tests/C/memory.c.test
	CBR_SOAK_CALLS=300000000 build/hooks/Tests/C/pinned.c.test
	CBR_SOAK_SECONDS=600 build/hooks/Tests/C/clocks.c.test

# Where membarrier is refused, every call pays for a full fence. What becomes of
# a file has nothing to do with that, and neither has the level.
of_files := $(patsubst %,Tests/C/%.c,clocks crashes damaged disks faults kills \
  memory neighbours overload pinned processes replacing turnover)
of_fences := $(filter-out $(of_files),$(programs))

test-c-fallback test-c-tsan-fallback test-c-asan-fallback: \
  export CBR_FORCE_FALLBACK := 1
test-c-fallback: $(of_fences:%=build/hooks/%.test)
	$(call each,$^)

test-c-tsan test-c-tsan-fallback: export TSAN_OPTIONS := \
  halt_on_error=1:die_after_fork=0
test-c-tsan: $(programs:%=build/tsan/%.test)
	$(call at_every_level,tsan)
test-c-tsan-fallback: $(of_fences:%=build/tsan/%.test)
	$(call each,$^)

test-c-asan test-c-asan-fallback: export ASAN_OPTIONS := \
  detect_stack_use_after_return=1
test-c-asan test-c-asan-fallback: export UBSAN_OPTIONS := print_stacktrace=1
test-c-asan: $(programs:%=build/asan/%.test)
	$(call at_every_level,asan)
test-c-asan-fallback: $(of_fences:%=build/asan/%.test)
	$(call each,$^)

# The C tests of what has nothing to do with files, under valgrind; but those of
# quarantine.c, which look at the process's own memory, of process.c and
# places.c, which run themselves again, and of signals.c: valgrind runs one
# thread at a time, and a signal rarely finds another in the middle of
# something. It does not read the debug information of Swift's compiler.
of_valgrind := $(patsubst Tests/C/%.c,%,$(filter-out %.cpp $(patsubst \
  %,Tests/C/%.c,quarantine process places signals),$(of_fences)))
.PHONY: valgrind $(of_valgrind:%=valgrind-%)
valgrind: $(of_valgrind:%=valgrind-%)
$(of_valgrind:%=valgrind-%): valgrind-%: build/hooks/Tests/C/%.c.test
	@mkdir -p build/valgrind
	@strip --strip-debug -o build/valgrind/$* $<
	valgrind -q --error-exitcode=9 build/valgrind/$*

# The Swift tests, too, run plain, on the fallback, and sanitized.
swift_tsan := --scratch-path .build/tsan --sanitize=thread \
  -Xcc -fsanitize=thread -Xlinker --wrap=__tsan_external_write \
  -Xlinker --defsym=__wrap___tsan_external_write=cbr_ignore_report
swift_asan := --scratch-path .build/asan --sanitize=address

swift-tests:
	swift build --build-tests

test-swift:
	$(part) swift test --disable-xctest

test-swift-fallback:
	CBR_FORCE_FALLBACK=1 $(part) swift test --disable-xctest

test-swift-tsan: export TSAN_OPTIONS := halt_on_error=1
test-swift-tsan:
	$(part) swift test --disable-xctest $(swift_tsan)

test-swift-asan:
	$(part) swift test --disable-xctest $(swift_asan)

# Bytes as files of rings, and as what the command is given. A trap of Swift's,
# a fault of memory, an input that takes 20 s: each fails, and is kept as
# build/fuzz/<fuzzer>-<what it was>.
SECONDS ?= 30
fuzz_options = -max_total_time=$(SECONDS) -timeout=20 -len_control=0 \
  -max_len=4096 -verbosity=0 -print_funcs=0 \
  -artifact_prefix=$(CURDIR)/build/fuzz/$(1)-
fuzz = build/fuzz/$(1) $(fuzz_options) $(CURDIR)/build/fuzz/found/$(1) \
  $(CURDIR)/Tests/Fuzz/corpus/$(1)

.PHONY: fuzz
fuzz: $(fuzzers)
	@mkdir -p $(fuzzers:build/fuzz/%=build/fuzz/found/%)
	$(call fuzz,rings)
	$(call fuzz,command)

# First one damage at a time, everywhere; then whatever comes of chance.
test-fuzz: $(fuzzers)
	@mkdir -p $(fuzzers:build/fuzz/%=build/fuzz/found/%)
	@failed=0; $(part) build/fuzz/rings --damage || failed=1; \
	for each in $(notdir $(fuzzers)); do \
	  $(part) $(call fuzz,$$each) || failed=1; done; exit $$failed

test-model:
	$(call each,$(wildcard Tests/Model/check.sh))

# They may leave files where they run.
test-examples: $(examples)
	$(call each,$(abspath $^),--directory build/examples)

test-demo: all
	$(call each,$(wildcard Examples/*/run.sh))

# With the peers that are installed.
test-matrix: lib
	$(part) Comparison/matrix.py --check

# With Foundation as it comes with the compiler.
test-foundation: build/comparison/foundation
	$(part) $< --check $(foundation_page)

lint:
	$(part) swift format lint --strict --recursive Package.swift Sources Tests \
	  Comparison Benchmarks/Swift
