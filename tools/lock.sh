#!/bin/sh
# Write requirements.lock from pyproject.toml, for every Python and platform we support.
# Releases already in it are kept where they fit; --upgrade takes the newest.
set -eu
cd "$(dirname "$0")/.."

if ! uv=$(command -v uv); then
    echo "Fetching uv into a temporary folder."
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    "${PYTHON:-python3}" -m pip install --quiet --disable-pip-version-check --target "$folder" uv
    uv=$folder/bin/uv
fi
oldest=$(sed -n 's/^requires-python = ">=\([0-9.]*\)"$/\1/p' pyproject.toml)
"$uv" pip compile pyproject.toml --extra dev --universal --python-version "$oldest" --generate-hashes \
    --no-header --no-annotate --quiet --output-file requirements.lock "$@"
