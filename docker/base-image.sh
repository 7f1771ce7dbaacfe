#!/usr/bin/env bash
# Makes a base image for docker/Dockerfile from Debian packages, where no image registry can be reached:
#
#     docker/base-image.sh [NAME]            default name: keyquorum-base
#
# Needs root (or fakeroot and user namespaces), debootstrap and docker. DEBIAN_MIRROR: default http://deb.debian.org/debian;
# DEBIAN_SUITE: default bookworm (Python 3.11).
set -euo pipefail
name=${1:-keyquorum-base}
for tool in debootstrap docker tar; do
    command -v "$tool" >/dev/null || { echo "error: $tool is missing: install it (Debian: apt-get install debootstrap docker.io)" >&2; exit 1; }
done
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates,iproute2 \
    "${DEBIAN_SUITE:-bookworm}" "$root" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" >&2
rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
tar -C "$root" -c . | docker import - "$name" >/dev/null
echo "base-image: ok image=$name"
