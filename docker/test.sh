#!/usr/bin/env bash
# Builds the image from this checkout and tests it: five parties in five containers. BASE: base image; without it the default of
# docker/build.sh if that is here already, else one of Debian packages is made (as root, debootstrap is installed for that). Skipped, with the reason, where that is not possible.
#
#     docker/test.sh [--base]            --base: only makes the base image
set -euo pipefail
cd "$(dirname "$0")/.."
skip() { echo "containers: skipped: $*"; exit 0; }
command -v docker >/dev/null || skip "docker is not installed"
timeout 20 docker info >/dev/null 2>&1 || skip "no Docker engine answers"
if [ -z "${BASE:-}" ]; then
    if docker image inspect python:3.11-slim >/dev/null 2>&1; then
        BASE=python:3.11-slim
    else
        BASE=keyquorum-base
        if ! docker image inspect "$BASE" >/dev/null 2>&1; then
            if ! command -v debootstrap >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
                apt-get install -y -q debootstrap >/dev/null 2>&1 || { apt-get update -q && apt-get install -y -q debootstrap; } >/dev/null 2>&1 || true
            fi
            command -v debootstrap >/dev/null || skip "no base image, and debootstrap is not installed: name one with BASE="
            timeout 240 docker/base-image.sh "$BASE" || skip "docker/base-image.sh failed"
        fi
    fi
fi
[ "${1:-}" != --base ] || exit 0
export BASE
timeout 300 docker/build.sh keyquorum-test
KEYQUORUM_IMAGE=keyquorum-test timeout 900 .venv/bin/python -m pytest -q -rs tests/deploy/test_compose.py tests/deploy/test_serve_examples.py
echo "containers: ok image=keyquorum-test base=$BASE"
