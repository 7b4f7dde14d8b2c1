#!/usr/bin/env bash
# Write constraints.txt from a fresh environment that holds the package with its dev and demo extras.
set -euo pipefail
cd "$(dirname "$0")/.."
python="${1:-python3}"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT

"$python" -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --disable-pip-version-check -e '.[dev,demo]'
{
    echo "# The versions that were tested together, made by \`make constraints\` in a fresh environment (no hashes, no local suffixes)."
    echo "# What torch itself brings for a GPU (CUDA libraries, triton) is pinned by torch's own metadata."
    "$folder/env/bin/python" -m pip freeze --exclude-editable \
        | grep -v -i -E '^(nvidia|cuda|triton|heedful)' | sed 's/+[a-z0-9.]*$//'
} > "$folder/constraints.txt"
mv "$folder/constraints.txt" constraints.txt
