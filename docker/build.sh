#!/usr/bin/env bash
# Builds the image from this checkout:  docker/build.sh [NAME]     default name: keyquorum
# BASE: base image (default python:3.11-slim; without a registry: docker/base-image.sh, then BASE=keyquorum-base).
# The wheel and the Python packages are fetched here, so that the build itself needs no network. Needs `make build` before.
set -euo pipefail
cd "$(dirname "$0")/.."
name=${1:-keyquorum}
command -v docker >/dev/null || { echo "error: docker is missing: install it, and start its engine" >&2; exit 1; }
[ -x .venv/bin/maturin ] || { echo "error: no .venv: run make build first" >&2; exit 1; }
wheels=build/docker/wheels
rm -rf "$wheels"
mkdir -p "$wheels"
.venv/bin/maturin build --release --locked -q -o "$wheels"
.venv/bin/python -m pip download -q --only-binary :all: -d "$wheels" --find-links "$wheels" keyquorum
docker build -q -f docker/Dockerfile --build-arg "BASE=${BASE:-python:3.11-slim}" -t "$name" . >/dev/null
echo "build: ok image=$name"
